"""The local file system: modes, other devices, and calls that fail."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from deermem import MemoryRepository
from deermem.storage.filesystem import LocalFileSystem
from tests.support.processes import Peer
from tests.support.stores import ALICE, BOB, bucket_path, draft, fact_path, open_descriptors, store_with, tree
from tests.support.watched import WatchedFileSystem, call_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes and devices are those of POSIX")


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(root: Path) -> tuple[set[int], set[int]]:
    """Returns the modes of directories and of files, the root included."""
    paths = [root, *root.rglob("*")]
    directories = {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()}
    return directories, {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()}


def fill(store: MemoryRepository) -> None:
    store.upsert_fact(ALICE, draft("x"))
    store.edit_fact(ALICE, "x", {"content": "two"})
    store.upsert_fact(BOB, draft("y"))
    store.clear(BOB)


@pytest.mark.usefixtures("umask")
def test_directories_are_made_for_their_owner_alone_and_so_are_files(tmp_path: Path) -> None:
    root = tmp_path / "new" / "root"
    fill(MemoryRepository(root))
    assert modes(tmp_path / "new") == ({0o700}, {0o600})


@pytest.mark.usefixtures("umask")
def test_the_modes_can_be_set_for_a_group_that_shares_the_store(tmp_path: Path) -> None:
    root = tmp_path / "root"
    fill(MemoryRepository(LocalFileSystem(root, directory_mode=0o2770, file_mode=0o660)))
    assert modes(root) == ({0o2770}, {0o660})


def test_a_root_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir(mode=0o750)
    root.chmod(0o750)
    fill(MemoryRepository(root))
    assert stat.S_IMODE(root.stat().st_mode) == 0o750


def write_as_another_member(pipe: Connection, root: Path) -> None:
    with tempfile.TemporaryDirectory() as warm_up:  # another user may not be able to import anything
        fill(MemoryRepository(warm_up))
        MemoryRepository(warm_up).snapshot(ALICE)
    os.setgroups([])
    os.setgid(4_242)
    os.setuid(4_243)
    disk = LocalFileSystem(root, directory_mode=0o2770, file_mode=0o660)
    pipe.send(MemoryRepository(disk).edit_fact(ALICE, "x", {"content": "by another"}).revision)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become others")
def test_every_member_of_the_group_can_write_what_another_member_made() -> None:
    root = Path(tempfile.mkdtemp())  # below it everybody may pass, unlike pytest's own directories
    try:
        os.chmod(root, 0o2770)  # noqa: S103 - for its owner and its group
        os.chown(root, 4_242, 4_242)
        disk = LocalFileSystem(root, directory_mode=0o2770, file_mode=0o660)
        MemoryRepository(disk).upsert_fact(ALICE, draft("x"))
        with Peer(write_as_another_member, root) as peer:
            assert peer.hear() == 2
    finally:
        shutil.rmtree(root)


def test_another_file_system_at_the_root_is_not_taken_for_the_store(tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm")  # noqa: S108 - another device than that of the tests' directory
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    mount = tmp_path / "mount"
    store = store_with(mount / "root", "x")
    mount.rename(tmp_path / "unmounted")
    other = Path(tempfile.mkdtemp(dir=elsewhere))
    try:
        other.joinpath("root").mkdir()
        mount.symlink_to(other)
        for operation in (lambda: store.snapshot(ALICE), lambda: store.upsert_fact(BOB, draft("y"))):
            with pytest.raises(OSError, match="another file system") as error:
                operation()
            assert error.value.errno == errno.ESTALE
        assert not list(other.joinpath("root").iterdir())
    finally:
        shutil.rmtree(other)
    mount.unlink()
    tmp_path.joinpath("unmounted").rename(mount)
    assert store.snapshot(ALICE).by_id.keys() == {"x"}


def test_a_file_whose_sync_failed_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = LocalFileSystem(tmp_path).open_root()
    before = open_descriptors()

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, f"cannot sync {descriptor}")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="cannot sync"):
        root.create("a", b"text")
    assert root.is_empty()
    assert open_descriptors() == before


class Ghost:
    """Stands for an entry that is gone when it is looked at."""

    name = ".x.md.swp"

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        raise FileNotFoundError(errno.ENOENT, f"gone ({follow_symlinks})", self.name)


def haunt(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Lets every listing of a directory show a file that vanishes, for some times."""
    scandir = os.scandir
    left = [times]

    @contextmanager
    def listing(directory: int) -> Iterator[Iterator[object]]:
        with scandir(directory) as entries:
            left[0] -= 1
            yield chain(entries, [Ghost()] if left[0] >= 0 else [])

    monkeypatch.setattr(os, "scandir", listing)


def test_a_temporary_file_that_vanishes_while_it_is_listed_fails_no_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = LocalFileSystem(tmp_path).open_root()
    identity = root.create("a", b"text")
    haunt(monkeypatch, 2)
    assert root.identities() == {"a": identity}


def test_a_file_that_stays_listed_and_cannot_be_found_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network client may answer so of a file that is there: leaving it out would lose it."""
    root = LocalFileSystem(tmp_path).open_root()
    haunt(monkeypatch, 1_000)
    with pytest.raises(FileNotFoundError):
        root.identities()


UNREADABLE = {
    "memory.json": "alice/memory.json",
    "a fact": "x.md",
    "the journal": ".memory.journal.json",
    "the bucket": "users/alice",
}


@pytest.mark.parametrize("error", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ENAMETOOLONG])
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_read_error_is_never_taken_for_nothing_there(tmp_path: Path, name: str, error: int) -> None:
    store_with(tmp_path, "x")
    disk = WatchedFileSystem(tmp_path)
    store = MemoryRepository(disk)
    for kind in ("read", "child", "identify"):
        disk.fail(call_of(kind, UNREADABLE[name]), error)
    before = tree(tmp_path)
    with pytest.raises(OSError, match=os.strerror(error)) as refusal:
        store.snapshot(ALICE)
    assert refusal.value.errno == error
    with pytest.raises(OSError, match=os.strerror(error)):
        store.edit_fact(ALICE, "x", {"content": "two"})
    assert tree(tmp_path) == before
    disk.heal()
    assert store.edit_fact(ALICE, "x", {"content": "two"}).revision == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_a_permission_error(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    fact_path(tmp_path, ALICE, "x").chmod(0)
    with pytest.raises(PermissionError):
        store.snapshot(ALICE)


def test_no_operation_leaves_a_descriptor_open(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    operations: list[Callable[[], object]] = [
        lambda: store.snapshot(ALICE),
        lambda: store.edit_fact(ALICE, "x", {"content": "two"}),
        lambda: store.clear_all("alice"),
        store.list_users,
        lambda: store.snapshot(BOB),
    ]
    operations[0]()
    before = open_descriptors()
    for operation in operations:
        operation()
    assert open_descriptors() == before


def test_corrupt_and_foreign_files_leave_no_descriptor_open(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    fact_path(tmp_path, ALICE, "x").write_bytes(b"\0")
    bucket_path(tmp_path).joinpath("agents", "__default__", "facts", "zz").touch()
    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(Exception, match=r"x\.md"):
            store.snapshot(ALICE)
    assert open_descriptors() == before
