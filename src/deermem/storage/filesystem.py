"""The local file system behind the port: the only module that changes the disk."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from deermem.errors import InvalidInputError
from deermem.storage.lock_files import SystemLockFile
from deermem.storage.port import Directory, FileIdentity, FileTooLarge, UnexpectedFileType

T = TypeVar("T")

_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
# O_NONBLOCK: opening a pipe that lies where a fact should be must not wait for a writer.
_READ_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_FOLLOW
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
# Answers of file systems that have no sync of directories at all (FUSE and some network mounts).
_NO_DIRECTORY_SYNC: Final = frozenset([errno.EINVAL, errno.ENOTSUP])
# Two hosts that create one file at once: MooseFS answers EEXIST though O_EXCL was not asked for.
_LOCK_OPEN_TRIES: Final = 20
_WRONG_KIND: Final = frozenset([errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO])
# A scanner, an indexer or a sync client holds the file: access denied, sharing violation, locked.
_WINDOWS_BUSY: Final = frozenset([5, 32, 33])
_WINDOWS_PAUSES: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.0, 1.0)


class LocalFileSystem:
    """Stores below one directory of the machine's file system.

    New directories get `directory_mode`, new files `file_mode`, whatever the umask; the defaults
    keep everybody else out (guarantee G6). The root alone may be reached through a link: it is
    resolved once.

    Args:
        root: The storage root.
        directory_mode: Permissions of new directories.
        file_mode: Permissions of new files.
        descriptors: Whether directories are reached by descriptor, so that nothing can be swapped
            under an open one. Windows has no such calls; there each name is checked before use.

    Raises:
        InvalidInputError: The root is there and is no directory.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        directory_mode: int = 0o700,
        file_mode: int = 0o600,
        descriptors: bool = os.open in os.supports_dir_fd,
    ) -> None:
        self._root = Path(os.path.realpath(os.fspath(root)))
        self.directory_mode = directory_mode
        self.file_mode = file_mode
        self._descriptors = descriptors
        self._device: int | None = None
        if self._root.exists() and not self._root.is_dir():
            raise InvalidInputError("storage_path", f"{self._root} is not a directory")

    @property
    def root(self) -> str:
        """The storage root as an absolute path."""
        return str(self._root)

    @property
    def windows_names(self) -> bool:
        """Whether names such as `CON` stand for devices."""
        return os.name == "nt"

    def open_root(self) -> Directory:
        """Opens the storage root.

        Raises:
            OSError: ESTALE, when another file system lies at the root than before: a mount that
                vanished looks like an empty directory and must not be taken for an empty store.
        """
        device = os.stat(self._root).st_dev
        if self._device is None:
            self._device = device
        elif self._device != device:
            raise OSError(errno.ESTALE, "the storage root is on another file system than before", self.root)
        if not self._descriptors:
            return PathDirectory(self, ".", str(self._root))
        return LocalDirectory(self, ".", os.open(self._root, _DIRECTORY_FLAGS))

    def make_root(self) -> None:
        """Makes the storage root and syncs the directories that have a new entry."""
        missing = [path for path in (self._root, *self._root.parents) if not path.exists()]
        for path in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(path, self.directory_mode)
                os.chmod(path, self.directory_mode)
        for path in missing or [self._root]:
            # A parent that belongs to somebody else cannot be opened, and got no entry from us.
            with suppress(PermissionError):
                _sync_directory_at(path.parent)

    def wait(self, seconds: float) -> None:
        """Sleeps."""
        time.sleep(seconds)


