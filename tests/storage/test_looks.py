"""One look at `memory.json` tells whether what is cached is current, and never waits or fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import MemoryRepository, Scope
from deermem.errors import CommitInDoubt
from deermem.format.layout import JOURNAL
from tests.support.watched import WatchedFileSystem, call_of

ALICE = Scope.of("alice")
BUCKET = Path("users", "alice")


@pytest.fixture
def disk(tmp_path: Path) -> WatchedFileSystem:
    return WatchedFileSystem(tmp_path)


@pytest.fixture
def store(disk: WatchedFileSystem) -> MemoryRepository:
    """Knows what it wrote."""
    store = MemoryRepository(disk)
    store.update_summaries("alice", {"user": {"topOfMind": "Tea"}})
    store.snapshot(ALICE)
    return store


def test_an_unchanged_memory_is_shown_by_four_calls(disk: WatchedFileSystem, store: MemoryRepository) -> None:
    known = store.snapshot(ALICE)
    disk.calls.clear()
    before = store.counters()
    assert store.snapshot_if_unchanged(ALICE) is known
    assert [call.kind for call in disk.calls] == ["open_root", "child", "child", "read"]
    after = store.counters()
    assert after["cache_hits"] == before["cache_hits"] + 1
    assert after["cache_misses"] == before["cache_misses"]


def test_a_writer_that_holds_the_lock_is_not_waited_for(
    tmp_path: Path, disk: WatchedFileSystem, store: MemoryRepository
) -> None:
    other = MemoryRepository(tmp_path)
    with other.engine.transaction(ALICE.user):
        assert store.snapshot_if_unchanged(ALICE) is store.snapshot(ALICE)
    assert not disk.waits


def of_nothing_known(_: Path, store: MemoryRepository) -> None:
    store.engine.cache.clear()


def of_another_writer(root: Path, _: MemoryRepository) -> None:
    MemoryRepository(root).update_summaries("alice", {"user": {"topOfMind": "Coffee"}})


def of_a_longer_file(root: Path, _: MemoryRepository) -> None:
    with (root / BUCKET / "memory.json").open("a") as file:
        file.write(" " * 1_000_000)


def of_other_bytes(root: Path, _: MemoryRepository) -> None:
    path = root / BUCKET / "memory.json"
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"Tea", b"Bad"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def of_a_missing_file(root: Path, _: MemoryRepository) -> None:
    (root / BUCKET / "memory.json").unlink()


def of_a_link(root: Path, _: MemoryRepository) -> None:
    path = root / BUCKET / "memory.json"
    path.rename(root / "elsewhere")
    path.symlink_to(root / "elsewhere")


def of_a_missing_bucket(root: Path, _: MemoryRepository) -> None:
    (root / BUCKET).rename(root / "elsewhere")


def of_a_link_to_the_bucket(root: Path, _: MemoryRepository) -> None:
    (root / BUCKET).rename(root / "elsewhere")
    (root / BUCKET).symlink_to(root / "elsewhere")


def of_a_missing_root(root: Path, _: MemoryRepository) -> None:
    root.rename(root.with_name("elsewhere"))


@pytest.mark.parametrize(
    "because",
    [
        of_nothing_known,
        of_another_writer,
        of_a_longer_file,
        of_other_bytes,
        of_a_missing_file,
        of_a_link,
        of_a_missing_bucket,
        of_a_link_to_the_bucket,
        of_a_missing_root,
    ],
)
def test_a_look_tells_nothing_because(
    tmp_path: Path, store: MemoryRepository, because: Callable[[Path, MemoryRepository], None]
) -> None:
    because(tmp_path, store)
    assert store.snapshot_if_unchanged(ALICE) is None


@pytest.mark.parametrize("kind", ["open_root", "child", "read"])
@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.EMFILE, errno.EACCES])
def test_a_disk_that_fails_makes_a_look_tell_nothing(
    disk: WatchedFileSystem, store: MemoryRepository, kind: str, number: int
) -> None:
    disk.fail(call_of(kind), number)
    assert store.snapshot_if_unchanged(ALICE) is None
    assert not disk.waits


def test_an_agent_that_is_not_cached_is_not_looked_for(store: MemoryRepository) -> None:
    assert store.snapshot_if_unchanged(Scope.of("alice", "helper")) is None


def test_a_user_without_a_memory_is_left_to_a_read(store: MemoryRepository) -> None:
    nobody = Scope.of("nobody")
    store.snapshot(nobody)
    assert store.snapshot_if_unchanged(nobody) is None


def test_where_a_user_is_required_the_shared_memory_is_not_shown(tmp_path: Path) -> None:
    shared = Scope.of(None)
    writer = MemoryRepository(tmp_path)
    writer.update_summaries(None, {"user": {"topOfMind": "Tea"}})
    strict = MemoryRepository(tmp_path, strict_user_scope=True)
    strict.engine.cache = writer.engine.cache
    writer.snapshot(shared)
    assert writer.snapshot_if_unchanged(shared) is not None
    assert strict.snapshot_if_unchanged(shared) is None


def test_a_commit_that_may_be_half_done_is_left_to_a_read(
    tmp_path: Path, disk: WatchedFileSystem, store: MemoryRepository
) -> None:
    """As with a cached read, the bytes of `memory.json` decide, and a commit in doubt is forgotten."""
    disk.fail(call_of("rename", "memory.json"), errno.EIO)
    with pytest.raises(CommitInDoubt):
        store.update_summaries("alice", {"user": {"topOfMind": "Coffee"}})
    assert (tmp_path / BUCKET / JOURNAL).exists()
    disk.heal()
    assert store.snapshot_if_unchanged(ALICE) is None
    assert store.snapshot(ALICE).manifest.revision == 2
