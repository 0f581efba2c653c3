"""What the local file system does on Windows, run here with system calls that are made to answer as there."""

from __future__ import annotations

import errno
import importlib.util
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from deermem import CommitInDoubt, MemoryRepository
from deermem.model.identity import FactId
from deermem.storage import lock_files
from deermem.storage.filesystem import LocalFileSystem, calls, path_directory
from deermem.storage.port import UnexpectedFileType
from tests.support.stores import ALICE, BOB, JOURNAL, bucket_path, draft

ACCESS_DENIED, SHARING_VIOLATION, LOCK_VIOLATION = 5, 32, 33
BUSY = (ACCESS_DENIED, SHARING_VIOLATION, LOCK_VIOLATION)
DISK_FULL = 112
# How long a call is repeated before it is given up.
BOUND = 4.0


class PathFileSystem(LocalFileSystem):
    """Reaches directories by path, as on Windows; waiting costs no time."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, descriptors=False)
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


class Refusal(PermissionError):
    """Is an error as Windows tells it; the C library's `open` tells no code of Windows."""

    def __init__(self, code: int | None) -> None:
        super().__init__(errno.EACCES, "held by a scanner")
        if code is not None:
            self.winerror = code


class Scanner:
    """Holds files: the calls on them that it was set on fail so often, or until it lets go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.left = 0
        self.refused = 0

    def hold(self, call: str, ending: str, code: int | None, times: int = 1_000_000) -> None:
        """Refuses a call of `os` on paths with an ending, the new path of a rename included."""
        real: Callable[..., Any] = getattr(os, call)
        self.left = times

        def refusing(*arguments: Any, **named: Any) -> Any:
            paths = [str(each) for each in arguments[:2]]
            if self.left and any(path.endswith(ending) for path in paths):
                self.left -= 1
                self.refused += 1
                raise Refusal(code)
            return real(*arguments, **named)

        self._monkeypatch.setattr(os, call, refusing)

    def let_go(self) -> None:
        self.left = 0


@pytest.fixture
def scanner(monkeypatch: pytest.MonkeyPatch) -> Scanner:
    return Scanner(monkeypatch)


@pytest.fixture
def disk(tmp_path: Path) -> PathFileSystem:
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("x"))
    return PathFileSystem(tmp_path)


HELD = {
    "the journal's rename": ("replace", JOURNAL),
    "a fact's rename": ("replace", "x.md"),
    "the rename of memory.json": ("replace", "memory.json"),
    "the journal's removal": ("unlink", JOURNAL),
    "the opening of memory.json": ("open", "memory.json"),
    "the creation of a staged file": ("open", ".0"),
    "the opening of the lock file": ("open", ".memory.lock"),
}


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("code", BUSY)
def test_a_file_that_a_scanner_holds_for_a_moment_delays_a_write_and_fails_none(
    disk: PathFileSystem, scanner: Scanner, held: str, code: int
) -> None:
    call, ending = HELD[held]
    scanner.hold(call, ending, None if call == "open" else code, times=3)
    delta = MemoryRepository(disk).edit_fact(ALICE, "x", {"content": "two"})
    assert delta.revision == 2
    assert scanner.refused == 3
    assert len(disk.waits) == 3
    assert MemoryRepository(disk.root).snapshot(ALICE).by_id[FactId("x")].content == "two"


def test_a_write_that_is_never_let_before_its_commit_point_is_given_up_and_leaves_nothing(
    disk: PathFileSystem, scanner: Scanner
) -> None:
    scanner.hold("replace", JOURNAL, SHARING_VIOLATION)
    with pytest.raises(PermissionError) as refusal:
        MemoryRepository(disk).edit_fact(ALICE, "x", {"content": "two"})
    assert refusal.value.errno == errno.EACCES
    assert 1 < sum(disk.waits) < BOUND
    assert os.listdir(bucket_path(Path(disk.root)) / ".recovery") == []
    scanner.let_go()
    assert MemoryRepository(disk).edit_fact(ALICE, "x", {"content": "two"}).revision == 2


@pytest.mark.parametrize("name", ["x.md", "memory.json"])
def test_a_finished_file_that_cannot_be_moved_yet_is_kept_and_moved_by_the_next_access(
    disk: PathFileSystem, scanner: Scanner, name: str
) -> None:
    scanner.hold("replace", name, ACCESS_DENIED)
    with pytest.raises(CommitInDoubt):
        MemoryRepository(disk).edit_fact(ALICE, "x", {"content": "two"})
    # Once in the transaction and once more from its journal.
    assert 1 < sum(disk.waits) < 2 * BOUND
    assert (bucket_path(Path(disk.root)) / JOURNAL).exists()
    scanner.let_go()
    assert MemoryRepository(disk).snapshot(ALICE).by_id[FactId("x")].content == "two"
    assert not (bucket_path(Path(disk.root)) / JOURNAL).exists()


@pytest.mark.parametrize("call", ["replace", "unlink"])
def test_an_error_that_waiting_does_not_help_is_raised_at_once(
    disk: PathFileSystem, scanner: Scanner, call: str
) -> None:
    root = disk.open_root()
    root.create("a", b"")
    scanner.hold(call, "a", DISK_FULL)
    with pytest.raises(PermissionError):
        root.unlink("a") if call == "unlink" else root.rename("a", root, "b")
    assert disk.waits == []


def test_a_read_waits_for_a_file_that_is_held_and_then_shows_it(
    disk: PathFileSystem, scanner: Scanner
) -> None:
    scanner.hold("open", "x.md", None, times=2)
    assert MemoryRepository(disk).snapshot(ALICE).by_id.keys() == {"x"}
    assert len(disk.waits) == 2


class AsOnWindows:
    """Stands for `os` in one module, with the name that it has on Windows."""

    name = "nt"

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Notes for each sync whether it is one of a directory."""
    found: list[bool] = []
    real = os.fsync

    def noting(descriptor: int) -> None:
        found.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    return found


