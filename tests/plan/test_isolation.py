"""Guarantee G2: every read shows exactly one committed state, wherever a writer comes in between."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import AtRevision, ChangeSet, Delete, MemoryRepository, SummaryPatch, Upsert
from deermem.model.identity import FactId
from tests.support.stores import ALICE, CODER, draft, store_with
from tests.support.watched import Call, WatchedFileSystem

State = tuple[int, frozenset[tuple[str, str]]]

BEFORE: State = (3, frozenset([("x", "text of x"), ("y", "text of y"), ("z", "text of z")]))
AFTER: State = (4, frozenset([("x", "two"), ("y", "two"), ("new", "text of new")]))


def change(store: MemoryRepository) -> None:
    """Updates two facts, deletes one and creates one, in one transaction."""
    updates = [Upsert(ALICE.agent, draft(name, "two"), AtRevision(1)) for name in ("x", "y")]
    store.apply_changes(
        "alice",
        ChangeSet(
            upserts=(*updates, Upsert(ALICE.agent, draft("new"))),
            deletes=(Delete(ALICE.agent, "z", AtRevision(1)),),
            summaries=SummaryPatch.parse({"user": {"topOfMind": "after"}}),
        ),
    )


def snapshot(store: MemoryRepository) -> State:
    shown = store.snapshot(ALICE)
    assert (shown.summaries["user", "topOfMind"].summary == "after") == (shown.revision == 4)
    return shown.revision, frozenset((fact.id, fact.content) for fact in shown.facts)


def listing(store: MemoryRepository) -> State:
    page = store.list_facts(ALICE, skip_corrupt=True)
    assert not page.problems
    return page.revision, frozenset((fact.id, fact.content) for fact in page.facts)


READS: dict[str, Callable[[MemoryRepository], State]] = {"snapshot": snapshot, "list_facts": listing}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a store of three facts, to copy."""
    root = tmp_path_factory.mktemp("base")
    store_with(root, "x", "y", "z")
    return root


class CommitAt(WatchedFileSystem):
    """Is a disk on which another process commits right before one call, counted from `start`."""

    def __init__(self, root: Path, moment: int) -> None:
        super().__init__(root)
        self.committed = False
        self._moment = moment

    def start(self) -> None:
        """Counts calls from here on."""
        self.calls.clear()
        self.on_call = self._come_in

    def _come_in(self, _: Call) -> None:
        if not self.committed and len(self.calls) > self._moment:
            self.committed = True
            change(MemoryRepository(self.root))


@pytest.mark.parametrize("cached", [False, True], ids=["cold", "cached"])
@pytest.mark.parametrize("read", READS)
def test_a_read_is_one_state_whenever_a_commit_comes_in(
    base: Path, tmp_path: Path, read: str, cached: bool
) -> None:
    states: list[State] = []
    for moment in range(1_000):
        root = Path(shutil.copytree(base, tmp_path / str(moment)))
        disk = CommitAt(root, moment)
        reader = MemoryRepository(disk)
        if cached:
            reader.snapshot(ALICE)
        disk.start()
        states.append(READS[read](reader))
        if not disk.committed:
            break
        assert snapshot(reader) == AFTER
    assert set(states) <= {BEFORE, AFTER}
    assert AFTER in states
    assert len(states) >= 4


def three_reads(store: MemoryRepository) -> list[bool]:
    """Reads three facts one after the other and tells of each whether it was read after the commit."""
    facts = [store.get_fact(ALICE, name) for name in ("x", "y", "z")]
    return [fact is None or fact.content == "two" for fact in facts]


def test_reading_facts_one_after_the_other_never_goes_back(base: Path, tmp_path: Path) -> None:
    seen: list[list[bool]] = []
    for moment in range(1_000):
        root = Path(shutil.copytree(base, tmp_path / str(moment)))
        disk = CommitAt(root, moment)
        disk.start()
        seen.append(three_reads(MemoryRepository(disk)))
        if not disk.committed:
            break
    assert all(new == sorted(new) for new in seen)
    assert {sum(new) for new in seen} == {0, 1, 2, 3}


def test_a_commit_in_another_agent_between_two_reads_shows_in_the_revision_of_both(tmp_path: Path) -> None:
    reader = store_with(tmp_path, "x")
    reader.snapshot(ALICE)
    MemoryRepository(tmp_path).upsert_fact(CODER, draft("c"))
    assert reader.snapshot(CODER).revision == 2
    assert reader.snapshot(ALICE).revision == 2
    assert reader.snapshot(ALICE).by_id.keys() == {FactId("x")}
