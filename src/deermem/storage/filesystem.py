"""The local file system behind the port: the only module that changes the disk."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from deermem.errors import InvalidInputError
from deermem.storage.lock_files import SystemLockFile
from deermem.storage.port import Directory, FileIdentity, FileTooLarge, UnexpectedFileType

_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
# O_NONBLOCK: opening a pipe that lies where a fact should be must not wait for a writer.
_READ_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_FOLLOW
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
# Answers of file systems that have no sync of directories at all (FUSE and some network mounts).
_NO_DIRECTORY_SYNC: Final = frozenset([errno.EINVAL, errno.ENOTSUP])
# Two hosts that create one file at the same instant: MooseFS answers EEXIST though O_EXCL was not asked for.
_LOCK_OPEN_TRIES: Final = 20
_LINK_ERRORS: Final = frozenset([errno.ELOOP, errno.ENOTDIR, errno.EMLINK])


class LocalFileSystem:
    """Stores below one directory of the machine's file system.

    New directories get `directory_mode`, new files `file_mode`, whatever the umask; the defaults
    keep everybody else out (guarantee G6). The root alone may be reached through a link: it is
    resolved once.

    Raises:
        InvalidInputError: The root is there and is no directory.
    """

    def __init__(
        self, root: str | os.PathLike[str], *, directory_mode: int = 0o700, file_mode: int = 0o600
    ) -> None:
        self._root = Path(os.path.realpath(os.fspath(root)))
        self.directory_mode = directory_mode
        self.file_mode = file_mode
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
        opened = self._open(str(self._root))
        device = opened.device()
        if self._device is None:
            self._device = device
        elif self._device != device:
            opened.close()
            raise OSError(errno.ESTALE, "the storage root is on another file system than before", self.root)
        return opened

    def make_root(self) -> None:
        """Makes the storage root and syncs the directories that got a new entry."""
        missing = [
            path for path in (self._root, *self._root.parents) if not path.exists()
        ]
        for path in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(path, self.directory_mode)
                os.chmod(path, self.directory_mode)
        for path in (self._root, *missing):
            if path.parent != path:
                _sync_directory_at(path.parent)

    def wait(self, seconds: float) -> None:
        """Sleeps."""
        time.sleep(seconds)

    def _open(self, path: str) -> PosixDirectory:
        return PosixDirectory(os.open(path, _DIRECTORY_FLAGS), ".", self)


class PosixDirectory:
    """Is an open directory; every call is relative to its descriptor, so nothing can be swapped under it."""

    def __init__(self, descriptor: int, path: str, owner: LocalFileSystem) -> None:
        self._fd = descriptor
        self._path = path
        self._owner = owner

    @property
    def path(self) -> str:
        """The path below the storage root."""
        return self._path

    def device(self) -> int:
        """Returns the number of the file system that the directory lies on."""
        return os.fstat(self._fd).st_dev

    def read(self, name: str, limit: int) -> tuple[bytes, FileIdentity]:
        """Reads a regular file."""
        try:
            descriptor = os.open(name, _READ_FLAGS, dir_fd=self._fd)
        except OSError as error:
            raise self._explained(error, name) from None
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
        status = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            raise UnexpectedFileType(self._at(name), "is not a regular file")
        return FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)

    def names(self) -> list[str]:
        """Returns the names of all entries."""
        return os.listdir(self._fd)

    def identities(self) -> dict[str, FileIdentity | None]:
        """Returns the identities of all entries."""
        found: dict[str, FileIdentity | None] = {}
        with os.scandir(self._fd) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                regular = stat.S_ISREG(status.st_mode)
                found[entry.name] = (
                    FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns) if regular else None
                )
        return found

    def is_empty(self) -> bool:
        """Tells whether there is no entry."""
        with os.scandir(self._fd) as entries:
            return next(entries, None) is None

    def child(self, name: str) -> PosixDirectory:
        """Opens a directory below this one; a link is refused."""
        try:
            descriptor = os.open(name, _DIRECTORY_FLAGS, dir_fd=self._fd)
        except OSError as error:
            raise self._explained(error, name) from None
        return PosixDirectory(descriptor, self._at(name), self._owner)

    def make_child(self, name: str) -> bool:
        """Makes a directory with the store's mode."""
        try:
            os.mkdir(name, self._owner.directory_mode, dir_fd=self._fd)
        except FileExistsError:
            return False
        with self.child(name) as made:
            os.fchmod(made._fd, self._owner.directory_mode)
        return True

    def create(self, name: str, data: bytes) -> FileIdentity:
        """Writes and syncs a new file."""
        descriptor = os.open(name, _CREATE_FLAGS, self._owner.file_mode, dir_fd=self._fd)
        try:
            try:
                if self._owner.file_mode != 0o600:
                    os.fchmod(descriptor, self._owner.file_mode)
                _write_all(descriptor, data)
                _sync_data(descriptor)
                status = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=self._fd)
            raise
        return FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """Moves a file into place."""
        if not isinstance(target, PosixDirectory):
            raise TypeError("both directories must be of one file system")
        os.rename(name, new_name, src_dir_fd=self._fd, dst_dir_fd=target._fd)

    def unlink(self, name: str) -> None:
        """Removes a file's name."""
        os.unlink(name, dir_fd=self._fd)

    def sync(self) -> None:
        """Makes the names in this directory durable."""
        _sync_directory(self._fd)

    def lock_file(self, name: str) -> SystemLockFile:
        """Opens or creates a lock file."""

        def reopen() -> int:
            return self._open_lock(name)

        def inode() -> int:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_ino

        return SystemLockFile(reopen, inode)

    def _open_lock(self, name: str) -> int:
        for attempt in range(_LOCK_OPEN_TRIES):
            try:
                return os.open(name, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, self._owner.file_mode, dir_fd=self._fd)
            except FileExistsError:
                if attempt == _LOCK_OPEN_TRIES - 1:
                    raise
                self._owner.wait(0.001 * attempt)
            except OSError as error:
                raise self._explained(error, name) from None
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Closes the descriptor."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

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
        if error.errno in _LINK_ERRORS or isinstance(error, IsADirectoryError):
            return UnexpectedFileType(self._at(name), "is a symbolic link or of the wrong kind")
        return error


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
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        _sync_directory(descriptor)
    except PermissionError:
        # A parent that belongs to somebody else, above a root that was made for us.
        pass
    finally:
        os.close(descriptor)