def test_on_windows_files_are_synced_and_no_directory_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: list[bool]
) -> None:
    monkeypatch.setattr(calls, "os", AsOnWindows())
    store = MemoryRepository(PathFileSystem(tmp_path / "new" / "root"))
    for scope in (ALICE, BOB):
        store.upsert_fact(scope, draft("x"))
    store.delete_fact(ALICE, "x")
    assert synced == [False] * len(synced)
    # A fact, memory.json and the journal of each create; the last two of the delete.
    assert len(synced) == 8


@pytest.mark.skipif(os.name == "nt", reason="there directories cannot be synced")
def test_elsewhere_directories_are_synced(tmp_path: Path, synced: list[bool]) -> None:
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("x"))
    assert True in synced


def test_a_junction_that_windows_calls_a_directory_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = PathFileSystem(tmp_path)
    root = disk.open_root()
    for name in ("plain", "junction"):
        root.make_child(name)
    real = os.path.realpath

    def realpath(path: str) -> str:
        return str(tmp_path / "elsewhere") if path.endswith("junction") else real(path)

    monkeypatch.setattr(path_directory, "os", AsOnWindows())
    monkeypatch.setattr(os.path, "realpath", realpath)
    root.child("plain").close()
    with pytest.raises(UnexpectedFileType):
        root.child("junction")


class Locking(ModuleType):
    """Stands for `msvcrt`: a byte of a file is one descriptor's, whether the file has it or not."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.owners: dict[tuple[int, int], int] = {}
        self.error = errno.EACCES
        self.broken = False

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        assert count == 1
        if self.broken:
            raise OSError(errno.EBADF, "no such descriptor")
        byte = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
        owner = self.owners.get(byte)
        if mode == self.LK_UNLCK:
            if owner != descriptor:
                raise OSError(errno.EACCES, "it is not locked")
            del self.owners[byte]
        elif owner is not None:
            raise OSError(self.error, "it is locked")
        else:
            self.owners[byte] = descriptor


@pytest.fixture
def locking() -> Locking:
    return Locking()


@pytest.fixture
def windows_locks(monkeypatch: pytest.MonkeyPatch, locking: Locking) -> ModuleType:
    """Imports the lock files once more, as on Windows."""
    spec = importlib.util.spec_from_file_location("lock_files_of_windows", lock_files.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as there:
        there.setattr(sys, "platform", "win32")
        there.setitem(sys.modules, "msvcrt", locking)
        if hasattr(os, "register_at_fork"):
            there.delattr(os, "register_at_fork")
        spec.loader.exec_module(module)
    return module


Opener = Callable[[], Any]


@pytest.fixture
def open_lock(tmp_path: Path, windows_locks: ModuleType) -> Opener:
    path = tmp_path / "lock"

    def reopen() -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    return lambda: windows_locks.SystemLockFile(reopen, lambda: path.stat().st_ino)


def test_a_lock_on_windows_is_a_byte_that_the_file_does_not_have(open_lock: Opener, tmp_path: Path) -> None:
    for _ in range(3):
        lock = open_lock()
        assert lock.acquire(0)
        lock.close()
    assert (tmp_path / "lock").stat().st_size == 0


def test_a_lock_on_windows_excludes_another_until_it_is_closed(open_lock: Opener) -> None:
    first, second = open_lock(), open_lock()
    assert first.acquire(0)
    assert not second.acquire(0)
    first.close()
    assert second.acquire(0)
    second.close()


def test_a_waiter_on_windows_asks_again_after_short_pauses_and_gets_what_becomes_free(
    open_lock: Opener, windows_locks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = open_lock(), open_lock()
    assert first.acquire(0)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 8:
            first.close()

    monkeypatch.setattr(windows_locks.time, "sleep", sleep)
    assert second.acquire(60)
    assert len(pauses) == 8
    assert max(pauses) <= 0.02
    second.close()


def test_a_waiter_on_windows_gives_up_in_time(open_lock: Opener) -> None:
    first, second = open_lock(), open_lock()
    assert first.acquire(0)
    assert not second.acquire(0.05)
    first.close()
    second.close()


def test_a_lock_call_that_fails_for_another_reason_is_no_busy_lock(
    open_lock: Opener, locking: Locking
) -> None:
    lock = open_lock()
    locking.broken = True
    with pytest.raises(OSError, match="no such descriptor"):
        lock.acquire(0)
    lock.close()
