"""The files of a user that a backup holds, as they lie in the bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from deermem.errors import Corruption
from deermem.format.layout import (
    AGENTS,
    FACTS,
    METADATA,
    facts_parts,
    is_fact_place,
    is_shard,
    parse_fact_parts,
)
from deermem.maintenance.archive import MAX_FILE_BYTES, Parts, is_own_file, may_be_referred_to
from deermem.maintenance.archive_contents import references_of
from deermem.model.identity import DEFAULT_AGENT, AgentName, Scope
from deermem.storage.bucket import Bucket
from deermem.storage.opening import trusted


def list_files(bucket: Bucket, *, with_agents: bool) -> list[Parts]:
    """Returns the paths of a user's files, sorted, but `memory.json` last: it makes the others count.

    Left out are the lock, the journal, what transactions stage, quarantine, safety copies, and whatever
    belongs to the host. What lies in place of a file and is none is in the list, so that it is told of. The
    caller holds the user's lock, or knows that what it gets may change.

    Raises:
        Corruption: A link, or a file, lies where a directory should be.
    """
    found = [
        parts
        for parts, is_file in _candidates(bucket)
        if is_own_file(parts, bucket.manifest_name, with_agents=with_agents)
        and (is_file or not _may_be_anything(parts))
    ]
    found += sorted(_referred(bucket, found) - set(found))
    last = (bucket.manifest_name,)
    return sorted(found, key=lambda parts: (parts == last, parts))


def read_file(bucket: Bucket, parts: Parts) -> bytes | None:
    """Returns a file's bytes; `None` if there is no such file.

    Raises:
        Corruption: A link, or a directory, lies in its place, or it is larger than any file of ours.
    """
    with suppress(FileNotFoundError), bucket.directory_at(parts[:-1]) as directory, trusted():
        return directory.read(parts[-1], MAX_FILE_BYTES)[0]
    return None


def _may_be_anything(parts: Parts) -> bool:
    """Tells whether what is no file may lie there: side files are the host's, a stray fact nobody's."""
    return parts[2:3] == (METADATA,) or (is_fact_place(parts) and parse_fact_parts(parts) is None)


def _candidates(bucket: Bucket) -> Iterator[tuple[Parts, bool]]:
    with trusted():
        yield from (((name,), file is not None) for name, file in bucket.directory.identities().items())
    for agent in bucket.agent_directories():
        yield from _files_in(bucket, (AGENTS, agent))
        yield from _files_in(bucket, (AGENTS, agent, METADATA))
        yield from _fact_files(bucket, agent)


def _files_in(bucket: Bucket, parts: Parts) -> Iterator[tuple[Parts, bool]]:
    with suppress(FileNotFoundError), bucket.directory_at(parts) as directory:
        yield from [((*parts, name), file is not None) for name, file in directory.identities().items()]


def _fact_files(bucket: Bucket, agent: AgentName) -> Iterator[tuple[Parts, bool]]:
    parts = facts_parts(agent)
    with suppress(FileNotFoundError), bucket.directory_at((AGENTS, agent)) as directory:
        if FACTS not in directory.names():
            return
        with bucket.directory_at(parts) as facts:
            shards = [name for name in facts.names() if is_shard(name)]
        for shard in sorted(shards):
            yield from _files_in(bucket, (*parts, shard))


def _referred(bucket: Bucket, found: list[Parts]) -> set[Parts]:
    """Returns the files that documents of version 1 refer to, and that are there."""
    referred: set[Parts] = set()
    for parts in found:
        if parts[-1] != bucket.manifest_name:
            continue
        agent = DEFAULT_AGENT if len(parts) == 1 else AgentName(parts[1])
        with suppress(Corruption):  # who reads the list is told of it
            data = read_file(bucket, parts)
            if data is not None:
                referred |= references_of(data, parts, Scope(bucket.user, agent))
    return {parts for parts in referred if may_be_referred_to(parts) and _is_there(bucket, parts)}


def _is_there(bucket: Bucket, parts: Parts) -> bool:
    with suppress(FileNotFoundError, Corruption):
        return read_file(bucket, parts) is not None
    return False
