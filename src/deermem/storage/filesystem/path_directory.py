"""A directory that is reached by its path, for Windows."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from deermem.storage.filesystem.calls import identity_of, status_of
from deermem.storage.filesystem.directory import READ_FLAGS, LocalDirectory, Owner
from deermem.storage.port import Directory, EntryStatus, FileIdentity, UnexpectedFileType

T = TypeVar("T")

# A scanner, an indexer or a sync client holds the file: access denied, sharing violation, locked.
_BUSY: Final = frozenset([5, 32, 33])
_PAUSES: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.0, 1.0)


class PathDirectory(LocalDirectory):
    """Is a directory of a system that has no calls relative to a descriptor: Windows.

    Names are checked for links before use. There is no sync of directories; NTFS keeps its own
    journal of names. What a scanner or an indexer holds for a moment is asked for again, for a
    bounded time, and the finished file is kept meanwhile.
    """

    def __init__(self, owner: Owner, path: str, location: str) -> None:
        super().__init__(owner, path, -1)
        self._location = location

    def read(self, name: str, limit: int) -> tuple[bytes, FileIdentity]:
        """Reads a regular file."""
        return self._read_open(self._open(name, READ_FLAGS), name, limit)

    def identify(self, name: str) -> FileIdentity:
        """Returns a regular file's identity."""
        identity = identity_of(os.lstat(self._full(name)))
        if identity is None:
            raise UnexpectedFileType(self._at(name), "is not a regular file")
        return identity

    def names(self) -> list[str]:
        """Returns the names of all entries."""
        return os.listdir(self._location)

    def _identities(self) -> dict[str, FileIdentity | None]:
        # A listing on Windows knows no inode numbers.
        return {name: identity_of(os.lstat(self._full(name))) for name in self.names()}

    def statuses(self) -> dict[str, EntryStatus]:
        """Returns what all entries are; the system has no permission bits."""
        found: dict[str, EntryStatus] = {}
        for name in self.names():
            with suppress(FileNotFoundError):
                found[name] = status_of(os.lstat(self._full(name)), 0o777, 0o777)
        return found

    def tighten(self, name: str) -> None:
        """Does nothing: the system has no permission bits."""

    def is_empty(self) -> bool:
        """Tells whether there is no entry."""
        with os.scandir(self._location) as entries:
            return next(entries, None) is None

    def child(self, name: str) -> Directory:
        """Opens a directory below this one; a link is refused."""
        if not stat.S_ISDIR(os.lstat(self._full(name)).st_mode) or _is_junction(self._full(name)):
            raise UnexpectedFileType(self._at(name), "is a link or of the wrong kind")
        return PathDirectory(self._owner, self._at(name), self._full(name))

    def make_child(self, name: str) -> bool:
        """Makes a directory."""
        try:
            os.mkdir(self._full(name), self._owner.directory_mode)
        except FileExistsError:
            return False
        return True

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """Moves a file into place, patiently."""
        if not isinstance(target, PathDirectory):
            raise TypeError("both directories must be of one file system")
        destination = target._full(new_name)  # noqa: SLF001 - of the same class
        self._patiently(lambda: os.replace(self._full(name), destination))

    def unlink(self, name: str) -> None:
        """Removes a file's name, patiently."""
        self._patiently(lambda: os.unlink(self._full(name)))

    def check_changeable(self) -> None:
        """Does nothing: what Windows allows shows only when it is tried."""

    def remove_child(self, name: str) -> None:
        """Removes an empty directory, patiently."""
        self._patiently(lambda: os.rmdir(self._full(name)))

    def sync(self) -> None:
        """Does nothing: the system offers no such call."""

    def close(self) -> None:
        """Does nothing: nothing is open."""

    def _open(self, name: str, flags: int) -> int:
        with suppress(FileNotFoundError):
            self.identify(name)
        path = self._full(name)
        return self._patiently(lambda: os.open(path, flags, self._owner.file_mode))

    def _patiently(self, call: Callable[[], T]) -> T:
        for pause in _PAUSES:
            try:
                return call()
            except OSError as error:
                if not _is_busy(error):
                    raise
            self._owner.wait(pause)
        return call()

    def _full(self, name: str) -> str:
        return os.path.join(self._location, name)


def _is_busy(error: OSError) -> bool:
    code = getattr(error, "winerror", None)
    # `os.open` goes through the C library, which has one word for all three and tells no code of Windows.
    return error.errno == errno.EACCES if code is None else code in _BUSY


def _is_junction(path: str) -> bool:
    # Python 3.11 takes a junction for a directory; its target tells.
    return os.name == "nt" and os.path.realpath(path) != os.path.join(
        os.path.realpath(os.path.dirname(path)), os.path.basename(path)
    )
