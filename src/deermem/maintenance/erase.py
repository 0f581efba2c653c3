"""Erasing a user: all that DeerMem owns of one goes, in an order in which no half of it ever shows.

Why each step stands where it stands is written down in `docs/internals/erasing-a-user.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from deermem.errors import Corruption, MigrationError, UnsupportedFormat
from deermem.format.layout import AGENTS, bucket_parts, fact_parts, parse_fact_parts
from deermem.maintenance.belongings import Belongings, survey
from deermem.maintenance.bucket_removal import highest_revision, make_unreadable, remove_files, remove_lock
from deermem.model.changes import ChangeSet
from deermem.model.identity import DEFAULT_AGENT, AgentName, Scope, UserId
from deermem.model.manifest import NO_MANIFEST
from deermem.model.resolution import Resolution
from deermem.model.summaries import SummaryPatch
from deermem.repository import MemoryRepository
from deermem.storage.bucket import Bucket
from deermem.storage.engine import Engine
from deermem.storage.opening import BucketGone

# Without a safety copy: nothing of this is to be taken back.
_EVERYTHING: Final = ChangeSet(clear_all=True, summaries=SummaryPatch.replace_all(NO_MANIFEST.summaries))
_DAMAGE: Final = (Corruption, UnsupportedFormat, MigrationError)


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """Says what of a user was removed, or would be; paths are below the storage root.

    `links` lay in place of files of ours: they go, what they lead to stays. `kept` belongs to the host;
    directories end in a slash. `agents` are those that had a directory. `damage` says why the memory could
    not be cleared as usual before its files went; it is empty where it could.
    """

    user: UserId
    removed: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    facts: int = 0
    agents: tuple[AgentName, ...] = ()
    bucket_removed: bool = False
    damage: str = ""

    @property
    def bucket(self) -> str:
        """The user's bucket below the storage root."""
        return "/".join(bucket_parts(self.user)) or "."


def plan_erasure(repository: MemoryRepository, user_id: str | None) -> ErasureReport:
    """Says what an erasure would remove; nothing is written, and no lock is taken."""
    user = repository.parse_user(user_id)
    with repository.engine.opened(user) as bucket:
        if bucket is None:
            return ErasureReport(user)
        found = survey(bucket)
        empty = not found.kept and user.bucket is not None
        return _report(bucket, [found], bucket_removed=empty)


def erase_user(repository: MemoryRepository, user_id: str | None) -> ErasureReport:
    """Removes all that DeerMem owns of a user, and the bucket if nothing of the host is left in it.

    Whenever it is interrupted, the memory reads as it was or as empty (one that was damaged, as damaged),
    and calling it again completes it. Archives, exports and copies that others made are beyond its reach.

    Raises:
        SearchIndexError: The search index did not forget the user. The memory is empty, and its files are
            still there: without them nobody would know which agents are to be forgotten the next time.
        LockTimeout: Another writer held the lock too long.
    """
    planned = plan_erasure(repository, user_id)
    user, engine = planned.user, repository.engine
    cleared, damage = Resolution(NO_MANIFEST), ""
    try:
        cleared = engine.commit(user, lambda _: _EVERYTHING, supersedes=True).resolution
    except _DAMAGE as error:
        damage = str(error)
    repository.clear_index([Scope(user, agent) for agent in {*planned.agents, DEFAULT_AGENT}])
    report = ErasureReport(user)
    with suppress(BucketGone), engine.opened(user) as bucket:
        if bucket is not None:
            report = _erase_bucket(engine, bucket, cleared.manifest.revision, damage)
    engine.cache.forget_user(user)
    repository.clear_index([Scope(user, agent) for agent in set(report.agents).difference(planned.agents)])
    facts = {"/".join((*bucket_parts(user), *fact_parts(*key))) for key in cleared.deleted}
    return _together(planned, report, facts)


def _together(planned: ErasureReport, report: ErasureReport, cleared: set[str]) -> ErasureReport:
    """Joins what was found before the memory was cleared, what was cleared, and what was removed after."""
    found = {*planned.removed, *report.removed}
    # A fact that lay in a wrong shard was found there, and is cleared under its own.
    names = {_agent_and_name(path) for path in found}
    removed = found | {path for path in cleared if _agent_and_name(path) not in names}
    return replace(
        report,
        removed=tuple(sorted(removed)),
        links=tuple(sorted({*planned.links, *report.links})),
        facts=sum(_is_fact(path, report.bucket) for path in removed),
        agents=tuple(sorted({*planned.agents, *report.agents})),
    )


def _erase_bucket(engine: Engine, bucket: Bucket, cleared: int, damage: str) -> ErasureReport:
    """Removes what lies in a bucket whose memory was cleared at a revision, or is damaged."""
    report = None
    if not damage:
        try:
            report = _erase_cleared(engine, bucket, cleared)
        except _DAMAGE as error:
            damage = str(error)
    if report is None:
        report = _erase_damaged(engine, bucket, damage)
    if engine.file_system.windows_names:
        # There a file that is open cannot be removed: if it can, nobody has or awaits the lock.
        with suppress(PermissionError):
            return replace(report, bucket_removed=remove_lock(engine.file_system, bucket))
    return report


def _erase_cleared(engine: Engine, bucket: Bucket, cleared: int) -> ErasureReport:
    with engine.settled(bucket) as transaction:
        before = survey(bucket)
        revision = transaction.view.manifest.revision
        if revision != cleared:
            # Somebody wrote after the memory was cleared, and before it was locked.
            revision = transaction.commit(_EVERYTHING, supersedes=True).image.manifest.revision
        fences = bucket.read_fences()
        revision = max(revision, fences.everything, *fences.agents.values())
        return _remove(engine, bucket, before, revision, "")


def _erase_damaged(engine: Engine, bucket: Bucket, damage: str) -> ErasureReport:
    with engine.locked(bucket):
        before = survey(bucket)
        revision = highest_revision(engine.file_system, bucket)
        make_unreadable(bucket, engine.stamps.operation())
        return _remove(engine, bucket, before, revision, damage)


def _remove(engine: Engine, bucket: Bucket, before: Belongings, revision: int, damage: str) -> ErasureReport:
    found = survey(bucket)  # once more: clearing has made files, backups of version 1 among them
    remove_files(engine.file_system, bucket, found, revision)
    gone = not engine.file_system.windows_names and remove_lock(engine.file_system, bucket)
    return _report(bucket, [before, found], bucket_removed=gone, damage=damage)


def _report(
    bucket: Bucket, found: Iterable[Belongings], *, bucket_removed: bool, damage: str = ""
) -> ErasureReport:
    surveys = list(found)
    ours = {parts for each in surveys for parts in (*each.settled, *each.files)}
    agents = {
        parts[1] for each in surveys for parts in each.directories if len(parts) == 2 and parts[0] == AGENTS
    }
    return ErasureReport(
        bucket.user,
        removed=tuple(sorted(map(bucket.path_of, ours))),
        links=tuple(sorted({bucket.path_of(parts) for each in surveys for parts in each.links})),
        kept=tuple(bucket.path_of((name,)) for name in surveys[-1].kept),
        facts=sum(parse_fact_parts(parts) is not None for parts in ours),
        agents=tuple(sorted(map(AgentName, agents))),
        bucket_removed=bucket_removed,
        damage=damage,
    )


def _agent_and_name(path: str) -> tuple[str, str]:
    above, _, rest = path.partition("/facts/")
    return above, rest.rpartition("/")[2]


def _is_fact(path: str, bucket: str) -> bool:
    return parse_fact_parts(tuple(path.removeprefix(f"{bucket}/").split("/"))) is not None
