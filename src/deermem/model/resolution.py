"""Deciding what comes of a change set.

`resolve` is the one place that decides whether a change set may be committed. It sees only values:
the state under the lock and the time; it returns the whole outcome before a byte is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from deermem.errors import FactConflict, ManifestConflict
from deermem.model.changes import (
    Absent,
    Anything,
    AtRevision,
    ChangeSet,
    FactKey,
    Precondition,
    Unchanged,
)
from deermem.model.fact import Fact, next_fact
from deermem.model.identity import AgentName, FactId, Scope, UserId
from deermem.model.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Fences:
    """Remembers at which revision each scope was last cleared or deleted (guarantee G7).

    `migrated` has the SHA-256 of each file of version 1 that became part of the memory, by its path: one
    that comes back would bring back what was deleted since.
    """

    everything: int = 0
    agents: Mapping[AgentName, int] = field(default_factory=lambda: MappingProxyType({}))
    migrated: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, agent: AgentName) -> int:
        """Returns the revision of the scope's last clear, 0 if it was never cleared."""
        return max(self.everything, self.agents.get(agent, 0))

    def raised(self, agents: Iterable[AgentName], everything: bool, revision: int) -> Fences:
        """Returns the fences after a clear at this revision."""
        if everything:
            return Fences(revision, migrated=self.migrated)
        return replace(self, agents=MappingProxyType({**self.agents, **dict.fromkeys(agents, revision)}))

    def noting(self, migrated: Mapping[str, str]) -> Fences:
        """Returns the fences after these files of version 1 were migrated."""
        return replace(self, migrated=MappingProxyType({**self.migrated, **migrated}))

    def forgetting(self, paths: Iterable[str]) -> Fences:
        """Returns the fences after these files of version 1 were put back."""
        gone = frozenset(paths)
        kept = {path: digest for path, digest in self.migrated.items() if path not in gone}
        return replace(self, migrated=MappingProxyType(kept))


NO_FENCES: Final = Fences()


@dataclass(frozen=True, slots=True)
class Before:
    """Holds what a change set is resolved against: the committed state, read under the lock.

    `facts` has an entry for each named fact, `listed` the ids of each cleared agent. `erased_at` is the
    revision that a memory had when its user was erased, if nothing was written since, else 0.
    """

    user: UserId
    manifest: Manifest
    facts: Mapping[FactKey, Fact | None]
    listed: Mapping[AgentName, tuple[FactId, ...]]
    fences: Fences
    erased_at: int = 0


@dataclass(frozen=True, slots=True)
class Resolution:
    """Is the outcome of a change set: what to write, what to remove, the next manifest.

    `unchanged` are the facts whose upsert changed nothing; `fences` is `None` where they stay.
    """

    manifest: Manifest
    written: tuple[Fact, ...] = ()
    unchanged: tuple[Fact, ...] = ()
    deleted: tuple[FactKey, ...] = ()
    cleared: tuple[AgentName, ...] = ()
    fences: Fences | None = None


def resolve(changes: ChangeSet, before: Before, now: str) -> Resolution:
    """Decides what a change set comes to.

    A resolution whose manifest is `before.manifest` itself has nothing to commit.

    Raises:
        ManifestConflict: The base is stale and the changes may not be rebased, or a scope that they
            touch was cleared since.
        FactConflict: A fact is not what its precondition says.
    """
    _check_base(changes, before)
    written, unchanged = _resolve_upserts(changes, before, now)
    deleted = _resolve_deletes(changes, before)
    cleared = tuple(sorted(before.listed)) if changes.clear_all else tuple(sorted(changes.emptied))
    for agent in cleared:
        deleted.extend((agent, fact_id) for fact_id in before.listed.get(agent, ()))
    summaries = before.manifest.summaries
    if changes.summaries is not None:
        summaries = summaries.merged(changes.summaries.stamped(now))
    forced = changes.least_revision > before.manifest.revision
    # Where nothing was ever stored, nothing can be brought back; a removed agent can.
    clears = bool(changes.removes) or (
        (bool(changes.clears) or changes.clear_all) and (before.manifest.revision > 0 or forced)
    )
    if not (written or deleted or clears or forced or summaries != before.manifest.summaries):
        return Resolution(before.manifest, unchanged=tuple(unchanged))
    revision = max(before.manifest.revision + 1, changes.least_revision, before.erased_at + 1)
    fences = before.fences
    if before.erased_at > fences.everything:
        # No revision comes back that was seen, and nothing that was based on one (guarantee G7).
        fences = fences.raised((), True, before.erased_at)
    fenced = clears or changes.fences_all
    if fenced:
        fences = fences.raised(changes.emptied, changes.clear_all or changes.fences_all, revision)
    return Resolution(
        manifest=Manifest(revision, now, summaries, before.manifest.extra),
        written=tuple(written),
        unchanged=tuple(unchanged),
        deleted=tuple(deleted),
        cleared=cleared,
        fences=fences if fenced or before.erased_at else None,
    )


def _check_base(changes: ChangeSet, before: Before) -> None:
    expected, actual = changes.expected_manifest_revision, before.manifest.revision
    if expected is None or expected == actual:
        return
    conditions = [upsert.expect for upsert in changes.upserts]
    conditions += [delete.expect for delete in changes.deletes]
    point_operation = (
        bool(conditions)
        and not any(isinstance(condition, Anything) for condition in conditions)
        and changes.summaries is None
        and not (changes.emptied or changes.clear_all)
    )
    if not (changes.may_rebase and point_operation and expected < actual):
        raise ManifestConflict(expected, actual)
    for agent in changes.agents():
        if before.fences.of(agent) > expected:
            raise ManifestConflict(expected, actual, f"the facts of {agent} were cleared since")


def _resolve_upserts(changes: ChangeSet, before: Before, now: str) -> tuple[list[Fact], list[Fact]]:
    written: list[Fact] = []
    unchanged: list[Fact] = []
    for upsert in changes.upserts:
        present = before.facts[upsert.key]
        check_precondition(upsert.expect, upsert.key[1], present)
        scope = Scope(before.user, upsert.agent)
        # No fact has had more revisions than its user's manifest.
        renewed_at = max(before.manifest.revision + 1, changes.least_revision) if upsert.renew else 0
        fact = next_fact(upsert.draft, scope, now, present, renewed_at=renewed_at)
        (unchanged if fact is present else written).append(fact)
    return written, unchanged


def _resolve_deletes(changes: ChangeSet, before: Before) -> list[FactKey]:
    deleted: list[FactKey] = []
    for delete in changes.deletes:
        present = before.facts[delete.key]
        check_precondition(delete.expect, delete.key[1], present)
        if present is not None:
            deleted.append(delete.key)
    return deleted


def check_precondition(expect: Precondition, fact_id: FactId, present: Fact | None) -> None:
    """Compares a precondition with the fact that is there.

    Raises:
        FactConflict: It does not hold.
    """
    actual = None if present is None else present.revision
    match expect:
        case Anything():
            return
        case Absent():
            if present is not None:
                raise FactConflict(fact_id, None, actual)
        case AtRevision(revision):
            if actual != revision:
                raise FactConflict(fact_id, revision, actual)
        case Unchanged(fact):
            same = (
                present is not None
                and (present.revision, present.created_at) == (fact.revision, fact.created_at)
                and present.same_meaning(fact)
            )
            if not same:
                found = None if present is None else present.content
                raise FactConflict(fact_id, fact.revision, actual, fact.content, found)
