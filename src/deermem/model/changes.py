"""What a caller wants changed, under which conditions, and what a commit reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deermem.errors import InvalidInputError
from deermem.model.fact import Fact, FactDraft
from deermem.model.identity import (
    AgentName,
    FactId,
    check_stored_agent_name,
    parse_fact_id,
)
from deermem.model.manifest import MANIFEST_VERSION
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

# The operation that brings a memory down to its cap.
TRIM: Final = "trim"


@dataclass(frozen=True, slots=True)
class Upsert:
    """Writes a fact; the draft has its id.

    With `renew` the fact gets a revision that it never had, even if nothing in it changes: so an edit
    made by hand becomes a commit, and a fact that comes back is not taken for the one that went.
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
    `least_revision` makes a commit of any change set, at this manifest revision or a later one: so
    no revision comes back that was seen before `memory.json` was lost or replaced.
    `fences_all` refuses, as a clear of everything does, what was based on an earlier revision.
    `evicts` tells which facts among the deletes a cap takes.
    `keeps` names an operation that can be taken back: what it replaces is kept in a safety copy; of a
    `TRIM`, what it deletes.
    `undoes` is the file name of the safety copy that this takes back, and removes.
    """

    upserts: tuple[Upsert, ...] = ()
    deletes: tuple[Delete, ...] = ()
    summaries: SummaryPatch | None = None
    clears: frozenset[AgentName] = frozenset()
    clear_all: bool = False
    removes: frozenset[AgentName] = frozenset()
    expected_manifest_revision: int | None = None
    may_rebase: bool = False
    least_revision: int = 0
    fences_all: bool = False
    evicts: tuple[FactKey, ...] = ()
    keeps: str = ""
    undoes: str = ""

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
