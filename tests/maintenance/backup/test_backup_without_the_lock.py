"""Who may only read has no lock, as on a snapshot: what is saved is one committed state, or nothing."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from deermem import Corruption, LockTimeout, MemoryRepository
from deermem.maintenance import saving
from deermem.maintenance.backup import back_up, verify
from deermem.maintenance.saving import SavedUser
from deermem.model.identity import UserId
from tests.maintenance.backup.archives import TOOL, files_below, restored, saved
from tests.support.stores import (
    ALICE,
    BOB,
    CODER,
    JOURNAL,
    bucket_path,
    draft,
    fact_path,
    interrupt,
    store_with,
)
from tests.support.watched import CHANGING, Call, WatchedFileSystem, call_of


def read_only(root: Path, number: int = errno.EROFS) -> WatchedFileSystem:
    """Returns a disk on which nothing can be made or changed."""
    disk = WatchedFileSystem(root)
    disk.fail(lambda call: call.kind in CHANGING | {"lock_file", "tighten"}, number)
    return disk


def saved_of(disk: WatchedFileSystem, *user_ids: str) -> tuple[bytes, list[SavedUser]]:
    """Returns an archive of users, and what is said of each."""
    stream = io.BytesIO()
    users = [UserId.parse(user_id) for user_id in user_ids or ("alice",)]
    reports = back_up(MemoryRepository(disk, lock_timeout=1).engine, users, stream, tool=TOOL)
    return stream.getvalue(), reports


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM], ids=errno.errorcode.get)
def test_what_can_only_be_read_is_saved_as_it_would_be_under_the_lock(tmp_path: Path, number: int) -> None:
    store = store_with(tmp_path / "a", "a", "b")
    store.upsert_fact(CODER, draft("c"))
    store.upsert_fact(BOB, draft("d"))
    disk = read_only(tmp_path / "a", number)
    archive = saved(MemoryRepository(disk))
    restored(MemoryRepository(tmp_path / "b"), archive)
    assert files_below(tmp_path / "b") == files_below(tmp_path / "a")
    assert disk.waits == []
    assert users_in(archive) == users_in(saved(store))


def users_in(archive: bytes) -> list[object]:
    return [(user.user, user.revision, user.files) for user in verify(io.BytesIO(archive)).users]


def overtaken(root: Path, *changes: Callable[[MemoryRepository], object]) -> WatchedFileSystem:
    """Returns a disk that can only be read, and on which others write before the last fact is read."""
    disk = read_only(root)
    other = MemoryRepository(root)
    left = list(changes)

    def write(call: Call) -> None:
        if call.kind == "read" and call.path.endswith("/a.md") and left:
            left.pop(0)(other)

    disk.on_call = write
    return disk


def edit_both(text: str) -> Callable[[MemoryRepository], object]:
    def edit(store: MemoryRepository) -> None:
        for fact_id in ("a", "b"):
            store.edit_fact(ALICE, fact_id, {"content": text})

    return edit


def texts_in(archive: bytes, root: Path) -> set[str]:
    copy = MemoryRepository(root)
    restored(copy, archive)
    return {fact.content for fact in copy.snapshot(ALICE).facts}


def test_a_user_who_was_written_to_meanwhile_is_read_again(tmp_path: Path) -> None:
    store_with(tmp_path / "a", "a", "b")
    archive, (report,) = saved_of(overtaken(tmp_path / "a", edit_both("second"), edit_both("third")))
    assert report.problems == ()
    assert texts_in(archive, tmp_path / "b") == {"third"}


def test_a_backup_that_does_not_look_twice_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "is_settled", lambda *_: True)
    store_with(tmp_path / "a", "a", "b")
    archive, _ = saved_of(overtaken(tmp_path / "a", edit_both("second")))
    assert texts_in(archive, tmp_path / "b") == {"second", "text of b"}


def test_a_transaction_that_begins_meanwhile_is_noticed_by_its_journal(tmp_path: Path) -> None:
    store_with(tmp_path / "a", "a", "b")

    def begin(_: MemoryRepository) -> None:
        change = edit_both("half")
        interrupt(tmp_path / "a", change, call_of("rename", "memory.json"))

    def complete(store: MemoryRepository) -> None:
        store.snapshot(ALICE)

    disk = overtaken(tmp_path / "a", begin)
    disk_wait = disk.wait

    def wait(seconds: float) -> None:
        complete(MemoryRepository(tmp_path / "a"))
        disk_wait(seconds)

    disk.wait = wait  # type: ignore[method-assign]  # another process completes it while this one waits
    archive, (report,) = saved_of(disk)
    assert (report.problems, report.revision) == ((), 3)
    assert texts_in(archive, tmp_path / "b") == {"half", "text of b"}


def test_a_user_who_is_written_to_all_the_time_is_left_out_and_the_others_are_saved(tmp_path: Path) -> None:
    store_with(tmp_path / "a", "a", "b")
    store_with(tmp_path / "a", "c", scope=BOB)
    disk = overtaken(tmp_path / "a", *(edit_both(f"text {n}") for n in range(100)))
    archive, reports = saved_of(disk, "alice", "bob")
    assert [[type(each) for each in report.problems] for report in reports] == [[LockTimeout], []]
    assert [user.user.bucket for user in verify(io.BytesIO(archive)).users] == ["bob"]
    assert sum(disk.waits) >= 1


def test_what_a_dead_writer_left_is_refused_and_changed_by_nobody(tmp_path: Path) -> None:
    store_with(tmp_path / "a", "a", "b")
    store_with(tmp_path / "a", "c", scope=BOB)
    interrupt(tmp_path / "a", edit_both("half"), call_of("rename", "memory.json"))
    before = files_below(tmp_path / "a")
    archive, (of_alice, of_bob) = saved_of(read_only(tmp_path / "a"), "alice", "bob")
    (problem,) = of_alice.problems
    assert isinstance(problem, Corruption)
    assert problem.path == f"users/alice/{JOURNAL}"
    assert os.strerror(errno.EROFS) in problem.reason
    assert "snapshot" in problem.hint
    assert of_bob.problems == ()
    assert [user.user.bucket for user in verify(io.BytesIO(archive)).users] == ["bob"]
    assert files_below(tmp_path / "a") == before


def test_files_that_appear_before_there_is_a_memory_are_waited_for(tmp_path: Path) -> None:
    """A restore puts facts first and `memory.json` last."""
    store_with(tmp_path / "a", "a", "b")
    manifest = bucket_path(tmp_path / "a") / "memory.json"
    data = manifest.read_bytes()
    manifest.unlink()
    disk = read_only(tmp_path / "a")
    waits = disk.waits

    def finish(seconds: float) -> None:
        waits.append(seconds)
        manifest.write_bytes(data)

    disk.wait = finish  # type: ignore[method-assign]
    _, (report,) = saved_of(disk)
    assert (report.problems, report.revision) == ((), 2)


def test_facts_without_a_manifest_are_saved_and_told_of(tmp_path: Path) -> None:
    store_with(tmp_path / "a", "a")
    bucket_path(tmp_path / "a").joinpath("memory.json").unlink()
    archive, (report,) = saved_of(read_only(tmp_path / "a"))
    assert [str(each) for each in report.problems] == [
        "users/alice/memory.json: is missing although there are facts"
    ]
    assert verify(io.BytesIO(archive)).facts == 1


def test_a_fact_that_cannot_be_read_is_left_out_and_told_of(tmp_path: Path) -> None:
    store_with(tmp_path / "a", "a", "b")
    disk = read_only(tmp_path / "a")
    disk.fail(call_of("read", "/a.md"), errno.EACCES)
    archive, (report,) = saved_of(disk)
    assert [type(each) for each in report.problems] == [PermissionError]
    assert verify(io.BytesIO(archive)).facts == 1


def test_a_user_who_is_erased_meanwhile_is_told_of(tmp_path: Path) -> None:
    archive, (report,) = saved_of(read_only(tmp_path))
    assert [type(each).__name__ for each in report.problems] == ["BucketGone"]
    assert verify(io.BytesIO(archive)).users == []


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root can become somebody else")
def test_a_member_of_the_group_who_may_only_read_can_save_the_store() -> None:
    with TemporaryDirectory() as place:
        os.chmod(place, 0o755)  # noqa: S103 - the other user has to get there
        root = Path(place) / "store"
        store = store_with(root, "a", "b")
        saved(store)  # what has to be imported for that is out of the other user's reach
        for path in (root, *root.rglob("*")):
            os.chmod(path, 0o755 if path.is_dir() else 0o644)
        read, write = os.pipe()
        if os.fork() == 0:
            try:
                os.setuid(65534)
                os.write(write, saved(MemoryRepository(root)))
            except BaseException as error:  # noqa: BLE001 - told to the parent
                os.write(write, repr(error).encode())
            finally:
                os._exit(0)
        os.wait()
        archive = os.read(read, 1_000_000)
        os.close(read)
        os.close(write)
        assert verify(io.BytesIO(archive)).facts == 2
        assert fact_path(root, ALICE, "a").exists()
