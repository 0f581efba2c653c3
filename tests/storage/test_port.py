"""The disk port: one suite over every implementation of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deermem.storage.filesystem import LocalFileSystem
from deermem.storage.port import Directory, FileSystem, FileTooLarge, LockFile, UnexpectedFileType
from deermem.testing.simulated_disk import SimulatedDisk
from tests.support.watched import WatchedFileSystem

IMPLEMENTATIONS: dict[str, Callable[[Path], FileSystem]] = {
    "local": LocalFileSystem,
    "local by path": lambda path: LocalFileSystem(path, descriptors=False),
    "simulated": lambda _: SimulatedDisk().process(),
    "watched": WatchedFileSystem,
}


@pytest.fixture(params=IMPLEMENTATIONS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> FileSystem:
    return IMPLEMENTATIONS[request.param](tmp_path / "deep" / "root")


@pytest.fixture
def root(disk: FileSystem) -> Iterator[Directory]:
    disk.make_root()
    with disk.open_root() as opened:
        yield opened


def test_each_implementation_speaks_the_port(disk: FileSystem, root: Directory) -> None:
    assert isinstance(disk, FileSystem)
    assert isinstance(root, Directory)
    lock = root.lock_file("lock")
    assert isinstance(lock, LockFile)
    lock.close()


def test_a_root_that_was_not_made_is_absent(disk: FileSystem) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open_root()
    disk.make_root()
    disk.make_root()
    disk.open_root().close()


def test_a_created_file_is_read_back_with_the_identity_that_creation_told(root: Directory) -> None:
    identity = root.create("a", b"text")
    assert root.read("a", 4) == (b"text", identity)
    assert root.identify("a") == identity
    assert root.identities() == {"a": identity}
    assert identity.size == 4


def test_a_file_may_be_empty_or_hold_any_bytes(root: Directory) -> None:
    for name, data in (("empty", b""), ("bytes", bytes(range(256)) * 500)):
        root.create(name, data)
        assert root.read(name, 1_000_000)[0] == data


def test_creating_a_name_that_is_taken_fails_and_leaves_it_as_it_was(root: Directory) -> None:
    root.create("a", b"first")
    with pytest.raises(FileExistsError):
        root.create("a", b"second")
    assert root.read("a", 10)[0] == b"first"


def test_a_file_beyond_the_limit_is_not_read(root: Directory) -> None:
    root.create("a", b"12345")
    assert root.read("a", 5)[0] == b"12345"
    with pytest.raises(FileTooLarge):
        root.read("a", 4)


def test_an_absent_name_is_not_found_by_any_call(root: Directory) -> None:
    calls: list[Callable[[], object]] = [
        lambda: root.read("a", 1),
        lambda: root.identify("a"),
        lambda: root.child("a"),
        lambda: root.unlink("a"),
        lambda: root.remove_child("a"),
        lambda: root.rename("a", root, "b"),
    ]
    for call in calls:
        with pytest.raises(FileNotFoundError):
            call()


def test_a_name_of_the_wrong_kind_is_told_apart(root: Directory) -> None:
    root.create("file", b"")
    root.make_child("directory")
    calls: list[Callable[[], object]] = [
        lambda: root.read("directory", 1),
        lambda: root.identify("directory"),
        lambda: root.child("file"),
        lambda: root.lock_file("directory"),
    ]
    for call in calls:
        with pytest.raises(UnexpectedFileType):
            call()


def test_listing_shows_files_with_their_identity_and_directories_without(root: Directory) -> None:
    assert root.is_empty()
    assert (root.names(), root.identities()) == ([], {})
    identity = root.create("file", b"x")
    root.make_child("directory")
    assert not root.is_empty()
    assert sorted(root.names()) == ["directory", "file"]
    assert root.identities() == {"file": identity, "directory": None}


def test_making_a_directory_tells_whether_it_is_new(root: Directory) -> None:
    assert root.make_child("d") is True
    assert root.make_child("d") is False
    with root.child("d") as child:
        assert child.path == "d"
        child.make_child("e")
        assert child.child("e").path == "d/e"


def test_a_directory_is_removed_only_when_it_is_empty(root: Directory) -> None:
    root.make_child("d")
    with root.child("d") as child:
        child.create("a", b"")
        with pytest.raises(OSError, match="not empty"):
            root.remove_child("d")
        child.unlink("a")
    root.remove_child("d")
    assert root.is_empty()


def test_a_rename_moves_between_directories_and_replaces_what_is_there(root: Directory) -> None:
    root.make_child("d")
    identity = root.create("new", b"new")
    with root.child("d") as child:
        child.create("a", b"old")
        root.rename("new", child, "a")
        assert child.read("a", 10) == (b"new", identity)
        child.sync()
    assert root.names() == ["d"]
    root.sync()


def test_two_versions_of_a_file_have_different_identities(root: Directory) -> None:
    first = root.create("a", b"1")
    second = root.create("b", b"2")
    root.rename("b", root, "a")
    assert root.identify("a") == second
    assert first != second


def test_one_lock_excludes_another_until_it_is_closed(root: Directory) -> None:
    first, second = root.lock_file("lock"), root.lock_file("lock")
    assert first.acquire(0)
    assert not second.acquire(0)
    first.close()
    assert second.acquire(0)
    second.close()
