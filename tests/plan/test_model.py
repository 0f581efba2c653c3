"""The repository against a dictionary: any sequence of operations, with other processes and restarts."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from deermem import (
    AtRevision,
    ChangeSet,
    Delete,
    DuplicateFact,
    FactConflict,
    FactDraft,
    FactNotFoundError,
    ManifestConflict,
    MemoryRepository,
    Scope,
    SummaryPatch,
    Upsert,
)
from deermem.model.identity import AgentName, FactId
from deermem.model.summaries import SECTION_KEYS, Section, Summaries
from tests.support.stores import ALICE, CODER
from tests.support.watched import Killed, WatchedFileSystem

SCOPES = st.sampled_from([ALICE, CODER])
IDS = st.sampled_from(["a", "b", "c"])
CONTENTS = st.sampled_from(["one", "two", "Two", "three\r\n---\nfour", "# five"])
CONFIDENCES = st.sampled_from([0.1, 0.5, 0.9])
SUMMARIES = st.dictionaries(st.sampled_from(SECTION_KEYS), st.sampled_from(["", "s", "t"]), max_size=2)


@dataclass
class Model:
    """Is what a user's memory should be: facts by agent and id as content, confidence, revision."""

    revision: int = 0
    facts: dict[tuple[str, str], tuple[str, float, int]] = field(default_factory=dict)
    summaries: dict[tuple[str, str], str] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)

    def scope(self, scope: Scope) -> dict[str, tuple[str, float, int]]:
        return {name: fact for (agent, name), fact in self.facts.items() if agent == scope.agent}

    def put(self, scope: Scope, name: str, content: str, confidence: float) -> bool:
        """Writes a fact and tells whether that changes anything."""
        before = self.facts.get((scope.agent, name))
        if before is not None and before[:2] == (content.strip(), confidence):
            return False
        revision = 1 if before is None else before[2] + 1
        self.facts[scope.agent, name] = (content.strip(), confidence, revision)
        return True

    def drop(self, scope: Scope, *names: str) -> bool:
        found = [self.facts.pop((scope.agent, name), None) for name in names]
        return any(fact is not None for fact in found)

    def commit(self, changed: bool) -> None:
        self.revision += changed


