"""What simulated processes do: operations drawn by chance, run on a repository, and noted."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from deermem.errors import CommitInDoubt, FactNotFoundError, LockTimeout, RevisionConflict
from deermem.model.changes import ANYTHING, ChangeSet, Delete, Delta, Upsert
from deermem.model.fact import FactDraft
from deermem.model.identity import DEFAULT_AGENT, AgentName, FactId, Scope
from deermem.model.snapshot import Snapshot
from deermem.repository import MemoryRepository
from deermem.testing.memory_model import public_name
from deermem.testing.simulation.history import Call, Outcome
from deermem.testing.simulation.state import FactState, Key, Operation

USER: Final = "alice"
AGENTS: Final = (DEFAULT_AGENT, AgentName("research"))
IDS: Final = ("a", "b", "c")
CAP: Final = 3

_KINDS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "create": 6,
        "create on": 3,
        "update": 6,
        "edit": 3,
        "delete": 3,
        "delete at": 2,
        "create capped": 4,
        "trim": 1,
        "clear": 2,
        "clear all": 1,
        "summarise": 2,
        "several": 3,
        "read": 5,
        "read all": 4,
        "look": 4,
        "get": 3,
        "reload": 1,
    }
)
_ON_FACTS: Final = ("update", "edit", "delete", "delete at", "get")
_MOSTLY: Final = 0.7
_WEIGHTS: Final = tuple(_KINDS.values())
_NAMES: Final = tuple(_KINDS)


@dataclass(slots=True)
class Knowledge:
    """Is what a process has seen last, and bases its next operations on."""

    revision: int = 0
    facts: dict[Key, FactState] = field(default_factory=dict)

    def learn(self, call: Call) -> None:
        """Takes over what a read showed of whole agents."""
        if call.only is None:
            self.revision = call.revision
            kept = {key: fact for key, fact in self.facts.items() if key[0] not in call.agents}
            self.facts = {**kept, **call.seen}


@dataclass(frozen=True, slots=True)
class Intent:
    """Is an operation that is planned; its arguments follow from `seed` and from what was seen by then."""

    number: int
    seed: int

    def decide(self, knowledge: Knowledge) -> Operation:
        """Makes an operation of it."""
        rng = random.Random(self.seed)  # noqa: S311 - a schedule, not a secret
        kind = rng.choices(_NAMES, _WEIGHTS)[0]
        agent: str = AGENTS[rng.random() < 0.3]
        fact_id, text = rng.choice(IDS), f"text {self.number}"
        if kind in _ON_FACTS and knowledge.facts and rng.random() < _MOSTLY:
            agent, fact_id = rng.choice(sorted(knowledge.facts))
        operation = Operation(kind, agent, fact_id, text)
        return _SHAPES.get(kind, _as_it_is)(operation, rng, knowledge)


def _as_it_is(operation: Operation, _: random.Random, __: Knowledge) -> Operation:
    return operation


def _at_known_revision(operation: Operation, _: random.Random, knowledge: Knowledge) -> Operation:
    known = knowledge.facts.get(operation.key)
    return replace(operation, number=1 if known is None else known.revision)


def _on_known_manifest(operation: Operation, rng: random.Random, knowledge: Knowledge) -> Operation:
    return replace(operation, fact_id=f"{operation.fact_id}{rng.randrange(3)}", number=knowledge.revision)


def _capped(operation: Operation, rng: random.Random, _: Knowledge) -> Operation:
    fact_id = f"capped{operation.text.removeprefix('text ')}"
    return replace(operation, fact_id=fact_id, number=CAP, confidence=rng.randrange(1, 10) / 10)


def _trimmed(operation: Operation, rng: random.Random, _: Knowledge) -> Operation:
    return Operation(operation.kind, operation.agent, number=rng.randrange(1, CAP))


def _of_several(operation: Operation, rng: random.Random, _: Knowledge) -> Operation:
    chosen = rng.sample([(owner, each) for owner in AGENTS for each in IDS], rng.randrange(1, 4))
    others = [(*key, operation.text if rng.random() < _MOSTLY else "") for key in sorted(chosen)]
    return Operation(operation.kind, others=tuple(others))


def _of_all(operation: Operation, _: random.Random, __: Knowledge) -> Operation:
    return Operation(operation.kind)


def _of_an_agent(operation: Operation, _: random.Random, __: Knowledge) -> Operation:
    return Operation(operation.kind, operation.agent)


def _of_the_user(operation: Operation, _: random.Random, __: Knowledge) -> Operation:
    return Operation(operation.kind, text=operation.text)


_SHAPES: Final[Mapping[str, Callable[[Operation, random.Random, Knowledge], Operation]]] = {
    "update": _at_known_revision,
    "delete at": _at_known_revision,
    "create on": _on_known_manifest,
    "create capped": _capped,
    "trim": _trimmed,
    "several": _of_several,
    "clear all": _of_all,
    "read all": _of_all,
    "reload": _of_all,
    "clear": _of_an_agent,
    "read": _of_an_agent,
    "look": _of_an_agent,
    "summarise": _of_the_user,
}


def run(repository: MemoryRepository, call: Call, knowledge: Knowledge) -> None:
    """Runs a call and notes what came of it."""
    try:
        if call.operation.kind in _READS:
            _READS[call.operation.kind](repository, call)
            call.outcome = Outcome.READ
            knowledge.learn(call)
        else:
            _note(call, _WRITES[call.operation.kind](repository, call.operation), knowledge)
    except FactNotFoundError:
        call.outcome, call.detail = Outcome.REFUSED, "absent"
    except RevisionConflict as conflict:
        call.outcome, call.detail = Outcome.REFUSED, type(conflict).__name__
    except CommitInDoubt as doubt:
        call.outcome, call.detail = Outcome.IN_DOUBT, doubt.reason
    except LockTimeout:
        call.outcome, call.detail = Outcome.NOT_DONE, "lock time-out"
    except OSError as error:
        call.outcome, call.detail = Outcome.NOT_DONE, str(error)
    except Exception as error:  # noqa: BLE001 - nothing else may be raised at all
        call.outcome, call.detail = Outcome.FELL_OVER, f"{type(error).__name__}: {error}"


def _note(call: Call, delta: Delta, knowledge: Knowledge) -> None:
    always = call.operation.kind == "summarise" or (
        call.operation.kind in ("clear", "clear all") and delta.revision > 0
    )
    changed = bool(delta.written or delta.deleted) or always
    call.outcome = Outcome.COMMITTED if changed else Outcome.NOTHING_TO_DO
    call.revision = delta.revision
    knowledge.revision = delta.revision
    for fact in delta.upserted:
        knowledge.facts[fact.scope.agent, fact.id] = FactState(fact.content, fact.revision, fact.confidence)
    for key in delta.deleted:
        knowledge.facts.pop(key, None)


def _scope(agent: str) -> Scope:
    return Scope.of(USER, public_name(agent))


def _several(operation: Operation) -> ChangeSet:
    upserts = [
        Upsert(AgentName(agent), FactDraft(text, id=FactId(fact_id)), ANYTHING)
        for agent, fact_id, text in operation.others
        if text
    ]
    deletes = [Delete(AgentName(agent), fact_id) for agent, fact_id, text in operation.others if not text]
    return ChangeSet(upserts=tuple(upserts), deletes=tuple(deletes))


def _draft(operation: Operation) -> FactDraft:
    return FactDraft(operation.text, id=FactId(operation.fact_id), confidence=operation.confidence)


_WRITES: Final[Mapping[str, Callable[[MemoryRepository, Operation], Delta]]] = {
    "create": lambda store, op: store.upsert_fact(_scope(op.agent), _draft(op)),
    "create on": lambda store, op: store.upsert_fact(
        _scope(op.agent), _draft(op), expected_manifest_revision=op.number
    ),
    "update": lambda store, op: store.edit_fact(
        _scope(op.agent), op.fact_id, {"content": op.text}, expected=op.number
    ),
    "edit": lambda store, op: store.edit_fact(_scope(op.agent), op.fact_id, {"content": op.text}),
    "delete": lambda store, op: store.delete_fact(_scope(op.agent), op.fact_id),
    "delete at": lambda store, op: store.delete_fact(_scope(op.agent), op.fact_id, expected=op.number),
    "create capped": lambda store, op: store.create_fact(_scope(op.agent), _draft(op), max_facts=op.number)[
        0
    ],
    "trim": lambda store, op: store.trim(_scope(op.agent), op.number),
    "clear": lambda store, op: store.clear(_scope(op.agent)),
    "clear all": lambda store, _: store.clear_all(USER),
    "summarise": lambda store, op: store.update_summaries(USER, {"user": {"topOfMind": op.text}}),
    "several": lambda store, op: store.apply_changes(USER, _several(op)),
}


def _saw(call: Call, snapshots: list[Snapshot]) -> None:
    call.revision = snapshots[0].revision
    call.agents = tuple(snapshot.scope.agent for snapshot in snapshots)
    call.summary = snapshots[0].summaries["user", "topOfMind"].summary
    call.seen = {
        (snapshot.scope.agent, fact.id): FactState(fact.content, fact.revision, fact.confidence)
        for snapshot in snapshots
        for fact in snapshot.facts
    }


def _look(repository: MemoryRepository, call: Call) -> None:
    """Reads as a gateway does: what is cached if one look shows that it is current, else as everybody."""
    scope = _scope(call.operation.agent)
    _saw(call, [repository.snapshot_if_unchanged(scope) or repository.snapshot(scope)])


def _get(repository: MemoryRepository, call: Call) -> None:
    """Reads one fact, between two looks at the revision; it tells nothing if they differ."""
    scope = _scope(call.operation.agent)
    before = repository.get_manifest(USER).revision
    fact = repository.get_fact(scope, call.operation.fact_id)
    after = repository.get_manifest(USER).revision
    if before != after:
        raise InterruptedError("somebody wrote in between")
    call.revision, call.only = after, (scope.agent, call.operation.fact_id)
    if fact is not None:
        call.seen = {call.only: FactState(fact.content, fact.revision, fact.confidence)}


_READS: Final[Mapping[str, Callable[[MemoryRepository, Call], None]]] = {
    "read": lambda store, call: _saw(call, [store.snapshot(_scope(call.operation.agent))]),
    "read all": lambda store, call: _saw(call, store.snapshots([_scope(agent) for agent in AGENTS])),
    "look": _look,
    "reload": lambda store, call: _saw(call, [store.reload(_scope(DEFAULT_AGENT))]),
    "get": _get,
}
