"""What other processes do in the tests; each function has a pipe to the test as its first argument."""

from __future__ import annotations

import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from deermem import (
    AtRevision,
    ChangeSet,
    DuplicateFact,
    FactConflict,
    FactDraft,
    LockTimeout,
    MemoryRepository,
    Scope,
    Snapshot,
    Upsert,
)
from deermem.model.identity import FactId
from tests.support.stores import ALICE, CODER, draft
from tests.support.watched import Call, WatchedFileSystem, call_of

COUNTER = FactId("counter")


def stop_inside(pipe: Connection, root: Path, kind: str, ending: str) -> None:
    """Writes a fact `held`, and stands still within the transaction until it is told to go on."""
    disk = WatchedFileSystem(root)

    def stop(call: Call) -> None:
        if call_of(kind, ending)(call):
            pipe.send("inside")
            pipe.recv()

    disk.on_call = stop
    MemoryRepository(disk).upsert_fact(ALICE, draft("held"))


def write_once(pipe: Connection, root: Path, fact_id: str, lock_timeout: float) -> None:
    """Writes a fact when it is told to, and says how long it took or that it waited in vain."""
    store = MemoryRepository(root, lock_timeout=lock_timeout)
    pipe.send("ready")
    pipe.recv()
    start = time.monotonic()
    try:
        store.upsert_fact(ALICE, draft(fact_id))
    except LockTimeout as timeout:
        pipe.send(timeout)
    else:
        pipe.send(time.monotonic() - start)


def prepare_counters(root: Path) -> None:
    """Writes the counter of each of two agents, in the first transaction of the user."""
    upserts = tuple(Upsert(scope.agent, FactDraft("0", id=COUNTER)) for scope in (ALICE, CODER))
    MemoryRepository(root).apply_changes("alice", ChangeSet(upserts=upserts))


def counted(snapshot: Snapshot) -> int:
    """Returns what a scope's counter says."""
    return int(snapshot.by_id[COUNTER].content)


def keep_writing(pipe: Connection, root: Path, name: str, seconds: float) -> None:
    """Adds facts, and counts in both agents at once; says what was acknowledged and the waits."""
    store = MemoryRepository(root, lock_timeout=60)
    pipe.send("ready")
    pipe.recv()
    created: list[str] = []
    waits: list[float] = []
    conflicts = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.monotonic()
        fact_id = f"{name}-{len(created)}"
        store.upsert_fact(ALICE, draft(fact_id))
        waits.append(time.monotonic() - start)
        created.append(fact_id)
        conflicts += _count_up(store)
    pipe.send((created, waits, conflicts))


def _count_up(store: MemoryRepository) -> int:
    """Adds one to both counters in one transaction, and returns how many races it lost before."""
    for conflicts in range(10_000):
        facts = [store.snapshot(scope).by_id[COUNTER] for scope in (ALICE, CODER)]
        upserts = tuple(
            Upsert(
                fact.scope.agent, fact.draft(content=str(int(fact.content) + 1)), AtRevision(fact.revision)
            )
            for fact in facts
        )
        with suppress(FactConflict):
            store.apply_changes("alice", ChangeSet(upserts=upserts))
            return conflicts
    raise AssertionError("never came first")


def keep_reading(pipe: Connection, root: Path) -> None:
    """Reads until it is told to stop; every read must be one of the states that `keep_writing` commits."""
    store = MemoryRepository(root, lock_timeout=60)
    pipe.send("ready")
    revisions: list[int] = []
    while not pipe.poll():
        mine, other = store.snapshot(ALICE), store.snapshot(CODER)
        assert mine.revision == len(mine.facts) + counted(mine), "facts of two revisions"
        assert other.revision != mine.revision or counted(other) == counted(mine), "half a transaction"
        page = store.list_facts(ALICE, limit=1_000, skip_corrupt=True)
        assert not page.problems
        revisions += [mine.revision, other.revision, page.revision]
    pipe.recv()
    assert revisions == sorted(revisions), "a revision went back"
    pipe.send(len(set(revisions)))


def create_below_a_cap(pipe: Connection, root: Path, name: str, rounds: int, max_facts: int) -> None:
    """Creates facts, half of them with texts that everybody uses; says the most that it ever saw."""
    store = MemoryRepository(root, lock_timeout=60)
    pipe.send("ready")
    pipe.recv()
    most = 0
    for number in range(rounds):
        content = f"shared {number}" if number % 2 else f"{name} {number}"
        with suppress(DuplicateFact):
            store.create_fact(ALICE, FactDraft(content, confidence=number / rounds), max_facts=max_facts)
        most = max(most, len(store.snapshot(ALICE).facts))
    pipe.send(most)


def read_and_write_another_user(pipe: Connection, root: Path, user_id: str, writes: int) -> None:
    """Writes facts of one user and says how many the user has."""
    store = MemoryRepository(root)
    scope = Scope.of(user_id)
    for number in range(writes):
        store.upsert_fact(scope, draft(f"f{number}"))
    pipe.send(len(store.snapshot(scope).facts))
