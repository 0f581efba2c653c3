"""What waits to be migrated: looked at without a lock, and without writing anything."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from deermem.errors import Corruption, LegacyFormat, MigrationError, UnsupportedFormat
from deermem.format.layout import legacy_parts
from deermem.model.identity import Scope, UserId
from deermem.repository import MemoryRepository
from deermem.storage.legacy import legacy_agents, refuse_legacy


@dataclass(frozen=True, slots=True)
class Waiting:
    """Says what a user has in files of version 1, and what the user would have once they are migrated.

    `files` are their paths below the storage root. `agents` counts the facts of each agent, those included
    that are of version 2 already.
    """

    files: tuple[str, ...] = ()
    agents: dict[str, int] = field(default_factory=dict)
    revision: int = 0


def version_one_files(repository: MemoryRepository, user: UserId) -> tuple[str, ...]:
    """Returns the files of version 1 that a user still has, by path below the storage root.

    Raises:
        Corruption: A link or the like is in the way; a `memory.json` that cannot be read is none of them.
    """
    with repository.engine.opened(user) as bucket:
        if bucket is None:
            return ()
        files = [legacy_parts(agent, bucket.manifest_name) for agent in legacy_agents(bucket)]
        with suppress(Corruption, UnsupportedFormat):
            if bucket.manifest_on_disk()[1] is None:
                files.insert(0, (bucket.manifest_name,))
        return tuple(map(bucket.path_of, files))


def refuse_version_one(repository: MemoryRepository, scope: Scope) -> None:
    """Makes sure that no fact of a scope is still in a file of version 1.

    Raises:
        LegacyFormat: One may be.
    """
    with repository.engine.opened(scope.user) as bucket:
        if bucket is None:
            return
        try:
            bucket.read_manifest()
        except LegacyFormat:
            raise
        except (Corruption, UnsupportedFormat):
            return  # not what was asked
        refuse_legacy(bucket, scope.agent)


def look_at_waiting(repository: MemoryRepository, user: UserId) -> Waiting:
    """Says what a user has in files of version 1; nothing is migrated.

    Raises:
        MigrationError: What stops their migration, and with it every access.
        Corruption: A file cannot be trusted.
    """
    files = version_one_files(repository, user)
    if not files:
        return Waiting()
    report = repository.plan_migration(user.raw)
    if report.refused:
        first, more = report.refused[0], len(report.refused) - 1
        where = ".".join(filter(None, (first.place, first.field)))
        raise MigrationError(first.path, f"{where} {first.reason}{f' (and {more} more)' if more else ''}")
    with repository.engine.opened(user) as bucket:
        stored = [] if bucket is None else bucket.agents()
        keys = {(agent, file.fact_id) for agent in stored if bucket for file in bucket.list_facts(agent)}
    counts = Counter(agent for agent, _ in keys.union(report.planned))
    return Waiting(files, {agent: counts[agent] for agent in sorted({*stored, *counts})}, report.revision)
