"""A user's memory as the checker thinks of it, and what each operation makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

Key = tuple[str, str]


class FactState(NamedTuple):
    """Is a fact: its text, its revision, and how sure it is."""

    content: str
    revision: int
    confidence: float = 0.5


class Refused(Exception):
    """Says that an operation's precondition does not hold in a state; the argument says which kind."""


@dataclass(frozen=True, slots=True)
class State:
    """Is one user's memory at one manifest revision. `facts` is keyed by agent and id."""

    revision: int = 0
    facts: Mapping[Key, FactState] = field(default_factory=lambda: MappingProxyType({}))
    summary: str = ""
    cleared: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    all_cleared: int = 0

    def fence(self, agent: str) -> int:
        """Returns the revision of the agent's last clear."""
        return max(self.all_cleared, self.cleared.get(agent, 0))

    def of(self, agent: str) -> dict[str, FactState]:
        """Returns the facts of an agent by id."""
        return {fact_id: fact for (owner, fact_id), fact in self.facts.items() if owner == agent}

    def with_facts(self, facts: Mapping[Key, FactState]) -> State:
        """Returns the state after a commit that leaves these facts; the same state if they are the same."""
        if facts == self.facts:
            return self
        return replace(self, revision=self.revision + 1, facts=MappingProxyType(dict(facts)))

    def put(self, key: Key, content: str, confidence: float = 0.5) -> State:
        """Returns the state after a fact was written."""
        before = self.facts.get(key)
        fact = FactState(content, 1 if before is None else before.revision + 1, confidence)
        return self.with_facts({**self.facts, key: fact})

    def drop(self, *keys: Key) -> State:
        """Returns the state after facts were removed."""
        return self.with_facts({key: fact for key, fact in self.facts.items() if key not in keys})


@dataclass(frozen=True, slots=True)
class Operation:
    """Is one call, with all its arguments; `kind` is a key of `EFFECTS`, or of the reads."""

    kind: str
    agent: str = ""
    fact_id: str = ""
    text: str = ""
    number: int = 0
    confidence: float = 0.5
    others: tuple[tuple[str, str, str], ...] = ()

    @property
    def key(self) -> Key:
        """Where the fact is that it names."""
        return self.agent, self.fact_id

    def __str__(self) -> str:
        shown = {name: getattr(self, name) for name in ("agent", "fact_id", "text", "number", "others")}
        return f"{self.kind}({', '.join(f'{name}={value}' for name, value in shown.items() if value)})"


def after(state: State, operation: Operation) -> State:
    """Returns what an operation makes of a state; the state itself if it changes nothing.

    Raises:
        Refused: A precondition does not hold.
    """
    return EFFECTS[operation.kind](state, operation)


def _create(state: State, operation: Operation) -> State:
    if operation.key in state.facts:
        raise Refused("fact")
    return state.put(operation.key, operation.text)


def _create_on(state: State, operation: Operation) -> State:
    """A point operation on an older revision is rebased, unless the scope was cleared since."""
    if operation.number > state.revision or state.fence(operation.agent) > operation.number:
        raise Refused("manifest")
    return _create(state, operation)


def _update(state: State, operation: Operation) -> State:
    fact = state.facts.get(operation.key)
    if fact is None or fact.revision != operation.number:
        raise Refused("fact")
    return state.put(operation.key, operation.text, fact.confidence)


def _edit(state: State, operation: Operation) -> State:
    fact = state.facts.get(operation.key)
    if fact is None:
        raise Refused("absent")
    return state.put(operation.key, operation.text, fact.confidence)


def _delete(state: State, operation: Operation) -> State:
    return state.drop(operation.key)


def _delete_at(state: State, operation: Operation) -> State:
    fact = state.facts.get(operation.key)
    if fact is None or fact.revision != operation.number:
        raise Refused("fact")
    return state.drop(operation.key)


def _create_capped(state: State, operation: Operation) -> State:
    new = FactState(operation.text, 1, operation.confidence)
    facts = {**state.of(operation.agent), operation.fact_id: new}
    kept = sorted(facts, key=lambda fact_id: (-facts[fact_id].confidence, fact_id))[: operation.number]
    others = {key: fact for key, fact in state.facts.items() if key[0] != operation.agent}
    return state.with_facts({**others, **{(operation.agent, fact_id): facts[fact_id] for fact_id in kept}})


def _trim(state: State, operation: Operation) -> State:
    facts = state.of(operation.agent)
    ranked = sorted(facts, key=lambda fact_id: (-facts[fact_id].confidence, fact_id))
    return state.drop(*((operation.agent, fact_id) for fact_id in ranked[operation.number :]))


def _clear(state: State, operation: Operation) -> State:
    if state.revision == 0:
        return state
    revision = state.revision + 1
    kept = {key: fact for key, fact in state.facts.items() if key[0] != operation.agent}
    cleared = MappingProxyType({**state.cleared, operation.agent: revision})
    return replace(state, revision=revision, facts=MappingProxyType(kept), cleared=cleared)


def _clear_all(state: State, _: Operation) -> State:
    if state.revision == 0:
        return state
    return State(state.revision + 1, all_cleared=state.revision + 1)


def _summarise(state: State, operation: Operation) -> State:
    return replace(state, revision=state.revision + 1, summary=operation.text)


def _several(state: State, operation: Operation) -> State:
    """Writes some facts and removes others; `text` is empty for one that goes."""
    facts = dict(state.facts)
    for agent, fact_id, text in operation.others:
        before = facts.pop((agent, fact_id), None)
        if text:
            facts[agent, fact_id] = FactState(text, 1 if before is None else before.revision + 1, 0.5)
    return state.with_facts(facts)


EFFECTS: Final[Mapping[str, Callable[[State, Operation], State]]] = MappingProxyType(
    {
        "create": _create,
        "create on": _create_on,
        "update": _update,
        "edit": _edit,
        "delete": _delete,
        "delete at": _delete_at,
        "create capped": _create_capped,
        "trim": _trim,
        "clear": _clear,
        "clear all": _clear_all,
        "summarise": _summarise,
        "several": _several,
    }
)
READS: Final = ("read", "look", "get", "read all", "reload")


def is_read(operation: Operation) -> bool:
    """Tells whether an operation only looks."""
    return operation.kind in READS


def as_text(value: Any) -> str:
    """Returns a value in one line, the same in every run."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{as_text(key)}: {as_text(value[key])}" for key in sorted(value)) + "}"
    return str(value) if isinstance(value, FactState | Operation) else repr(value)
