"""What a caller wants changed, under which conditions, and what comes of it.

`resolve` is the one place that decides whether a change set may be committed. It sees only values:
the state under the lock and the time; it returns the whole outcome before a byte is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from deermem.errors import FactConflict, InvalidInputError, ManifestConflict
from deermem.model.fact import Fact, FactDraft, next_fact
from deermem.model.identity import (
    AgentName,
    FactId,
    Scope,
    UserId,
    check_stored_agent_name,
    parse_fact_id,
)
from deermem.model.manifest import MANIFEST_VERSION, Manifest
from deermem.model.summaries import SummaryPatch

MAX_CHANGES: Final = 200_000
MAX_CHANGE_BYTES: Final = 256_000_000


@dataclass(frozen=True, slots=True)
class Anything:
    """Expects nothing: the fact may be there or not."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Expects that there is no such fact."""


@dataclass(frozen=True, slots=True)
class AtRevision:
    """Expects the fact at this revision."""

    revision: int


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Expects the very fact that was read: revision, creation time and meaning are compared."""

    fact: Fact


Precondition = Anything | Absent | AtRevision | Unchanged
ANYTHING: Final = Anything()
ABSENT: Final = Absent()

FactKey = tuple[AgentName, FactId]


@dataclass(frozen=True, slots=True)
class Upsert:
    """Writes a fact; the draft has its id.

    With `renew` the fact gets a new revision even if nothing in it changes: so an edit made by hand
    becomes a commit.
    """

    agent: AgentName
    draft: FactDraft
    expect: Precondition = ABSENT
    renew: bool = False

    def __post_init__(self) -> None:
        check_stored_agent_name(self.agent)

    @property
    def key(self) -> FactKey:
        """Where the fact goes; an id is required."""
        if self.draft.id is None:
            raise InvalidInputError("id", "is missing")
        return self.agent, FactId(self.draft.id)


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes a fact; without a precondition an absent one is no error.

    Raises:
        InvalidInputError: The id or the agent breaks its rule.
    """

    agent: AgentName
    fact_id: str
    expect: Precondition = ANYTHING

    def __post_init__(self) -> None:
        check_stored_agent_name(self.agent)
        parse_fact_id(self.fact_id)

    @property
    def key(self) -> FactKey:
        """Where the fact lies."""
        return self.agent, FactId(self.fact_id)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Collects the changes of one transaction on one user's memory.

    `clears` names agents whose facts all go; `clear_all` means every agent and all summaries.
    `removes` names custom agents that go with their facts and the files that are known to be theirs.
    `expected_manifest_revision` is the revision the changes were based on; with `may_rebase` a set
    whose every fact has a precondition is still accepted on a newer one (plan section 8).
    """

    upserts: tuple[Upsert, ...] = ()
    deletes: tuple[Delete, ...] = ()
    summaries: SummaryPatch | None = None
    clears: frozenset[AgentName] = frozenset()
    clear_all: bool = False
    removes: frozenset[AgentName] = frozenset()
    expected_manifest_revision: int | None = None
    may_rebase: bool = False

    def __post_init__(self) -> None:
        for agent in self.emptied:
            check_stored_agent_name(agent)
        keys = self.fact_keys()
        if len(keys) > MAX_CHANGES:
            raise InvalidInputError("changes", f"are more than {MAX_CHANGES:,}")
        seen: set[FactKey] = set()
        for key in keys:
            if key in seen:
                raise InvalidInputError("changes", f"name the fact {key[1]!r} more than once")
            seen.add(key)
            if self.clear_all or key[0] in self.emptied:
                raise InvalidInputError("changes", f"both clear the agent {key[0]!r} and name a fact of it")
        base = self.expected_manifest_revision
        if base is not None and (isinstance(base, bool) or not isinstance(base, int) or base < 0):
            raise InvalidInputError("expected_manifest_revision", "must be an integer of at least 0")
        size = sum(len(upsert.draft.content) for upsert in self.upserts)
        if size > MAX_CHANGE_BYTES:
            raise InvalidInputError("changes", f"hold more than {MAX_CHANGE_BYTES:,} characters of content")

    @property
    def emptied(self) -> frozenset[AgentName]:
        """The agents named here that have no facts afterwards."""
        return self.clears | self.removes

    def fact_keys(self) -> tuple[FactKey, ...]:
        """Returns where each named fact lies, in the order upserts, deletes."""
        return (*(upsert.key for upsert in self.upserts), *(delete.key for delete in self.deletes))

    def agents(self) -> frozenset[AgentName]:
        """Returns the agents whose facts are named or cleared."""
        return frozenset(agent for agent, _ in self.fact_keys()) | self.emptied


@dataclass(frozen=True, slots=True)
class Fences:
    """Remembers at which revision each scope was last cleared or deleted (guarantee G7)."""

    everything: int = 0
    agents: Mapping[AgentName, int] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, agent: AgentName) -> int:
        """Returns the revision of the scope's last clear, 0 if it was never cleared."""
        return max(self.everything, self.agents.get(agent, 0))

    def raised(self, agents: Iterable[AgentName], everything: bool, revision: int) -> Fences:
        """Returns the fences after a clear at this revision."""
        if everything:
            return Fences(revision)
        return Fences(self.everything, MappingProxyType({**self.agents, **dict.fromkeys(agents, revision)}))


NO_FENCES: Final = Fences()


@dataclass(frozen=True, slots=True)
class Before:
    """Holds what a change set is resolved against: the committed state, read under the lock.

    `facts` has an entry for each named fact, `listed` the ids of each cleared agent.
    """

    user: UserId
    manifest: Manifest
    facts: Mapping[FactKey, Fact | None]
    listed: Mapping[AgentName, tuple[FactId, ...]]
    fences: Fences


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
    # Where nothing was ever stored, nothing can be brought back; a removed agent can.
    clears = bool(changes.removes) or (
        (bool(changes.clears) or changes.clear_all) and before.manifest.revision > 0
    )
    if not (written or deleted or clears or summaries != before.manifest.summaries):
        return Resolution(before.manifest, unchanged=tuple(unchanged))
    revision = before.manifest.revision + 1
    return Resolution(
        manifest=Manifest(revision, now, summaries, before.manifest.extra),
        written=tuple(written),
        unchanged=tuple(unchanged),
        deleted=tuple(deleted),
        cleared=cleared,
        fences=before.fences.raised(changes.emptied, changes.clear_all, revision) if clears else None,
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
        fact = next_fact(upsert.draft, scope, now, present, renew=upsert.renew)
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


@dataclass(frozen=True, slots=True)
class Delta:
    """Reports what a commit changed; it is not the whole memory (plan section 7).

    `written` are the facts that got a new revision, `unchanged` those whose upsert changed nothing.
    """

    revision: int
    last_updated: str
    written: tuple[Fact, ...] = ()
    unchanged: tuple[Fact, ...] = ()
    deleted: tuple[FactKey, ...] = ()
    cleared: tuple[AgentName, ...] = ()
    complete: bool = False
    version: str = MANIFEST_VERSION

    @property
    def upserted(self) -> tuple[Fact, ...]:
        """All facts that were addressed by an upsert, as they are stored now."""
        return (*self.written, *self.unchanged)
