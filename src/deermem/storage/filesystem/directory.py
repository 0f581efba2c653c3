"""A directory that is reached by its descriptor, so that nothing can be swapped under it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Protocol, Self

from deermem.storage.filesystem.calls import (
    identity_of,
    read_on,
    start_writing_back,
    status_of,
    sync_data,
    sync_directory,
    write_all,
)
from deermem.storage.lock_files import SystemLockFile
from deermem.storage.port import (
    Directory,
    EntryStatus,
    FileIdentity,
    FileTooLarge,
    UnexpectedFileType,
    make_identity,
)

NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
DIRECTORY_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | NO_FOLLOW
# O_NONBLOCK: opening a pipe that lies where a fact should be must not wait for a writer.
READ_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | NO_FOLLOW
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW
# Two hosts that create one file at once: MooseFS answers EEXIST though O_EXCL was not asked for.
_LOCK_OPEN_TRIES: Final = 20
_LISTING_TRIES: Final = 3
# So many descriptors a transaction holds open at once, however many files it writes.
_BATCH: Final = 64
_WRONG_KIND: Final = frozenset([errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO])


class Owner(Protocol):
    """Is what a directory knows of its file system: the modes of what it makes, and how to wait."""

    directory_mode: int
    file_mode: int
    device: int | None

    def wait(self, seconds: float) -> None:
        """Lets time pass."""
        ...


class LocalDirectory:
    """Is an open directory; every call is relative to its descriptor."""

    def __init__(self, owner: Owner, path: str, descriptor: int) -> None:
        self._owner = owner
        self._path = path
        self.descriptor = descriptor

    @property
    def path(self) -> str:
        """The path below the storage root."""
        return self._path

    def read(self, name: str, limit: int) -> tuple[bytes, FileIdentity]:
        """Reads a regular file."""
        try:
            descriptor = os.open(name, READ_FLAGS, dir_fd=self.descriptor)
        except OSError as error:
            raise self._explained(error, name) from None
        return self._read_open(descriptor, name, limit)

    def _read_open(self, descriptor: int, name: str, limit: int) -> tuple[bytes, FileIdentity]:
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnexpectedFileType(self._at(name), "is not a regular file")
            if status.st_size > limit:
                raise FileTooLarge(self._at(name), f"is larger than {limit:,} bytes")
            data = os.read(descriptor, status.st_size + 1)
            if len(data) != status.st_size:
                data = read_on(descriptor, data, limit)
        finally:
            os.close(descriptor)
        return data, make_identity((status.st_ino, status.st_size, status.st_mtime_ns))

    def identify(self, name: str) -> FileIdentity:
        """Returns a regular file's identity."""
        identity = identity_of(os.stat(name, dir_fd=self.descriptor, follow_symlinks=False))
        if identity is None:
            raise UnexpectedFileType(self._at(name), "is not a regular file")
        return identity

    def names(self) -> list[str]:
        """Returns the names of all entries."""
        return os.listdir(self.descriptor)

    def identities(self) -> dict[str, FileIdentity | None]:
        """Returns the identities of all entries."""
        for _ in range(_LISTING_TRIES):
            # A temporary file of an editor or a sync client may vanish while it is being listed.
            with suppress(FileNotFoundError):
                return self._identities()
        return self._identities()

    def _identities(self) -> dict[str, FileIdentity | None]:
        with os.scandir(self.descriptor) as entries:
            # `identity_of`, without its call: a refresh does this for every file.
            return {
                entry.name: make_identity((status.st_ino, status.st_size, status.st_mtime_ns))
                if stat.S_ISREG(status.st_mode)
                else None
                for entry in entries
                for status in (entry.stat(follow_symlinks=False),)
            }

    def statuses(self) -> dict[str, EntryStatus]:
        """Returns what all entries are; one that vanishes meanwhile is left out."""
        found: dict[str, EntryStatus] = {}
        with os.scandir(self.descriptor) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    found[entry.name] = status_of(status, self._owner.directory_mode, self._owner.file_mode)
        return found

    def tighten(self, name: str) -> None:
        """Takes the permissions away that entries of the store do not have."""
        descriptor = self._open(name, READ_FLAGS)
        try:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            allowed = self._owner.directory_mode if is_directory else self._owner.file_mode
            os.chmod(descriptor, mode & (allowed | 0o7000))
        finally:
            os.close(descriptor)

    def is_empty(self) -> bool:
        """Tells whether there is no entry."""
        with os.scandir(self.descriptor) as entries:
            return next(entries, None) is None

    def child(self, name: str) -> Directory:
        """Opens a directory below this one; a link is refused."""
        return LocalDirectory(self._owner, self._at(name), self._open(name, DIRECTORY_FLAGS))

    def make_child(self, name: str) -> bool:
        """Makes a directory with the store's mode."""
        try:
            os.mkdir(name, self._owner.directory_mode, dir_fd=self.descriptor)
        except FileExistsError:
            return False
        descriptor = self._open(name, DIRECTORY_FLAGS)
        try:
            os.chmod(descriptor, self._owner.directory_mode)
        finally:
            os.close(descriptor)
        return True

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> list[FileIdentity]:
        """Writes and syncs several new files, a batch at a time."""
        identities: list[FileIdentity] = []
        try:
            for start in range(0, len(files), _BATCH):
                identities += self._create_batch(files[start : start + _BATCH])
        except BaseException:
            for name, _ in files[: len(identities)]:
                with suppress(OSError):
                    self.unlink(name)
            raise
        return identities

    def _create_batch(self, files: Sequence[tuple[str, bytes]]) -> list[FileIdentity]:
        descriptors: list[int] = []
        try:
            try:
                for name, data in files:
                    descriptors.append(self._open(name, _CREATE_FLAGS))
                    write_all(descriptors[-1], data)
                    start_writing_back(descriptors[-1])
                identities = []
                for descriptor in descriptors:
                    sync_data(descriptor)
                    status = os.fstat(descriptor)
                    identities.append(make_identity((status.st_ino, status.st_size, status.st_mtime_ns)))
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
        except BaseException:
            for name, _ in files[: len(descriptors)]:
                with suppress(OSError):
                    self.unlink(name)
            raise
        return identities

    def create(self, name: str, data: bytes) -> FileIdentity:
        """Writes and syncs a new file."""
        return self._create_batch([(name, data)])[0]

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """Moves a file into place."""
        if not isinstance(target, LocalDirectory):
            raise TypeError("both directories must be of one file system")
        os.replace(name, new_name, src_dir_fd=self.descriptor, dst_dir_fd=target.descriptor)

    def unlink(self, name: str) -> None:
        """Removes a file's name."""
        os.unlink(name, dir_fd=self.descriptor)

    def check_changeable(self) -> None:
        """Makes sure that names in this directory can be changed."""
        effective = os.access in os.supports_effective_ids
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=self.descriptor, effective_ids=effective):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self._path)
        if self._owner.device not in (None, os.fstat(self.descriptor).st_dev):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), self._path)

    def remove_child(self, name: str) -> None:
        """Removes an empty directory."""
        os.rmdir(name, dir_fd=self.descriptor)

    def sync(self) -> None:
        """Makes the names in this directory durable."""
        sync_directory(self.descriptor)

    def lock_file(self, name: str) -> SystemLockFile:
        """Opens or creates a lock file."""
        return SystemLockFile(lambda: self._open_lock(name), lambda: self.identify(name).inode)

    def _open_lock(self, name: str) -> int:
        for attempt in range(_LOCK_OPEN_TRIES):
            with suppress(FileExistsError):
                return self._open(name, os.O_RDWR | os.O_CREAT | NO_FOLLOW)
            self._owner.wait(0.001 * attempt)
        raise FileExistsError(errno.EEXIST, "the lock file can be neither opened nor created", self._at(name))

    def _open(self, name: str, flags: int) -> int:
        """Opens a name as what it should be; a new file gets the store's mode whatever the umask."""
        try:
            descriptor = os.open(name, flags, self._owner.file_mode, dir_fd=self.descriptor)
        except OSError as error:
            raise self._explained(error, name) from None
        if flags & os.O_CREAT and self._owner.file_mode & 0o077:
            # A lock file may be another group member's, who gave it its mode and alone can do so.
            with suppress(PermissionError):
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
