"""Guarantee G4: one writer per user, served in turn, and no lock that outlives its holder."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from functools import partial
from pathlib import Path

import pytest

from deermem import LockTimeout, MemoryRepository
from deermem.storage.filesystem import LocalFileSystem
from deermem.storage.locks import Turns
from deermem.storage.port import LockFile
from tests.support.forks import (
    fork_beside_a_call,
    fork_beside_a_change_of_the_cache,
    fork_beside_a_transaction,
    fork_beside_a_waiter,
    fork_within_a_transaction,
)
from tests.support.processes import Peer
from tests.support.stores import ALICE, bucket_path, draft, store_with
from tests.support.threads import PATIENCE, in_thread
from tests.support.work import stop_inside, write_once


class Queue(deque[threading.Lock]):
    """Tells when somebody joins."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = threading.Semaphore(0)

    def append(self, waiter: threading.Lock) -> None:
        super().append(waiter)
        self.joined.release()


def turns_with_queue() -> tuple[Turns, Queue]:
    turns, queue = Turns(), Queue()
    turns._waiters = queue
    return turns, queue


def test_threads_are_served_in_the_order_in_which_they_came() -> None:
    turns, queue = turns_with_queue()
    assert turns.acquire(0)
    served: list[int] = []

    def take_a_turn(number: int) -> None:
        assert turns.acquire(PATIENCE)
        served.append(number)
        turns.release()

    threads = [in_thread(partial(take_a_turn, number)) for number in range(8)]
    for thread in threads:
        thread.__enter__()
        assert queue.joined.acquire(timeout=PATIENCE)
    turns.release()
    for thread in threads:
        thread.__exit__(None, None, None)
    assert served == list(range(8))


def test_a_thread_that_gives_its_turn_back_cannot_take_it_again_before_one_who_waits() -> None:
    turns, queue = turns_with_queue()
    assert turns.acquire(0)
    go_on = threading.Event()

    def wait_and_hold() -> None:
        assert turns.acquire(PATIENCE)
        assert go_on.wait(PATIENCE)
        turns.release()

    with in_thread(wait_and_hold):
        assert queue.joined.acquire(timeout=PATIENCE)
        turns.release()
        assert not turns.acquire(0)
        go_on.set()


def test_one_who_gave_up_waiting_is_passed_over() -> None:
    turns, queue = turns_with_queue()
    assert turns.acquire(0)
    with in_thread(lambda: turns.acquire(0)):
        pass
    assert not queue
    turns.release()
    assert turns.acquire(0)


def test_a_thread_that_asks_for_its_own_turn_again_is_told_at_once() -> None:
    turns = Turns()
    assert turns.acquire(0)
    start = time.monotonic()
    assert not turns.acquire(PATIENCE)
    assert time.monotonic() - start < PATIENCE / 2


