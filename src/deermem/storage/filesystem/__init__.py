"""The local file system behind the port: the only package that changes the disk."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path

from deermem.errors import InvalidInputError
from deermem.storage.filesystem.calls import sync_directory_at
from deermem.storage.filesystem.directory import DIRECTORY_FLAGS, LocalDirectory
from deermem.storage.filesystem.path_directory import PathDirectory
from deermem.storage.port import Directory

__all__ = ["LocalFileSystem"]


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
        self._root_path = str(self._root)
        self.directory_mode = directory_mode
        self.file_mode = file_mode
        self._descriptors = descriptors
        self.device: int | None = None
        if self._root.exists() and not self._root.is_dir():
            raise InvalidInputError("storage_path", f"{self._root} is not a directory")

    @property
    def root(self) -> str:
        """The storage root as an absolute path."""
        return self._root_path

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
        device = os.stat(self._root_path).st_dev
        if self.device is None:
            self.device = device
        elif self.device != device:
            raise OSError(errno.ESTALE, "the storage root is on another file system than before", self.root)
        if not self._descriptors:
            return PathDirectory(self, ".", self._root_path)
        return LocalDirectory(self, ".", os.open(self._root_path, DIRECTORY_FLAGS))

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
                sync_directory_at(path.parent)

    def accept_root(self) -> None:
        """Takes the file system that lies at the root from now on for the right one."""
        self.device = None

    def wait(self, seconds: float) -> None:
        """Sleeps."""
        time.sleep(seconds)
