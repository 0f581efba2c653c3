"""Facts that a file of version 1 does not hold itself, but names the Markdown files of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.fact_markdown import decode_fact
from deermem.format.journal_json import Parts
from deermem.format.layout import (
    AGENTS,
    QUARANTINE,
    USERS,
    fact_parts,
    facts_parts,
    is_fact_place,
)
from deermem.format.legacy_v1 import LegacyReference
from deermem.model.fact import Fact, FactDraft
from deermem.model.identity import AgentName, Scope
from deermem.model.timestamps import normalise_timestamp
from deermem.storage.bucket import Bucket
from deermem.storage.fact_files import MAX_FACT_FILE_BYTES
from deermem.storage.legacy import LegacySource
from deermem.storage.opening import trusted


@dataclass(frozen=True, slots=True)
class Referred:
    """Is what a reference leads to: a draft, or the reason why there is none.

    `parts` is the path below the bucket. `leaves` is what the file holds if it must not stay there: it lies
    where a listing takes it for a fact, and is none that belongs there.
    """

    reference: LegacyReference
    parts: Parts
    draft: FactDraft | None = None
    reason: str = ""
    leaves: bytes | None = None

    @property
    def text(self) -> str:
        """The reference as JSON."""
        path = "/".join(self.reference.parts)
        return json.dumps({"path": path, "contentHash": self.reference.content_hash})


def follow(bucket: Bucket, source: LegacySource, *, set_aside: bool = False) -> Iterator[Referred]:
    """Reads the files that a document of version 1 names.

    Args:
        bucket: The user's bucket.
        source: The document.
        set_aside: Whether a file that is gone is looked for among those that a migration set aside.
    """
    for reference in source.document.references:
        parts = (*source.parts[:-1], *reference.parts)
        try:
            _check_place(bucket, source.agent, parts)
            data = _read(bucket, parts, set_aside)
        except FileNotFoundError:
            yield Referred(reference, parts, reason="leads to a file that is not there")
        except Corruption as error:
            yield Referred(reference, parts, reason=f"leads to a file that cannot be read: {error}")
        else:
            yield _judge(bucket, source.agent, Referred(reference, parts), data)


def _judge(bucket: Bucket, agent: AgentName, referred: Referred, data: bytes) -> Referred:
    reference, parts = referred.reference, referred.parts
    scope = Scope(bucket.user, agent)
    leaves = data if _is_listed(parts, agent) else None
    try:
        fact = decode_fact(data, path=bucket.path_of(parts), scope=scope, fact_id=reference.fact_id)
        draft = as_draft(fact)
    except (Corruption, UnsupportedFormat) as error:
        return replace(referred, reason=f"leads to a file that cannot be read: {error}", leaves=leaves)
    if reference.content_hash not in (None, sha256(data).hexdigest()):
        reason = "leads to a file with another content than contentHash says"
        return replace(referred, reason=reason, leaves=leaves)
    at_home = parts == fact_parts(agent, reference.fact_id)
    return replace(referred, draft=draft, leaves=None if at_home else leaves)


def as_draft(fact: Fact) -> FactDraft:
    """Returns a draft that makes a fact again as it was, at a revision of its own."""
    created_at = normalise_timestamp(fact.created_at, "createdAt")
    return replace(fact.draft(), id=fact.id, created_at=created_at)


def aside_parts(time: str, parts: Parts) -> Parts:
    """Returns where a file that was set aside at this time is kept."""
    return (QUARANTINE, time.replace(":", "-"), *parts)


def find_aside(bucket: Bucket, parts: Parts) -> bytes:
    """Reads what was set aside of a file the last time.

    Raises:
        FileNotFoundError: Nothing was.
    """
    with bucket.directory_at((QUARANTINE,)) as quarantine:
        times = sorted(quarantine.names(), reverse=True)
    for time in times:
        with suppress(FileNotFoundError, Corruption):
            return _read_file(bucket, (QUARANTINE, time, *parts))
    raise FileNotFoundError(bucket.path_of(parts))


def _read(bucket: Bucket, parts: Parts, set_aside: bool) -> bytes:
    try:
        return _read_file(bucket, parts)
    except FileNotFoundError:
        if not set_aside:
            raise
    return find_aside(bucket, parts)


def _read_file(bucket: Bucket, parts: Parts) -> bytes:
    with bucket.directory_at(parts[:-1]) as directory, trusted():
        return directory.read(parts[-1], MAX_FACT_FILE_BYTES)[0]


def _check_place(bucket: Bucket, agent: AgentName, parts: Parts) -> None:
    """Makes sure that a path does not lead to what is somebody else's.

    Raises:
        Corruption: It does.
    """
    if bucket.user.bucket is None and parts[0].casefold() == USERS:
        raise Corruption("/".join(parts), "belongs to another user")
    place = tuple(part.casefold() for part in parts[:3])
    if len(place) == 3 and place[0] == AGENTS and place[2] == "facts" and place != facts_parts(agent):
        raise Corruption(bucket.path_of(parts), "belongs to another agent")


def _is_listed(parts: Parts, agent: AgentName) -> bool:
    """Tells whether a listing takes the file at this path for one of the agent's facts."""
    return is_fact_place(parts) and parts[:3] == facts_parts(agent)
