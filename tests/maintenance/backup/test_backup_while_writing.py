"""A backup of a user who is being written to is one committed state."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from deermem import LockTimeout, MemoryRepository
from deermem.maintenance.backup import verify
from deermem.model.identity import UserId
from deermem.storage.bucket import Bucket
from deermem.storage.engine import Engine
from deermem.storage.filesystem import LocalFileSystem
from tests.maintenance.backup.archives import files_below, restored, saved
from tests.support.processes import Peer
from tests.support.stores import ALICE, CODER, interrupt, store_with
from tests.support.watched import Call, CallTest, WatchedFileSystem, call_of
from tests.support.work import counted, keep_writing, prepare_counters


def as_owner(root: Path) -> WatchedFileSystem:
    return WatchedFileSystem(root)


def as_reader(root: Path) -> WatchedFileSystem:
    """Returns a disk of somebody who may not write, and so cannot have the lock."""
    disk = WatchedFileSystem(root)
    disk.fail(call_of("lock_file"), errno.EACCES)
    disk.wait = LocalFileSystem(root).wait  # type: ignore[method-assign]  # the writers need the time
    return disk


@pytest.mark.parametrize(("opened", "count"), [(as_owner, 5), (as_reader, 15)])
def test_every_backup_made_while_two_processes_write_is_one_committed_state(
    tmp_path: Path, opened: Callable[[Path], WatchedFileSystem], count: int
) -> None:
    prepare_counters(tmp_path / "store")
    archives: list[bytes] = []
    with ExitStack() as stack:
        writers = [
            stack.enter_context(Peer(keep_writing, tmp_path / "store", f"w{n}", 2.0)) for n in range(2)
        ]
        for peer in writers:
            assert peer.hear() == "ready"
            peer.tell()
        store = MemoryRepository(opened(tmp_path / "store"), lock_timeout=60)
        while len(archives) < count:
            archives.append(saved(store, "alice"))
        for peer in writers:
            assert peer.hear()[0], "a writer starved"
        archives.append(saved(store, "alice"))
    revisions = []
    for number, archive in enumerate(archives):
        assert verify(io.BytesIO(archive)).problems == []
        copy = MemoryRepository(tmp_path / str(number))
        restored(copy, archive)
        snapshot = copy.snapshot(ALICE)
        assert counted(snapshot) == counted(copy.snapshot(CODER))
        assert snapshot.revision == 1 + counted(snapshot) + len(snapshot.facts) - 1
        revisions.append(snapshot.revision)
    assert revisions == sorted(revisions)
    assert revisions[-1] > revisions[0], "nobody wrote meanwhile"


def write_while_a_fact_is_read(root: Path) -> bytes:
    """Saves a user, and lets somebody write when the backup comes to the first fact."""
    disk = WatchedFileSystem(root)
    other = MemoryRepository(root, lock_timeout=0.05)
    met: list[str] = []

    def write(call: Call) -> None:
        if call.kind == "read" and call.path.endswith(".md") and not met:
            met.append(call.path)
            try:
                other.edit_fact(ALICE, "b", {"content": "written meanwhile"})
                other.edit_fact(ALICE, "a", {"content": "written meanwhile"})
            except LockTimeout:
                met.append("refused")

    disk.on_call = write
    archive = saved(MemoryRepository(disk))
    assert met
    return archive


def is_one_state(archive: bytes, root: Path) -> bool:
    copy = MemoryRepository(root)
    restored(copy, archive)
    texts = {fact.content for fact in copy.snapshot(ALICE).facts}
    return texts == {"text of a", "text of b"} and copy.snapshot(ALICE).revision == 2


def test_a_writer_waits_while_its_users_files_are_read(tmp_path: Path) -> None:
    store_with(tmp_path / "a", "a", "b")
    assert is_one_state(write_while_a_fact_is_read(tmp_path / "a"), tmp_path / "b")


def test_a_backup_without_the_lock_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def unlocked(engine: Engine, user: UserId) -> Iterator[Bucket | None]:
        with engine.opened(user) as bucket:
            yield bucket

    monkeypatch.setattr(Engine, "maintenance", unlocked)
    store_with(tmp_path / "a", "a", "b")
    archive = write_while_a_fact_is_read(tmp_path / "a")
    monkeypatch.undo()
    assert not is_one_state(archive, tmp_path / "b")


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (call_of("sync", "users/alice"), "second"),
        (call_of("rename", "memory.json"), "second"),
        (call_of("rename", ".memory.journal.json"), "text of a"),
    ],
    ids=["journal not synced", "half applied", "not promised"],
)
def test_a_hot_journal_is_completed_first(tmp_path: Path, at: CallTest, text: str) -> None:
    store_with(tmp_path / "a", "a")
    interrupt(tmp_path / "a", lambda store: store.edit_fact(ALICE, "a", {"content": "second"}), at)
    archive = saved(MemoryRepository(tmp_path / "a"))
    names = {name.rpartition("/")[2] for name in files_below(tmp_path / "a")}
    assert ".memory.journal.json" not in names
    restored(MemoryRepository(tmp_path / "b"), archive)
    assert [fact.content for fact in MemoryRepository(tmp_path / "b").snapshot(ALICE).facts] == [text]
    assert not list((tmp_path / "b").rglob(".memory.journal.json"))
