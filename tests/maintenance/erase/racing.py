"""Processes that write and erase one user at once; each function has a pipe to the test first."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from deermem import MemoryRepository
from deermem.maintenance import erase
from deermem.maintenance.bucket_removal import remove_lock
from deermem.storage.bucket import Bucket
from deermem.storage.locks import UserLocks
from deermem.storage.port import Directory, FileSystem
from tests.support.stores import ALICE, draft


class Alone:
    """Raises in the process that comes second, where two believe that they hold the lock."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker
        self._mine = True

    def watch(self) -> None:
        """Has every holder of a lock in this process leave a mark while it holds it."""
        hold = UserLocks.hold

        @contextmanager
        def marked(locks: UserLocks, bucket: Directory) -> Iterator[None]:
            with hold(locks, bucket):
                os.close(os.open(self._marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                try:
                    yield
                finally:
                    if self._mine:
                        self._marker.unlink()
                    self._mine = True

        def unmarked(file_system: FileSystem, bucket: Bucket) -> bool:
            # From here on the lock may be another process's.
            self._marker.unlink()
            self._mine = False
            return remove_lock(file_system, bucket)

        UserLocks.hold = marked  # type: ignore[method-assign,assignment]  # this process exists for it
        erase.remove_lock = unmarked  # type: ignore[attr-defined]  # the same


def keep_writing(pipe: Connection, root: Path, marker: Path, name: str, seconds: float) -> None:
    """Adds facts; says what was acknowledged, with the revisions."""
    Alone(marker).watch()
    store = MemoryRepository(root, lock_timeout=60)
    pipe.send("ready")
    pipe.recv()
    acknowledged: dict[str, int] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        fact_id = f"{name}-{len(acknowledged)}"
        acknowledged[fact_id] = store.upsert_fact(ALICE, draft(fact_id)).revision
    pipe.send(acknowledged)


def keep_reading(pipe: Connection, root: Path, marker: Path) -> None:
    """Reads until it is told to stop; says how many different states it saw."""
    Alone(marker).watch()
    store = MemoryRepository(root, lock_timeout=60)
    pipe.send("ready")
    seen: dict[int, frozenset[str]] = {}
    while not pipe.poll():
        snapshot = store.snapshot(ALICE)
        ids = frozenset(fact.id for fact in snapshot.facts)
        assert seen.setdefault(snapshot.revision, ids) == ids, "one revision stands for two states"
        assert snapshot.revision or not ids
    pipe.recv()
    pipe.send(len(seen))


def keep_erasing(pipe: Connection, root: Path, marker: Path, seconds: float) -> None:
    """Erases the user again and again; says which facts went, and how often the bucket did."""
    Alone(marker).watch()
    store = MemoryRepository(root, lock_timeout=60)
    pipe.send("ready")
    pipe.recv()
    gone: set[str] = set()
    buckets = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        report = erase.erase_user(store, "alice")
        assert not report.damage, report.damage
        gone |= {Path(name).stem for name in report.removed if "/facts/" in name}
        buckets += report.bucket_removed
    pipe.send((gone, buckets))
