"""The disk as the engine sees it: handles of directories, and names of one component.

The engine never builds a path out of parts that a caller or a file supplied: it walks from the
storage root, child by child, and no child is opened through a symbolic link. The same engine runs
on the local file system (`filesystem.py`) and on the simulated disk (`deermem.testing`).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self, runtime_checkable


class FileIdentity(NamedTuple):
    """Tells one version of a file from another without reading it; times are in nanoseconds."""

    inode: int
    size: int
    mtime_ns: int


# Thousands of these are made in one listing; the generated constructor takes twice the time.
make_identity: Final[Callable[[tuple[int, int, int]], FileIdentity]] = partial(tuple.__new__, FileIdentity)


class EntryKind(StrEnum):
    """Says what a name stands for, without following a link."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "symbolic link"
    OTHER = "device, pipe or socket"


class EntryStatus(NamedTuple):
    """Describes an entry of a directory; `identity` is `None` for what is no regular file.

    `excess` are the permission bits that entries which the store makes do not have; 0 for a link, and
    where the system has no such bits.
    """

    kind: EntryKind
    identity: FileIdentity | None
    excess: int


class UnexpectedFileType(OSError):
    """Says that a name is a link, a directory, a file or a device where something else belongs."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(errno.EINVAL, reason, path)
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[UnexpectedFileType], tuple[str, str]]:
        return type(self), (self.path, self.reason)


class FileTooLarge(UnexpectedFileType):
    """Says that a file is larger than any file of its kind may be."""


@runtime_checkable
class LockFile(Protocol):
    """Is an open lock file; it excludes other processes, not other threads of this one."""

    def acquire(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for the exclusive lock; tells whether it was got.

        Raises:
            OSError: The lock call failed for another reason than that somebody holds the lock.
        """
        ...

    def holder(self) -> str | None:
        """Describes the process that holds the lock, where the system tells."""
        ...

    def close(self) -> None:
        """Gives the lock back, if it is held, and closes the file."""
        ...


@runtime_checkable
class Directory(Protocol):
    """Is an open directory.

    Every name is one component: no separator, not `.` or `..`. An absent name raises
    `FileNotFoundError`; a name of the wrong kind raises `UnexpectedFileType`.
    """

    @property
    def path(self) -> str:
        """The path below the storage root, for messages only; `.` is the root."""
        ...

    def read(self, name: str, limit: int) -> tuple[bytes, FileIdentity]:
        """Returns a regular file's bytes and the identity of what was read.

        Raises:
            FileTooLarge: The file has more than `limit` bytes.
        """
        ...

    def identify(self, name: str) -> FileIdentity:
        """Returns a regular file's identity without reading it."""
        ...

    def names(self) -> list[str]:
        """Returns the names of all entries, in no particular order."""
        ...

    def identities(self) -> dict[str, FileIdentity | None]:
        """Returns the identities of all entries; `None` for what is no regular file."""
        ...

    def statuses(self) -> dict[str, EntryStatus]:
        """Returns what all entries are; for checks, which look closer than reads."""
        ...

    def tighten(self, name: str) -> None:
        """Takes the permissions from a file or directory that entries of the store do not have."""
        ...

    def is_empty(self) -> bool:
        """Tells whether there is no entry at all, without reading all of them."""
        ...

    def child(self, name: str) -> Directory:
        """Opens a directory below this one."""
        ...

    def make_child(self, name: str) -> bool:
        """Makes a directory below this one; `False` when it was there. Durable after `sync`."""
        ...

    def create(self, name: str, data: bytes) -> FileIdentity:
        """Writes a new file and syncs its data; its name is durable only after `sync`.

        When it raises, no file is left behind, as far as the disk allows.

        Raises:
            FileExistsError: The name is taken.
        """
        ...

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> list[FileIdentity]:
        """Does what `create` does for several files; each is synced after all of them were written.

        The disk can so work on one while the next is written.
        """
        ...

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """Moves a file, atomically replacing one that has the new name.

        Durable after `sync` of the target; the old name is gone for good after `sync` of this.
        """
        ...

    def unlink(self, name: str) -> None:
        """Removes a file's name; durable after `sync`."""
        ...

    def check_changeable(self) -> None:
        """Makes sure that files can be moved into this directory and removed from it.

        Raises:
            PermissionError: The process may not.
            OSError: EXDEV, when the directory is on another file system than the storage root.
        """
        ...

    def remove_child(self, name: str) -> None:
        """Removes an empty directory; durable after `sync`.

        Raises:
            OSError: ENOTEMPTY, when there is something in it.
        """
        ...

    def sync(self) -> None:
        """Makes every change of names in this directory durable."""
        ...

    def lock_file(self, name: str) -> LockFile:
        """Opens a lock file, and creates it where it is missing."""
        ...

    def close(self) -> None:
        """Closes the handle."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


@runtime_checkable
class FileSystem(Protocol):
    """Is the disk below one storage root."""

    @property
    def root(self) -> str:
        """The storage root as an absolute path, for messages."""
        ...

    @property
    def windows_names(self) -> bool:
        """Whether names such as `CON` stand for devices."""
        ...

    def open_root(self) -> Directory:
        """Opens the storage root.

        Raises:
            FileNotFoundError: There is none (yet).
        """
        ...

    def make_root(self) -> None:
        """Makes the storage root, and its parents, durable."""
        ...

    def accept_root(self) -> None:
        """Takes the file system that lies at the root from now on for the right one, as after a remount."""
        ...

    def wait(self, seconds: float) -> None:
        """Lets time pass before a read is tried again."""
        ...