class Machine(RuleBasedStateMachine):
    """Lets two processes work on one user; each operation must do what the model says."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.model = Model()
        self.created = 0
        self.stores = [MemoryRepository(self.root), MemoryRepository(self.root)]

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @initialize(reads_first=st.booleans())
    def begin(self, reads_first: bool) -> None:
        if reads_first:
            self.stores[0].snapshot(ALICE)

    def store(self, number: int) -> MemoryRepository:
        return self.stores[number]

    @rule(number=st.integers(0, 1))
    def restart(self, number: int) -> None:
        self.stores[number] = MemoryRepository(self.root)

    @rule(number=st.integers(0, 1), scope=SCOPES)
    def reload(self, number: int, scope: Scope) -> None:
        assert self.store(number).reload(scope).revision == self.model.revision

    @rule(
        n=st.integers(0, 1),
        scope=SCOPES,
        name=IDS,
        content=CONTENTS,
        confidence=CONFIDENCES,
        stale=st.booleans(),
    )
    def upsert(self, n: int, scope: Scope, name: str, content: str, confidence: float, stale: bool) -> None:
        before = self.model.facts.get((scope.agent, name))
        draft = FactDraft(content, id=FactId(name), confidence=confidence)
        expected = (before[2] + stale) if before else (1 if stale else None)
        if stale:
            with pytest.raises(FactConflict):
                self.store(n).upsert_fact(scope, draft, expected=expected)
            return
        delta = self.store(n).upsert_fact(scope, draft, expected=expected)
        changed = self.model.put(scope, name, content, confidence)
        self.model.commit(changed)
        assert [fact.id for fact in delta.written] == [name] * changed
        assert delta.upserted[0].revision == self.model.facts[scope.agent, name][2]

    @rule(n=st.integers(0, 1), scope=SCOPES, name=IDS, content=CONTENTS, behind=st.integers(0, 3))
    def create_based_on_an_old_revision(
        self, n: int, scope: Scope, name: str, content: str, behind: int
    ) -> None:
        base = max(self.model.revision - behind, 0)
        draft = FactDraft(content, id=FactId(name))
        fenced = self.model.fences.get(scope.agent, 0) > base
        try:
            self.store(n).upsert_fact(scope, draft, expected_manifest_revision=base)
        except ManifestConflict:
            assert fenced
        except FactConflict:
            assert (scope.agent, name) in self.model.facts
        else:
            assert not fenced
            assert (scope.agent, name) not in self.model.facts
            self.model.commit(self.model.put(scope, name, content, 0.5))

    @rule(n=st.integers(0, 1), scope=SCOPES, name=IDS, content=CONTENTS)
    def edit(self, n: int, scope: Scope, name: str, content: str) -> None:
        before = self.model.facts.get((scope.agent, name))
        if before is None:
            with pytest.raises(FactNotFoundError):
                self.store(n).edit_fact(scope, name, {"content": content})
            return
        self.store(n).edit_fact(scope, name, {"content": content})
        self.model.commit(self.model.put(scope, name, content, before[1]))

    @rule(n=st.integers(0, 1), scope=SCOPES, name=IDS)
    def delete(self, n: int, scope: Scope, name: str) -> None:
        delta = self.store(n).delete_fact(scope, name)
        changed = self.model.drop(scope, name)
        self.model.commit(changed)
        assert delta.deleted == ((scope.agent, name),) * changed

    @rule(
        n=st.integers(0, 1),
        scope=SCOPES,
        content=CONTENTS,
        confidence=CONFIDENCES,
        cap=st.sampled_from([None, 1, 2, 3]),
    )
    def create(self, n: int, scope: Scope, content: str, confidence: float, cap: int | None) -> None:
        present = self.model.scope(scope)
        same = content.strip().casefold() in {fact[0].casefold() for fact in present.values()}
        if same:
            with pytest.raises(DuplicateFact):
                self.store(n).create_fact(scope, FactDraft(content, confidence=confidence), max_facts=cap)
            return
        self.created += 1
        new = FactDraft(content, id=FactId(f"new{self.created:03}"), confidence=confidence)
        delta, fact_id = self.store(n).create_fact(scope, new, max_facts=cap)
        assert new.id is not None
        ranked = sorted([(-fact[1], name) for name, fact in present.items()] + [(-confidence, str(new.id))])
        kept = {name for _, name in (ranked if cap is None or len(ranked) <= cap else ranked[:cap])}
        changed = self.model.drop(scope, *(name for name in present if name not in kept))
        if new.id in kept:
            changed = self.model.put(scope, new.id, content, confidence)
        self.model.commit(changed)
        assert fact_id == (new.id if new.id in kept else None)
        assert cap is None or len(self.model.scope(scope)) <= cap
        assert delta.revision == self.model.revision

    @rule(n=st.integers(0, 1), scope=SCOPES)
    def clear(self, n: int, scope: Scope) -> None:
        self.store(n).clear(scope)
        self.model.drop(scope, *self.model.scope(scope))
        self.model.commit(self.model.revision > 0)
        self.model.fences[scope.agent] = self.model.revision

    @rule(n=st.integers(0, 1))
    def clear_all(self, n: int) -> None:
        self.store(n).clear_all("alice")
        revision = self.model.revision + (self.model.revision > 0)
        self.model = Model(revision, fences={ALICE.agent: revision, CODER.agent: revision})

    @rule(n=st.integers(0, 1), patch=SUMMARIES)
    def summarise(self, n: int, patch: dict[tuple[str, str], str]) -> None:
        sections = {key: Section(text, "2026-07-19T00:00:00Z" if text else "") for key, text in patch.items()}
        self.store(n).update_summaries("alice", SummaryPatch(sections))
        after = {**self.model.summaries, **patch}
        after = {key: text for key, text in after.items() if text}
        self.model.commit(after != self.model.summaries)
        self.model.summaries = after

    @rule(n=st.integers(0, 1), scope=SCOPES, drafts=st.dictionaries(IDS, CONTENTS, max_size=3))
    def import_facts(self, n: int, scope: Scope, drafts: dict[str, str]) -> None:
        facts = [FactDraft(content, id=FactId(name)) for name, content in drafts.items()]
        self.store(n).replace_all(scope, facts, Summaries.of({}))
        gone = self.model.drop(scope, *(name for name in self.model.scope(scope) if name not in drafts))
        written = [self.model.put(scope, name, content, 0.5) for name, content in drafts.items()]
        self.model.commit(gone or any(written) or bool(self.model.summaries))
        self.model.summaries = {}

    @precondition(lambda self: len(self.model.facts) > 1)
    @rule(n=st.integers(0, 1), data=st.data())
    def change_several(self, n: int, data: st.DataObject) -> None:
        (agent, name), (other, gone) = data.draw(
            st.lists(st.sampled_from(sorted(self.model.facts)), min_size=2, max_size=2, unique=True)
        )
        revisions = [self.model.facts[key][2] for key in ((agent, name), (other, gone))]
        upsert = Upsert(
            AgentName(agent), FactDraft("several", id=FactId(name), confidence=1), AtRevision(revisions[0])
        )
        delete = Delete(AgentName(other), gone, AtRevision(revisions[1]))
        self.store(n).apply_changes("alice", ChangeSet((upsert,), (delete,)))
        self.model.put(replace(ALICE, agent=AgentName(agent)), name, "several", 1.0)
        del self.model.facts[other, gone]
        self.model.commit(True)

    @rule(scope=SCOPES, name=IDS, content=CONTENTS, number=st.integers(0, 25))
    def die_while_writing(self, scope: Scope, name: str, content: str, number: int) -> None:
        before = self.model.facts.get((scope.agent, name))
        disk = WatchedFileSystem(self.root)
        disk.die_at_change(number)
        draft = FactDraft(content, id=FactId(name))
        try:
            MemoryRepository(disk).upsert_fact(scope, draft, expected=before[2] if before else None)
        except Killed:
            revision = MemoryRepository(self.root).reload(scope).revision
            assert revision in (self.model.revision, self.model.revision + 1)
            if revision == self.model.revision:
                return
        changed = self.model.put(scope, name, content, 0.5)
        self.model.commit(changed)

    @invariant()
    def every_way_of_reading_shows_the_model(self) -> None:
        for store in self.stores:
            for scope in (ALICE, CODER):
                snapshot = store.snapshot(scope)
                found: dict[str, Any] = {
                    fact.id: (fact.content, fact.confidence, fact.revision) for fact in snapshot.facts
                }
                assert found == self.model.scope(scope)
                assert snapshot.revision == self.model.revision
                assert (store.get_fact(scope, "a") is not None) == ("a" in found)
        summaries = self.stores[0].get_summaries("alice")
        assert {key: summaries[key].summary for key in SECTION_KEYS if summaries[key].summary} == (
            self.model.summaries
        )
        assert not list(self.root.rglob(".memory.journal.json"))


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    # Each step reads everything from two stores; the deep profile takes its time.
    max_examples=max(settings().max_examples // 4, 1),
    stateful_step_count=20,
)
