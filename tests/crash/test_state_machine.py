"""Whatever happens in whatever order, crashes included, a memory reads as a dictionary would."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import count
from typing import Final, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from deermem import DuplicateFact, FactConflict, FactDraft, MemoryRepository, Scope, Section, Summaries
from deermem.errors import DeerMemError
from deermem.maintenance import taking_back
from deermem.maintenance.taking_back import undo
from deermem.model.identity import FactId
from deermem.testing.disk_steps import SimulatedDeath
from deermem.testing.simulated_disk import SimulatedDisk
from deermem.testing.simulated_filesystem import SimulatedFileSystem
from tests.simulation.test_mutants import (
    a_cache_that_never_looks,
    no_recovery,
    no_sync_of_data,
    no_sync_of_directories,
)

USER: Final = "alice"
HERE: Final = Scope.of(USER)
THERE: Final = Scope.of(USER, "research")
BUCKET: Final = f"users/{USER}"
CAP: Final = 2


class Entry(NamedTuple):
    """Is a fact as the dictionary has it; `born` tells it from one with the same text that was deleted."""

    text: str
    confidence: int
    born: int


Key = tuple[Scope, str]
Facts = dict[Key, Entry]


class Summary(NamedTuple):
    """Is the text of the summary; `written` tells it from the same text at another time."""

    text: str
    written: int = 0


class State(NamedTuple):
    """Is a whole memory, and the operations that an undo can take back, the last one last."""

    facts: Facts
    summary: Summary
    undoable: tuple[Operation, ...] = ()


class Operation(NamedTuple):
    """Is what a clear, an import or a trim took away, and what an undo takes of what it wrote."""

    kept: Facts
    written: Facts
    summaries: tuple[Summary, Summary]


class Fate(NamedTuple):
    """Says after how many changes of the disk a process dies, and what becomes of the disk then."""

    changes: int
    power_lost: bool
    seed: int


SCOPES: Final = st.sampled_from([HERE, THERE])
IDS: Final = st.sampled_from("abc")
TEXTS: Final = st.sampled_from(["tea", "coffee", "water", "milk"])
CONFIDENCES: Final = st.integers(1, 99)
WHO: Final = st.integers(0, 1)
SEEDS: Final = st.integers(0, 2**32 - 1)
FATES: Final = st.none() | st.builds(Fate, st.integers(0, 40), st.booleans(), SEEDS)


class MemoryMachine(RuleBasedStateMachine):
    """Lets two processes with caches use one memory; either may die, and the power may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk()
        self.numbers = count(1)
        self.state = State({}, Summary(""))
        self.seen: dict[int, State] = {}
        self.last_revision = 0
        self.start_all()

    def start_all(self) -> None:
        self.processes = [self.started(), self.started()]

    def started(self) -> tuple[SimulatedFileSystem, MemoryRepository]:
        process = self.disk.process()
        return process, MemoryRepository(
            process,
            clock=self.disk.now,
            new_token=lambda: f"{next(self.numbers):032x}",
            lock_timeout=0.1,
        )

    @initialize(old=st.lists(st.tuples(SCOPES, IDS), unique=True), fate=FATES)
    def begin(self, old: list[Key], fate: Fate | None) -> None:
        """Puts files of version 1 there and migrates them."""
        facts = {key: Entry(f"text of {key[1]}", 50 + len(key[1]), next(self.numbers)) for key in old}
        for scope, path in (HERE, "memory.json"), (THERE, "agents/research/memory.json"):
            found = [
                {"id": fact_id, "content": entry.text, "confidence": entry.confidence / 100}
                for (place, fact_id), entry in facts.items()
                if place == scope
            ]
            if found:
                self.disk.put(f"{BUCKET}/{path}", json.dumps({"version": "1.0", "facts": found}).encode())
        self.disk.settle()
        self.state = State(facts, Summary(""))
        self.run(0, fate, lambda repository: repository.migrate(USER), self.state)

    @rule(scope=SCOPES, fact_id=IDS, text=TEXTS, confidence=CONFIDENCES, who=WHO, fate=FATES)
    def create(
        self, scope: Scope, fact_id: str, text: str, confidence: int, who: int, fate: Fate | None
    ) -> None:
        entry = Entry(text, confidence, next(self.numbers))
        is_taken = (scope, fact_id) in self.state.facts
        self.run(
            who,
            fate,
            lambda repository: repository.upsert_fact(scope, draft(fact_id, entry)),
            self.state if is_taken else self.with_facts({(scope, fact_id): entry}),
            FactConflict if is_taken else None,
        )

    @rule(scope=SCOPES, fact_id=IDS, text=TEXTS, late=st.booleans(), who=WHO, fate=FATES)
    def update(self, scope: Scope, fact_id: str, text: str, late: bool, who: int, fate: Fate | None) -> None:
        before = self.state.facts.get((scope, fact_id))
        fact = self.processes[who][1].get_fact(scope, FactId(fact_id))
        assert (fact is None) is (before is None)
        revision = 1 if fact is None else fact.revision + late
        entry = Entry(text, 50, 0) if before is None else before._replace(text=text)
        is_refused = before is None or late
        self.run(
            who,
            fate,
            lambda repository: repository.upsert_fact(scope, draft(fact_id, entry), expected=revision),
            self.state if is_refused else self.with_facts({(scope, fact_id): entry}),
            FactConflict if is_refused else None,
        )

    @rule(scope=SCOPES, fact_id=IDS, who=WHO, fate=FATES)
    def delete(self, scope: Scope, fact_id: str, who: int, fate: Fate | None) -> None:
        kept = {key: entry for key, entry in self.state.facts.items() if key != (scope, fact_id)}
        self.run(
            who,
            fate,
            lambda repository: repository.delete_fact(scope, fact_id),
            self.state._replace(facts=kept),
        )

    @rule(scope=SCOPES, who=WHO, fate=FATES)
    def clear(self, scope: Scope, who: int, fate: Fate | None) -> None:
        gone = {key: entry for key, entry in self.state.facts.items() if key[0] == scope}
        self.run(
            who, fate, lambda repository: repository.clear(scope), self.replaced(gone, {}, self.state.summary)
        )

    @rule(who=WHO, fate=FATES)
    def clear_all(self, who: int, fate: Fate | None) -> None:
        after = self.replaced(self.state.facts, {}, Summary(""))
        self.run(who, fate, lambda repository: repository.clear_all(USER), after)

    @rule(scope=SCOPES, text=TEXTS, confidence=CONFIDENCES, who=WHO, fate=FATES)
    def create_below_a_cap(
        self, scope: Scope, text: str, confidence: int, who: int, fate: Fate | None
    ) -> None:
        entry = Entry(text, confidence, next(self.numbers))
        facts = {key: each for key, each in self.state.facts.items() if key[0] == scope}
        is_known = text in {each.text for each in facts.values()}
        is_over = len(facts) > CAP
        new_id = f"capped_{entry.born}"
        facts[scope, new_id] = entry
        evicted = sorted(facts, key=lambda key: (-facts[key].confidence, key[1]))[CAP:]
        kept = {**self.state.facts, (scope, new_id): entry}
        gone = {key: kept.pop(key) for key in evicted}
        gone.pop((scope, new_id), None)
        undoable = self.state.undoable
        if is_over:
            undoable = (*undoable, Operation(gone, {}, (self.state.summary, self.state.summary)))
        self.run(
            who,
            fate,
            lambda repository: repository.create_fact(scope, draft(new_id, entry), max_facts=CAP),
            self.state if is_known else self.state._replace(facts=kept, undoable=undoable),
            DuplicateFact if is_known else None,
        )

    @rule(scope=SCOPES, texts=st.dictionaries(IDS, TEXTS), summary=TEXTS, who=WHO, fate=FATES)
    def replace_all(
        self, scope: Scope, texts: dict[str, str], summary: str, who: int, fate: Fate | None
    ) -> None:
        """Imports."""
        before = {key: entry for key, entry in self.state.facts.items() if key[0] == scope}
        after: Facts = {}
        for number, (fact_id, text) in enumerate(texts.items()):
            key = (scope, fact_id)
            born = before[key].born if key in before else next(self.numbers)
            after[key] = Entry(text, 10 + number, born)
        written = {key: entry for key, entry in after.items() if before.get(key) != entry}
        gone = {key: entry for key, entry in before.items() if key in written or key not in after}
        drafts = [draft(key[1], entry) for key, entry in after.items()]
        summaries = Summaries.of({("user", "topOfMind"): Section(summary, "2026-01-01T00:00:00Z")})
        self.run(
            who,
            fate,
            lambda repository: repository.replace_all(scope, drafts, summaries),
            self.replaced(gone, written, Summary(summary)),
        )

    @rule(summary=TEXTS, who=WHO, fate=FATES)
    def summarise(self, summary: str, who: int, fate: Fate | None) -> None:
        patch = {"user": {"topOfMind": {"summary": summary}}}
        self.run(
            who,
            fate,
            lambda repository: repository.update_summaries(USER, patch),
            self.state._replace(summary=Summary(summary, next(self.numbers))),
        )

    @rule(who=WHO, fate=FATES)
    def take_back(self, who: int, fate: Fate | None) -> None:
        if not self.state.undoable:
            assert undo(self.processes[who][1], HERE.user) is None
            return
        last, facts = self.state.undoable[-1], dict(self.state.facts)
        for key in {**last.kept, **last.written}:
            if facts.get(key) != last.written.get(key):
                continue
            facts.pop(key, None)
            if key in last.kept:
                facts[key] = last.kept[key]
        before, after = last.summaries
        is_as_left = before != after and self.state.summary == after
        state = State(facts, before if is_as_left else self.state.summary, self.state.undoable[:-1])
        self.run(who, fate, lambda repository: undo(repository, HERE.user), state)

    @rule(who=WHO)
    def reopen(self, who: int) -> None:
        self.processes[who] = self.started()

    @rule(seed=SEEDS)
    def lose_power(self, seed: int) -> None:
        """Takes away what may be lost while nobody writes: nothing that was read."""
        self.disk = self.disk.crash_state(random.Random(seed)).disk  # noqa: S311 - no secret
        self.start_all()

    @invariant()
    def every_reader_sees_the_dictionary(self) -> None:
        for _, repository in self.processes:
            self.look(repository, (self.state,))

    def run(
        self,
        who: int,
        fate: Fate | None,
        operation: Callable[[MemoryRepository], object],
        after: State,
        refusal: type[DeerMemError] | None = None,
    ) -> None:
        """Lets a process make a change, or die over it; then it took place as a whole or not at all."""
        self.disk.advance(1)
        process, repository = self.processes[who]
        if fate is not None:
            process.stop_after(fate.changes)
        try:
            if refusal is None:
                operation(repository)
            else:
                with pytest.raises(refusal):
                    operation(repository)
        except SimulatedDeath:
            assert fate is not None
            self.bury(who, fate, after)
            return
        process.live_on()
        self.state = after

    def bury(self, who: int, fate: Fate, after: State) -> None:
        if fate.power_lost:
            self.disk = self.disk.crash_state(random.Random(fate.seed)).disk  # noqa: S311 - no secret
            self.start_all()
        else:
            self.processes[who] = self.started()
        self.state = self.look(self.started()[1], (self.state, after))

    def look(self, repository: MemoryRepository, allowed: tuple[State, ...]) -> State:
        """Reads everything and returns which of some states it is; a revision always shows the same."""
        snapshots = repository.snapshots([HERE, THERE])
        for scope in (HERE, THERE):
            assert repository.snapshot(scope).revision == snapshots[0].revision
        shown = {
            (snapshot.scope, str(fact.id)): (fact.content, round(fact.confidence * 100))
            for snapshot in snapshots
            for fact in snapshot.facts
        }
        section = snapshots[0].manifest.summaries["user", "topOfMind"].summary
        matching = [
            state
            for state in allowed
            if (shown, section)
            == ({key: entry[:2] for key, entry in state.facts.items()}, state.summary.text)
        ]
        assert matching, f"{shown}, {section!r} is none of {allowed}"
        revision = snapshots[0].revision
        assert revision >= self.last_revision
        self.last_revision = revision
        # Which of two equal states it is shows in the revision: the change took place if it grew.
        state = matching[-1] if revision not in self.seen else self.seen[revision]
        assert state in matching
        self.seen[revision] = state
        return state

    def with_facts(self, facts: Facts) -> State:
        return self.state._replace(facts={**self.state.facts, **facts})

    def replaced(self, gone: Facts, written: Facts, summary: Summary) -> State:
        """Returns the state after an operation that makes a safety copy."""
        facts = {key: entry for key, entry in self.state.facts.items() if key not in gone} | written
        undoable = self.state.undoable
        if gone or written or summary != self.state.summary:
            undoable = (*undoable, Operation(dict(gone), written, (self.state.summary, summary)))
        return State(facts, summary, undoable)


def draft(fact_id: str, entry: Entry) -> FactDraft:
    return FactDraft(entry.text, id=FactId(fact_id), confidence=entry.confidence / 100)


TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(max_examples=2 * settings().max_examples, stateful_step_count=30)
pytestmark = pytest.mark.crash


def an_undo_that_brings_nothing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(taking_back, "_facts", lambda *_: iter(()))


WRONG: Final = (
    no_sync_of_directories,
    no_sync_of_data,
    no_recovery,
    a_cache_that_never_looks,
    an_undo_that_brings_nothing_back,
)


@pytest.mark.parametrize("plant", WRONG, ids=lambda plant: plant.__name__)
def test_a_wrong_store_is_told_from_a_dictionary(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    found = settings(max_examples=400, stateful_step_count=30, phases=[Phase.generate])
    with pytest.raises((AssertionError, DeerMemError)):
        run_state_machine_as_test(MemoryMachine, settings=found)
