"""The lock file goes while it is locked, and neither who waits for it nor who comes next is misled."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from deermem import MemoryRepository
from deermem.maintenance.erase import erase_user
from deermem.storage.filesystem import LocalFileSystem
from deermem.storage.lock_table import locks_on, read_table
from tests.maintenance.erase.buckets import add_host_files, fill
from tests.support.processes import Peer
from tests.support.stores import ALICE, bucket_path
from tests.support.watched import Call, WatchedFileSystem, call_of
from tests.support.work import write_once


def newcomer_gets_the_lock(root: Path) -> bool:
    """Asks for the user's lock as any process would, without waiting."""
    with (
        LocalFileSystem(root).open_root() as top,
        top.child("users") as users,
        users.child("alice") as bucket,
    ):
        lock = bucket.lock_file(".memory.lock")
        try:
            return lock.acquire(0)
        finally:
            lock.close()


def test_nobody_gets_the_lock_before_nothing_but_the_lock_file_is_left(tmp_path: Path) -> None:
    fill(tmp_path)
    disk = WatchedFileSystem(tmp_path)
    changed: list[str] = []

    def come(call: Call) -> None:
        changing = call.kind in ("unlink", "remove_child", "rename", "create")
        if changing and call.path.startswith("users/alice/") and not call.path.endswith(".lock"):
            changed.append(call.path)
            assert not newcomer_gets_the_lock(tmp_path)

    disk.on_call = come
    erase_user(MemoryRepository(disk), "alice")
    assert "users/alice/memory.json" in changed
    assert not bucket_path(tmp_path).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who waits")
@pytest.mark.parametrize("kept", [False, True], ids=["bucket gone", "bucket kept"])
def test_a_writer_that_waits_for_the_lock_that_goes_writes_into_a_new_memory(
    tmp_path: Path, kept: bool
) -> None:
    fill(tmp_path)
    if kept:
        add_host_files(tmp_path)
    disk = WatchedFileSystem(tmp_path)
    with Peer(write_once, tmp_path, "waited", 60.0) as waiter:
        assert waiter.hear() == "ready"

        def let_wait(call: Call) -> None:
            if call_of("unlink", ".memory.fences.json")(call):
                status = os.stat(bucket_path(tmp_path) / ".memory.lock")
                waiter.tell()
                while not any(
                    entry.waiting for entry in locks_on(status.st_ino, status.st_dev, read_table() or ())
                ):
                    os.sched_yield()

        disk.on_call = let_wait
        seen = MemoryRepository(tmp_path).snapshot(ALICE).revision
        erase_user(MemoryRepository(disk), "alice")
        assert waiter.hear() < 30
    snapshot = MemoryRepository(tmp_path).snapshot(ALICE)
    assert snapshot.by_id.keys() == {"waited"}
    assert snapshot.revision > seen


def test_a_reader_that_waits_for_the_lock_that_goes_reads_nothing(tmp_path: Path) -> None:
    fill(tmp_path)
    eraser, reader = WatchedFileSystem(tmp_path), WatchedFileSystem(tmp_path)
    inside, asked = threading.Event(), threading.Event()
    found: list[int] = []

    def hold(call: Call) -> None:
        # The clear's journal is there: a reader has to wait.
        if call_of("rename", "memory.json")(call):
            inside.set()
            assert asked.wait(60)

    def ask(call: Call) -> None:
        if call.kind == "lock_file":
            asked.set()

    eraser.on_call, reader.on_call = hold, ask
    store = MemoryRepository(reader)

    def read() -> None:
        assert inside.wait(60)
        found.append(len(store.snapshot(ALICE).facts))

    thread = threading.Thread(target=read)
    thread.start()
    erase_user(MemoryRepository(eraser), "alice")
    thread.join(60)
    assert found == [0]
