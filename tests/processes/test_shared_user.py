"""Several processes and threads on one user: nothing is lost, and nobody sees half a transaction."""

from __future__ import annotations

import statistics
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from deermem import DuplicateFact, FactDraft, MemoryRepository, Scope
from tests.support.processes import Peer
from tests.support.stores import ALICE, CODER, draft
from tests.support.threads import run_together
from tests.support.work import (
    counted,
    create_below_a_cap,
    keep_reading,
    keep_writing,
    prepare_counters,
    read_and_write_another_user,
)


def write_and_read_together(root: Path, writers: int, readers: int, seconds: float) -> list[float]:
    """Lets processes write and read one user, checks what is there in the end, and returns the waits."""
    prepare_counters(root)
    waits: list[float] = []
    created: list[str] = []
    counts = 0
    with ExitStack() as stack:
        readings = [stack.enter_context(Peer(keep_reading, root)) for _ in range(readers)]
        writings = [
            stack.enter_context(Peer(keep_writing, root, f"w{number}", seconds)) for number in range(writers)
        ]
        for peer in (*readings, *writings):
            assert peer.hear() == "ready"
        for peer in writings:
            peer.tell()
        for peer in writings:
            acknowledged, own_waits, _ = peer.hear()
            assert acknowledged, "a writer starved"
            created += acknowledged
            counts += len(acknowledged)
            waits += own_waits
        for peer in readings:
            peer.tell()
        assert all(peer.hear() > 1 for peer in readings)
    snapshot = MemoryRepository(root).snapshot(ALICE)
    assert snapshot.by_id.keys() == {*created, "counter"}
    assert counted(snapshot) == counts
    assert counted(MemoryRepository(root).snapshot(CODER)) == counts
    assert snapshot.revision == 1 + len(created) + counts
    return waits


def test_two_processes_that_write_one_user_lose_nothing_and_a_reader_sees_only_committed_states(
    tmp_path: Path,
) -> None:
    write_and_read_together(tmp_path, writers=2, readers=1, seconds=2)


@pytest.mark.stress
def test_two_processes_that_write_one_user_for_half_a_minute_lose_nothing(tmp_path: Path) -> None:
    write_and_read_together(tmp_path, writers=2, readers=2, seconds=30)


@pytest.mark.stress
def test_of_eight_writers_none_starves(tmp_path: Path) -> None:
    waits = write_and_read_together(tmp_path, writers=8, readers=0, seconds=20)
    assert max(waits) < 20 * statistics.median(waits)


def test_concurrent_creators_never_exceed_the_cap_nor_store_a_text_twice(tmp_path: Path) -> None:
    with ExitStack() as stack:
        peers = [
            stack.enter_context(Peer(create_below_a_cap, tmp_path, name, 24, 10)) for name in ("a", "b", "c")
        ]
        for peer in peers:
            assert peer.hear() == "ready"
        for peer in peers:
            peer.tell()
        assert [peer.hear() for peer in peers] == [10, 10, 10]
    facts = MemoryRepository(tmp_path).snapshot(ALICE).facts
    assert len(facts) == 10
    assert len({fact.content for fact in facts}) == 10
    # The cap keeps the highest confidence, and confidence grows with the number in the text.
    assert min(fact.confidence for fact in facts) > 0.5


def test_processes_that_write_different_users_do_not_disturb_each_other(tmp_path: Path) -> None:
    users = ("alice", "bob", "a@b.c")
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(read_and_write_another_user, tmp_path, user, 5)) for user in users]
        assert [peer.hear() for peer in peers] == [5, 5, 5]
    store = MemoryRepository(tmp_path)
    assert [store.snapshot(Scope.of(user)).revision for user in users] == [5, 5, 5]


def test_threads_of_one_store_lose_nothing(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path, lock_timeout=60)
    store.upsert_fact(ALICE, draft("first"))

    def write(name: str) -> None:
        for number in range(6):
            delta = store.upsert_fact(ALICE, draft(f"{name}-{number}"))
            assert store.get_fact(ALICE, f"{name}-{number}") == delta.written[0]

    def read() -> None:
        seen = 0
        while seen < 25:
            snapshot = store.snapshot(ALICE)
            assert len(snapshot.facts) == snapshot.revision
            assert snapshot.revision >= seen
            seen = snapshot.revision

    run_together(*(partial(write, name) for name in "abcd"), read)
    assert len(MemoryRepository(tmp_path).snapshot(ALICE).facts) == 25


def test_threads_with_a_store_each_lose_nothing(tmp_path: Path) -> None:
    stores = [MemoryRepository(tmp_path, lock_timeout=60) for _ in range(3)]
    stores[0].upsert_fact(ALICE, draft("first"))

    def write(number: int) -> None:
        for round_ in range(6):
            stores[number].upsert_fact(ALICE, draft(f"{number}-{round_}"))
            snapshot = stores[number].snapshot(ALICE)
            assert len(snapshot.facts) == snapshot.revision

    run_together(*(partial(write, number) for number in range(3)))
    assert {store.snapshot(ALICE).revision for store in stores} == {19}


def test_threads_that_create_the_same_text_store_it_once(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path, lock_timeout=60)
    outcomes: Counter[str] = Counter()

    def create() -> None:
        try:
            store.create_fact(ALICE, FactDraft("the same"))
        except DuplicateFact:
            outcomes["duplicate"] += 1
        else:
            outcomes["created"] += 1

    run_together(*[create] * 5)
    assert outcomes == {"created": 1, "duplicate": 4}
    assert len(store.snapshot(ALICE).facts) == 1
