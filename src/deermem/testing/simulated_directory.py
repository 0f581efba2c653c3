"""An open directory of a simulated disk: names, files and their permissions, step by step."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from deermem.storage.port import (
    Directory,
    EntryKind,
    EntryStatus,
    FileIdentity,
    FileTooLarge,
    UnexpectedFileType,
)
from deermem.testing.disk_permissions import READ, SEARCH, WRITE
from deermem.testing.disk_state import FileInode
from deermem.testing.disk_steps import StepKind, disk_error
from deermem.testing.simulated_lock import SimulatedLockFile

if TYPE_CHECKING:
    from deermem.testing.simulated_filesystem import SimulatedFileSystem

T = TypeVar("T")


class SimulatedDirectory:
    """Is an open directory of a simulated disk."""

    def __init__(self, owner: SimulatedFileSystem, inode: int) -> None:
        self.owner = owner
        self._disk = owner.disk
        self.inode = inode
        owner.handles.add(self)

    @property
    def path(self) -> str:
        """The path below the storage root."""
        return self._disk.state.directories[self.inode].path

    def read(self, name: str, limit: int) -> tuple[bytes, FileIdentity]:
        """Returns a file's bytes and identity."""

        def effect() -> tuple[bytes, FileIdentity]:
            file = self._disk.file(self.inode, name)
            self.owner.rights.check(file.mode, READ, self.at(name))
            if len(file.data) > limit:
                raise FileTooLarge(self.at(name), f"is larger than {limit:,} bytes")
            return file.data, _identity(file)

        return self._perform(StepKind.READ, name, effect)

    def identify(self, name: str) -> FileIdentity:
        """Returns a file's identity."""
        return self._perform(StepKind.STAT, name, lambda: _identity(self._disk.file(self.inode, name)))

    def names(self) -> list[str]:
        """Returns the names of all entries."""
        return self._scan(lambda: list(self._disk.state.directories[self.inode].entries))

    def identities(self) -> dict[str, FileIdentity | None]:
        """Returns the identities of the files, and `None` for directories."""

        def effect() -> dict[str, FileIdentity | None]:
            self.allow(SEARCH)
            entries, files = self._disk.state.directories[self.inode].entries, self._disk.state.files
            return {
                name: _identity(files[inode]) if inode in files else None for name, inode in entries.items()
            }

        return self._scan(effect)

    def statuses(self) -> dict[str, EntryStatus]:
        """Returns what all entries are; the simulated disk knows no symbolic links."""
        disk, entries = self._disk, self._disk.state.directories[self.inode].entries

        def status(name: str, identity: FileIdentity | None) -> EntryStatus:
            if identity is None:
                mode = disk.state.directories[entries[name]].mode
                return EntryStatus(EntryKind.DIRECTORY, None, mode & ~disk.directory_mode)
            return EntryStatus(
                EntryKind.FILE, identity, disk.state.files[entries[name]].mode & ~disk.file_mode
            )

        return {name: status(name, identity) for name, identity in self.identities().items()}

    def tighten(self, name: str) -> None:
        """Takes the permissions away that entries of the store do not have."""

        def effect() -> None:
            inode = self._disk.entry(self.inode, name)
            file = self._disk.state.files.get(inode)
            mode = self._disk.state.directories[inode].mode if file is None else file.mode
            self.owner.rights.check(mode, READ, self.at(name))
            allowed = self._disk.directory_mode if file is None else self._disk.file_mode
            self._disk.state.set_mode(inode, mode & allowed)

        self._perform(StepKind.STAT, name, effect)

    def is_empty(self) -> bool:
        """Tells whether there is no entry."""
        return self._scan(lambda: not self._disk.state.directories[self.inode].entries)

    def child(self, name: str) -> SimulatedDirectory:
        """Opens a directory below this one."""

        def effect() -> int:
            inode = self._disk.entry(self.inode, name)
            if inode not in self._disk.state.directories:
                raise UnexpectedFileType(self.at(name), "is not a directory")
            self.owner.rights.check(self._disk.state.directories[inode].mode, READ, self.at(name))
            return inode

        return SimulatedDirectory(self.owner, self._perform(StepKind.OPEN, name, effect))

    def make_child(self, name: str) -> bool:
        """Makes a directory below this one, unless the name is taken."""

        def effect() -> bool:
            if self._disk.find(self.inode, name) is not None:
                return False
            self.allow(WRITE)
            self._disk.new_directory(self.inode, name)
            return True

        return self._perform(StepKind.MKDIR, name, lambda: self._if_present(effect))

    def create(self, name: str, data: bytes) -> FileIdentity:
        """Writes a new file in three steps: its name, its data, the sync of its data."""
        return self.create_all([(name, data)])[0]

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> list[FileIdentity]:
        """Writes new files, the name and the data of each, and then syncs one after the other."""
        inodes: list[int] = []
        try:
            for name, data in files:
                inodes.append(self._create_name(name))
                self._create_data(inodes[-1], name, data)
            for inode, (name, _) in zip(inodes, files, strict=True):
                self._sync_data(inode, name)
        except OSError:
            for name, _ in files[: len(inodes)]:
                with suppress(OSError):
                    self.unlink(name)
            raise
        return [_identity(self._disk.state.files[inode]) for inode in inodes]

    def _create_name(self, name: str) -> int:
        def effect() -> int:
            return self._if_present(lambda: self._new_file(name))

        return self._perform(StepKind.CREATE, name, effect)

    def _create_data(self, inode: int, name: str, data: bytes) -> None:
        self._perform(StepKind.WRITE, name, lambda: self._write(inode, name, data))

    def _sync_data(self, inode: int, name: str) -> None:
        state = self._disk.state
        self.owner.change(
            StepKind.FSYNC,
            self.at(name),
            lambda: state.sync_file(inode),
            when_failing=lambda: state.forsake_file(inode),
        )

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """Moves a file into place."""
        if not isinstance(target, SimulatedDirectory) or target.owner is not self.owner:
            raise TypeError("both directories must be of one file system")
        target.check(new_name)

        def effect() -> None:
            self._disk.file(self.inode, name)
            stored = self._disk.find(target.inode, new_name)
            if stored is not None:
                self._disk.file(target.inode, stored)
            self.allow(WRITE)
            target.allow(SEARCH | WRITE)
            old_name = self._disk.find(self.inode, name)
            self._disk.state.rename(self.inode, old_name or name, target.inode, stored or new_name)

        self._perform(StepKind.RENAME, name, effect, target=target.at(new_name))

    def unlink(self, name: str) -> None:
        """Removes a file's name."""

        def effect() -> None:
            self.allow(SEARCH)
            self._disk.file(self.inode, name)
            self.allow(WRITE)
            self._disk.state.unlink(self.inode, self._disk.find(self.inode, name) or name)

        self.check(name)
        self.owner.change(StepKind.UNLINK, self.at(name), effect)

    def check_changeable(self) -> None:
        """Makes sure that names in this directory can be changed."""
        self.allow(SEARCH | WRITE)

    def remove_child(self, name: str) -> None:
        """Removes an empty directory."""

        def effect() -> None:
            inode = self._disk.entry(self.inode, name)
            if inode not in self._disk.state.directories:
                raise UnexpectedFileType(self.at(name), "is not a directory")
            self.allow(WRITE)
            if self._disk.state.directories[inode].entries:
                raise disk_error(errno.ENOTEMPTY, self.at(name))
            self._disk.state.remove_directory(self.inode, self._disk.find(self.inode, name) or name)

        self._perform(StepKind.RMDIR, name, effect)

    def sync(self) -> None:
        """Makes the names in this directory durable."""
        self._check_open()
        self.owner.change(StepKind.SYNC, self.path, lambda: self._disk.state.sync_directory(self.inode))

    def lock_file(self, name: str) -> SimulatedLockFile:
        """Opens a lock file, and creates it where it is missing."""
        return SimulatedLockFile(self.owner, lambda: self._open_lock(name), self.at(name))

    def _open_lock(self, name: str) -> int:
        def effect() -> int:
            # Another process may have come first since the kind of this step was decided.
            if self._disk.find(self.inode, name) is None:
                return self._new_file(name)
            inode = self._disk.file_entry(self.inode, name)
            self.owner.rights.check(self._disk.state.files[inode].mode, READ | WRITE, self.at(name))
            return inode

        kind = StepKind.CREATE if self._disk.find(self.inode, name) is None else StepKind.OPEN
        return self._perform(kind, name, lambda: self._if_present(effect))

    def close(self) -> None:
        """Closes the handle."""
        self.owner.handles.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _perform(self, kind: StepKind, name: str, effect: Callable[[], T], *, target: str = "") -> T:
        self.check(name)

        def allowed() -> T:
            self.allow(SEARCH if kind is not StepKind.WRITE else 0)
            return effect()

        return self.owner.perform(kind, self.at(name), allowed, target=target)

    def _scan(self, effect: Callable[[], T]) -> T:
        self._check_open()
        return self.owner.perform(StepKind.SCAN, self.path, lambda: self._if_present(effect))

    def _if_present(self, effect: Callable[[], T]) -> T:
        """Lets what is done in a directory that was removed fail, as POSIX systems do."""
        if self._disk.state.is_removed(self.inode):
            raise disk_error(errno.ENOENT, self.path)
        return effect()

    def _new_file(self, name: str) -> int:
        if self._disk.find(self.inode, name) is None:
            self.allow(WRITE)
        return self._disk.new_file(self.inode, name)

    def allow(self, wanted: int) -> None:
        """Refuses what the permissions of this directory do not allow."""
        self.owner.rights.check(self._disk.state.directories[self.inode].mode, wanted, self.path)

    def at(self, name: str) -> str:
        """Returns the path of an entry below the storage root."""
        return self._disk.state.path_of(self.inode, name)

    def _check_open(self) -> None:
        if self not in self.owner.handles:
            raise disk_error(errno.EBADF, self.path)

    def check(self, name: str) -> None:
        """Refuses a closed handle and what cannot be a name."""
        self._check_open()
        self._disk.state.check_name(self.inode, name)

    def _write(self, inode: int, name: str, data: bytes) -> None:
        room = self._disk.room()
        self._disk.state.write_file(inode, data[:room], self._disk.mtime_ns())
        if room is not None and len(data) > room:
            raise disk_error(errno.ENOSPC, self.at(name))


def _identity(file: FileInode) -> FileIdentity:
    return FileIdentity(file.number, len(file.data), file.mtime_ns)
