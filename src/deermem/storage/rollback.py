"""Taking a migration back: the files of version 1 return from their backups, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from deermem.errors import MigrationError
from deermem.format.fences_json import encode_fences
from deermem.format.journal_json import Parts
from deermem.format.layout import FACT_SUFFIX, FENCES, facts_parts, legacy_parts
from deermem.format.manifest_json import encode_manifest
from deermem.model.fact import Fact, next_fact
from deermem.model.identity import DEFAULT_AGENT, AgentName, Scope
from deermem.model.manifest import Manifest
from deermem.model.migration import Candidate, adopted_summaries
from deermem.model.summaries import EMPTY_SECTION, EMPTY_SUMMARIES
from deermem.storage.bucket import Bucket
from deermem.storage.copies import backup_parts
from deermem.storage.legacy import LegacySource, has_legacy, is_there, read_source
from deermem.storage.legacy_references import Referred, follow
from deermem.storage.migration import candidates_of
from deermem.storage.transaction import write_all

_MOST_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class RolledBack:
    """Reports a rollback: the files of version 1 that are back, and whose facts are in them again."""

    revision: int
    restored: tuple[str, ...]
    agents: tuple[AgentName, ...]


def roll_back(bucket: Bucket, base: Manifest, operation: str, now: str) -> RolledBack:
    """Moves the files of version 1 back from their backups, if all is as the migration left it.

    The caller holds the user's lock on a recovered bucket. The fences remember the revision, so that a
    later migration goes on above it, and that no late writer brings a fact back.

    Raises:
        MigrationError: There is no backup, or something was changed since; nothing was written.
    """
    sources = _read_backups(bucket, now)
    referred = {source.parts: list(follow(bucket, source, set_aside=True)) for source in sources}
    changed = list(_changed_since(bucket, base, sources, referred, now))
    if changed:
        more = f" and {len(changed) - _MOST_SHOWN} more" if len(changed) > _MOST_SHOWN else ""
        raise MigrationError(
            bucket.path_of((bucket.manifest_name,)),
            f"changed since the migration: {', '.join(changed[:_MOST_SHOWN])}{more}",
        )
    revision = base.revision + 1
    manifest = encode_manifest(replace(base, revision=revision, last_updated=now))
    files: list[tuple[Parts, bytes]] = []
    for source in sources:
        if source.parts == (bucket.manifest_name,):
            manifest = source.data
        else:
            files.append((source.parts, source.data))
    agents = tuple(sorted({source.agent for source in sources}))
    files += _leaving_again(bucket, [each for found in referred.values() for each in found])
    fences = bucket.read_fences().raised((), True, revision)
    fences = fences.forgetting("/".join(source.parts) for source in sources)
    files.append(((FENCES,), encode_fences(fences)))
    deletes = tuple(sorted((*_fact_files(bucket, agents, sources), *_backups(sources))))
    image = ((bucket.manifest_name,), manifest)
    write_all(bucket, operation, (base.revision, revision), files, image, deletes)
    return RolledBack(revision, tuple(bucket.path_of(source.parts) for source in sources), agents)


def _read_backups(bucket: Bucket, now: str) -> list[LegacySource]:
    """Reads the backups as the sources that they were; a file that is there is not to be put back."""
    places: list[tuple[AgentName, Parts]] = [(DEFAULT_AGENT, (bucket.manifest_name,))]
    places += [
        (agent, legacy_parts(agent, bucket.manifest_name))
        for agent in bucket.agent_directories()
        if not has_legacy(bucket, agent)
    ]
    found: list[LegacySource] = []
    for agent, parts in places:
        try:
            backup = read_source(bucket, agent, backup_parts(parts), now)
        except FileNotFoundError:
            continue
        found.append(replace(backup, parts=parts))
    if not found:
        path = bucket.path_of(backup_parts((bucket.manifest_name,)))
        raise MigrationError(path, "is not there: nothing was migrated, or the backup was removed")
    return found


def _changed_since(
    bucket: Bucket,
    base: Manifest,
    sources: Sequence[LegacySource],
    referred: Mapping[Parts, Sequence[Referred]],
    now: str,
) -> Iterator[str]:
    """Names what is not as the migration made it, edits by hand included."""
    expected: dict[AgentName, list[Candidate]] = {}
    summaries = EMPTY_SUMMARIES
    for source in sources:
        candidates, _ = candidates_of(bucket, source, referred[source.parts])
        expected.setdefault(source.agent, []).extend(candidates)
        if source.parts == (bucket.manifest_name,):
            summaries = source.document.summaries
        else:
            path = bucket.path_of(source.parts)
            summaries = adopted_summaries(summaries, source.document.summaries, path)
    for agent in sorted({*expected, *bucket.agents()}):
        scope = Scope(bucket.user, agent)
        facts = {fact_id: stored.fact for fact_id, stored in bucket.read_facts(scope, {}, None).items()}
        for candidate in expected.get(agent, ()):
            there = facts.pop(candidate.key[1], None)
            if there is None or not _says(candidate, scope, there, now):
                yield f"{agent}/{candidate.key[1]}"
        for fact_id in facts:
            yield f"{agent}/{fact_id}"
    if any(source.parts == (bucket.manifest_name,) for source in sources):
        for key, section in base.summaries.sections.items():
            if section.summary != summaries.sections.get(key, EMPTY_SECTION).summary:
                yield ".".join(key)


def _says(candidate: Candidate, scope: Scope, there: Fact, now: str) -> bool:
    draft = candidate.draft if candidate.titled else replace(candidate.draft, title=there.title)
    return next_fact(draft, scope, now, there) is there


def _leaving_again(bucket: Bucket, referred: Iterable[Referred]) -> Iterator[tuple[Parts, bytes]]:
    """Returns the files that the migration set aside, for the places where they had lain."""
    for each in referred:
        if each.leaves is None or is_there(bucket, each.parts):
            continue
        if not _is_utf8(each.leaves):
            reason = "was set aside and is not UTF-8: move it back from .quarantine yourself"
            raise MigrationError(bucket.path_of(each.parts), reason)
        yield each.parts, each.leaves


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _backups(sources: Iterable[LegacySource]) -> Iterator[Parts]:
    """Returns the backups that go: what they hold is back where it was.

    The application that reads version 1 will change it, and a later migration needs their names.
    """
    return (backup_parts(source.parts) for source in sources)


def _fact_files(
    bucket: Bucket, agents: Sequence[AgentName], sources: Sequence[LegacySource]
) -> Iterator[Parts]:
    """Returns the fact files that go; those that a version-1 file names the path of stay."""
    named = {
        (*source.parts[:-1], *reference.parts)
        for source in sources
        for reference in source.document.references
    }
    for agent in agents:
        for file in bucket.list_facts(agent):
            parts = (*facts_parts(agent), file.shard, file.fact_id + FACT_SUFFIX)
            if parts not in named:
                yield parts