class LocalDirectory:
    """Is an open directory; every call is relative to its descriptor."""

    def __init__(self, owner: LocalFileSystem, path: str, descriptor: int) -> None:
        self._owner = owner
        self._path = path
        self.descriptor = descriptor

    @property
    def path(self) -> str:
        """The path below the storage root."""
        return self._path

    def read(self, name: str, limit: int) -> tuple[bytes, FileIdentity]:
        """Reads a regular file."""
        descriptor = self._open(name, _READ_FLAGS)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnexpectedFileType(self._at(name), "is not a regular file")
            if status.st_size > limit:
                raise FileTooLarge(self._at(name), f"is larger than {limit:,} bytes")
            data = _read_all(descriptor, status.st_size, limit)
        finally:
            os.close(descriptor)
        return data, FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)

    def identify(self, name: str) -> FileIdentity:
        """Returns a regular file's identity."""
        identity = _identity(os.stat(name, dir_fd=self.descriptor, follow_symlinks=False))
        if identity is None:
            raise UnexpectedFileType(self._at(name), "is not a regular file")
        return identity

    def names(self) -> list[str]:
        """Returns the names of all entries."""
        return os.listdir(self.descriptor)

    def identities(self) -> dict[str, FileIdentity | None]:
        """Returns the identities of all entries."""
        with os.scandir(self.descriptor) as entries:
            return {entry.name: _identity(entry.stat(follow_symlinks=False)) for entry in entries}

    def is_empty(self) -> bool:
        """Tells whether there is no entry."""
        with os.scandir(self.descriptor) as entries:
            return next(entries, None) is None

    def child(self, name: str) -> Directory:
        """Opens a directory below this one; a link is refused."""
        return LocalDirectory(self._owner, self._at(name), self._open(name, _DIRECTORY_FLAGS))

    def make_child(self, name: str) -> bool:
        """Makes a directory with the store's mode."""
        try:
            os.mkdir(name, self._owner.directory_mode, dir_fd=self.descriptor)
        except FileExistsError:
            return False
        descriptor = self._open(name, _DIRECTORY_FLAGS)
        try:
            os.chmod(descriptor, self._owner.directory_mode)
        finally:
            os.close(descriptor)
        return True

    def create(self, name: str, data: bytes) -> FileIdentity:
        """Writes and syncs a new file."""
        descriptor = self._open(name, _CREATE_FLAGS)
        try:
            try:
                _write_all(descriptor, data)
                _sync_data(descriptor)
                status = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            with suppress(OSError):
                self.unlink(name)
            raise
        return FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """Moves a file into place."""
        if not isinstance(target, LocalDirectory):
            raise TypeError("both directories must be of one file system")
        os.replace(name, new_name, src_dir_fd=self.descriptor, dst_dir_fd=target.descriptor)

    def unlink(self, name: str) -> None:
        """Removes a file's name."""
        os.unlink(name, dir_fd=self.descriptor)

    def sync(self) -> None:
        """Makes the names in this directory durable."""
        _sync_directory(self.descriptor)

    def lock_file(self, name: str) -> SystemLockFile:
        """Opens or creates a lock file."""
        return SystemLockFile(lambda: self._open_lock(name), lambda: self.identify(name).inode)

    def _open_lock(self, name: str) -> int:
        for attempt in range(_LOCK_OPEN_TRIES):
            with suppress(FileExistsError):
                return self._open(name, os.O_RDWR | os.O_CREAT | _NO_FOLLOW)
            self._owner.wait(0.001 * attempt)
        raise FileExistsError(errno.EEXIST, "the lock file can be neither opened nor created", self._at(name))

    def _open(self, name: str, flags: int) -> int:
        """Opens a name as what it should be; a new file gets the store's mode whatever the umask."""
        try:
            descriptor = os.open(name, flags, self._owner.file_mode, dir_fd=self.descriptor)
        except OSError as error:
            raise self._explained(error, name) from None
        if flags & os.O_CREAT and self._owner.file_mode & 0o077:
            os.chmod(descriptor, self._owner.file_mode)
        return descriptor

    def close(self) -> None:
        """Closes the descriptor."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _at(self, name: str) -> str:
        return name if self._path == "." else f"{self._path}/{name}"

    def _explained(self, error: OSError, name: str) -> OSError:
        """Returns the error, or says that the name is a link or of the wrong kind."""
        if error.errno in _WRONG_KIND or isinstance(error, IsADirectoryError):
            return UnexpectedFileType(self._at(name), "is a symbolic link or of the wrong kind")
        return error


class PathDirectory(LocalDirectory):
    """Is a directory of a system that has no calls relative to a descriptor: Windows.

    Names are checked for links before use. There is no sync of directories; NTFS keeps its own
    journal of names. What a scanner or an indexer holds for a moment is asked for again, for a
    bounded time, and the finished file is kept meanwhile.
    """

    def __init__(self, owner: LocalFileSystem, path: str, location: str) -> None:
        super().__init__(owner, path, -1)
        self._location = location

    def identify(self, name: str) -> FileIdentity:
        """Returns a regular file's identity."""
        identity = _identity(os.lstat(self._full(name)))
        if identity is None:
            raise UnexpectedFileType(self._at(name), "is not a regular file")
        return identity

    def names(self) -> list[str]:
        """Returns the names of all entries."""
        return os.listdir(self._location)

    def identities(self) -> dict[str, FileIdentity | None]:
        """Returns the identities of all entries; a listing on Windows knows no inode numbers."""
        return {name: _identity(os.lstat(self._full(name))) for name in self.names()}

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
        for pause in _WINDOWS_PAUSES:
            try:
                return call()
            except OSError as error:
                if getattr(error, "winerror", None) not in _WINDOWS_BUSY:
                    raise
            self._owner.wait(pause)
        return call()

    def _full(self, name: str) -> str:
        return os.path.join(self._location, name)


def _identity(status: os.stat_result) -> FileIdentity | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    return FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)


def _is_junction(path: str) -> bool:
    # Python 3.11 takes a junction for a directory; its target tells.
    return os.name == "nt" and os.path.realpath(path) != os.path.join(
        os.path.realpath(os.path.dirname(path)), os.path.basename(path)
    )


def _read_all(descriptor: int, size: int, limit: int) -> bytes:
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    # The file grew or shrank under us (an editor writes in place), or the system gave less at once.
    parts = [data]
    total = len(data)
    while data and total <= limit:
        data = os.read(descriptor, 1 << 20)
        parts.append(data)
        total += len(data)
    return b"".join(parts)


def _write_all(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    view = memoryview(data)
    while written < len(data):
        written += os.write(descriptor, view[written:])


def _sync_data(descriptor: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        # fsync on macOS leaves the data in the drive's cache; some file systems lack the stronger call.
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _sync_directory(descriptor: int) -> None:
    try:
        _sync_data(descriptor)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


def _sync_directory_at(path: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        _sync_directory(descriptor)
    finally:
        os.close(descriptor)