def test_a_time_out_names_the_lock_file_the_wait_and_the_holder(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    with Peer(stop_inside, tmp_path, "rename", "held.md") as holder:
        assert holder.hear() == "inside"
        with pytest.raises(LockTimeout) as timeout:
            MemoryRepository(tmp_path, lock_timeout=0.1).upsert_fact(ALICE, draft("y"))
        holder.tell()
    lock = str(bucket_path(tmp_path) / ".memory.lock")
    assert timeout.value.lock_file == lock
    assert 0.1 <= timeout.value.waited < 5
    assert lock in str(timeout.value)
    if sys.platform == "linux":
        assert f"process {holder.pid} (" in str(timeout.value.holder)
        assert str(timeout.value.holder) in str(timeout.value)
    assert MemoryRepository(tmp_path).get_fact(ALICE, "y") is None


def test_a_writer_waits_for_one_in_another_process_and_then_goes_on(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    with Peer(stop_inside, tmp_path, "rename", "held.md") as holder:
        assert holder.hear() == "inside"
        with in_thread(lambda: MemoryRepository(tmp_path).upsert_fact(ALICE, draft("y"))):
            holder.tell()
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"x", "held", "y"}


@pytest.mark.parametrize(
    ("kind", "ending", "found"), [("create", ".0", {"x", "y"}), ("rename", "held.md", {"x", "held", "y"})]
)
def test_the_lock_of_a_killed_holder_is_free_at_once_and_its_transaction_whole(
    tmp_path: Path, kind: str, ending: str, found: set[str]
) -> None:
    store_with(tmp_path, "x")
    with Peer(stop_inside, tmp_path, kind, ending) as holder, Peer(write_once, tmp_path, "y", 60.0) as waiter:
        assert waiter.hear() == "ready"
        assert holder.hear() == "inside"
        waiter.tell()
        holder.kill()
        assert waiter.hear() < 30
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == found


def test_a_wait_that_was_given_up_does_not_keep_the_lock_later(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    store = MemoryRepository(tmp_path, lock_timeout=0.05)
    with Peer(stop_inside, tmp_path, "rename", "held.md") as holder:
        assert holder.hear() == "inside"
        for _ in range(3):
            with pytest.raises(LockTimeout):
                store.upsert_fact(ALICE, draft("y"))
        holder.tell()
    assert MemoryRepository(tmp_path).upsert_fact(ALICE, draft("y")).revision == 3


def lock_file(root: Path) -> LockFile:
    return LocalFileSystem(root).open_root().lock_file("lock")


def test_a_lock_on_a_file_that_was_replaced_meanwhile_does_not_count(tmp_path: Path) -> None:
    first, second, third = lock_file(tmp_path), lock_file(tmp_path), lock_file(tmp_path)
    assert first.acquire(0)
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").touch()
    first.close()
    assert second.acquire(1)  # on the old file it would be alone
    fourth = lock_file(tmp_path)
    assert not fourth.acquire(0)
    assert not third.acquire(0)
    second.close()
    assert fourth.acquire(0)
    fourth.close()
    third.close()


def test_locking_does_not_grow_the_lock_file(tmp_path: Path) -> None:
    for _ in range(3):
        lock = lock_file(tmp_path)
        assert lock.acquire(0)
        lock.close()
    assert (tmp_path / "lock").stat().st_size == 0


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


@needs_fork
def test_a_forked_child_does_not_believe_that_it_holds_its_parents_lock(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    with Peer(fork_beside_a_transaction, tmp_path) as parent:
        while_held, afterwards, revision = parent.hear()
    assert while_held == "LockTimeout"
    assert (afterwards, revision) == ("3", 4)
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"x", "held", "child", "parent"}


@needs_fork
def test_a_child_that_is_forked_beside_a_change_of_the_cache_reads_and_writes(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    with Peer(fork_beside_a_change_of_the_cache, tmp_path) as parent:
        assert parent.hear() == "(['x'], 2)"


@needs_fork
def test_a_forked_child_does_not_wait_for_the_calls_of_its_parent(tmp_path: Path) -> None:
    with Peer(fork_beside_a_call, tmp_path) as parent:
        assert parent.hear() == ("True", True)


@needs_fork
def test_a_child_that_is_forked_within_a_transaction_cannot_commit_it(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    with Peer(fork_within_a_transaction, tmp_path) as parent:
        assert [parent.hear(), parent.hear()] == ["LockTimeout", "committed"]
    assert MemoryRepository(tmp_path).snapshot(ALICE).revision == 2


@needs_fork
def test_a_child_that_is_forked_beside_a_waiter_does_not_keep_the_lock_of_its_dead_parent(
    tmp_path: Path,
) -> None:
    store_with(tmp_path, "x")
    with Peer(stop_inside, tmp_path, "rename", "held.md") as holder:
        assert holder.hear() == "inside"
        with Peer(fork_beside_a_waiter, tmp_path) as parent:
            child = parent.hear()
            try:
                holder.tell()
                assert parent.hear() == "inside"
                parent.kill()
                MemoryRepository(tmp_path, lock_timeout=2).upsert_fact(ALICE, draft("y"))
            finally:
                os.kill(child, signal.SIGKILL)
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"x", "held", "mine", "y"}
