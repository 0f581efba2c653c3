"""A disk that forgets what was not synced, shared by simulated processes.

    disk = SimulatedDisk()
    repository = MemoryRepository(disk.process(), ...)
    for loss in disk.crash_states():
        survivor = loss.disk      # what may be there after the power came back

The model is in `disk_state` and `power_loss`; `docs/internals/testing.md` states its rules and limits.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from deermem.storage.port import UnexpectedFileType
from deermem.testing.disk_permissions import OWNER, Rights
from deermem.testing.disk_state import DIRECTORY_MODE, FILE_MODE, TOP, DiskState, FileInode
from deermem.testing.disk_steps import Step, disk_error
from deermem.testing.power_loss import PowerLosses, power_losses

if TYPE_CHECKING:
    from deermem.testing.simulated_filesystem import SimulatedFileSystem
    from deermem.testing.simulated_lock import SimulatedLockFile
    from deermem.testing.simulated_process import SimulatedProcess

ROOT: Final = "."
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Survivor:
    """Is a disk after a loss of power, and the effects and data that were lost."""

    disk: SimulatedDisk
    lost: tuple[str, ...]
    digest: bytes


class SimulatedDisk:
    """Holds a storage root in memory.

    Hooks: `before_step` and `after_step` are called around each step of each process, so that a
    scheduler can switch between processes and an explorer can copy the disk. `when_blocked` is
    called when a lock is held by another process; it returns whether to try again.

    Args:
        granularity_ns: The distance of two modification times that the disk can tell apart.
        tick_ns: How much time each changing step takes.
        reuse_inodes: Gives a new file the inode number of one that is gone, as ext4 does.
        ignore_case: Takes names that differ in case for the same name.
        capacity: The number of bytes that all files together may have; no limit if `None`.
        modes: The permissions of the directories and of the files that processes make.
        root: The storage root's path, for messages.
    """

    def __init__(
        self,
        *,
        granularity_ns: int = 1,
        tick_ns: int = 1_000,
        reuse_inodes: bool = True,
        ignore_case: bool = False,
        capacity: int | None = None,
        modes: tuple[int, int] = (DIRECTORY_MODE, FILE_MODE),
        root: str = "/simulated",
    ) -> None:
        self.granularity_ns = granularity_ns
        self.tick_ns = tick_ns
        self.reuse_inodes = reuse_inodes
        self.ignore_case = ignore_case
        self.capacity = capacity
        self.directory_mode, self.file_mode = modes
        self.root = root
        self.state = DiskState()
        self.clock_ns = 0
        self.locks: dict[int, SimulatedLockFile] = {}
        self.before_step: Callable[[Step], None] | None = None
        self.after_step: Callable[[Step], None] | None = None
        self.when_blocked: Callable[[SimulatedLockFile, float], bool] | None = None

    def process(self, name: str = "process", rights: Rights = OWNER) -> SimulatedFileSystem:
        """Starts a process and returns its view of the disk; `rights` says whose permissions it has."""
        from deermem.testing.simulated_filesystem import SimulatedFileSystem

        return SimulatedFileSystem(self, name, rights)

    def fork(self, *, keep_locks: bool = False) -> SimulatedDisk:
        """Returns an independent copy on which every process was killed.

        With `keep_locks` the holders of locks are not dead but stand still.
        """
        return self._with_state(self.state.copy(), keep_locks=keep_locks)

    def crash_states(self, limit: int | None = None, seed: int = 0) -> Iterator[Survivor]:
        """Yields every distinct disk that a loss of power may leave, or a seeded sample of `limit`."""
        losses = (
            PowerLosses(self.state).every()
            if limit is None
            else power_losses(self.state, limit, random.Random(seed))  # noqa: S311 - a sample, not a secret
        )
        seen: set[bytes] = set()
        for loss in losses:
            key = loss.state.digest()
            if key not in seen:
                seen.add(key)
                yield Survivor(self._with_state(loss.state), loss.lost, key)

    def crash_state(self, rng: random.Random) -> Survivor:
        """Returns one disk that a loss of power may leave."""
        loss = PowerLosses(self.state).one(rng)
        return Survivor(self._with_state(loss.state), loss.lost, loss.state.digest())

    def settle(self) -> None:
        """Makes everything durable, as time does."""
        self.state.settle()

    def digest(self) -> bytes:
        """Tells disks apart by what can become of them; inode numbers and times do not count."""
        return self.state.digest()

    def now(self) -> datetime:
        """Returns the time on the disk's clock."""
        return EPOCH + timedelta(microseconds=self.clock_ns // 1_000)

    def advance(self, seconds: float) -> None:
        """Lets the clock run on."""
        self.clock_ns += int(seconds * SECOND)

    def room(self) -> int | None:
        """Returns the number of bytes that may still be written; no limit if `None`."""
        return None if self.capacity is None else max(0, self.capacity - self.state.used_bytes())

    def mtime_ns(self) -> int:
        """Returns the time as the disk would note it beside a file."""
        moment = int(EPOCH.timestamp()) * SECOND + self.clock_ns
        return moment // self.granularity_ns * self.granularity_ns

    def find(self, directory: int, name: str) -> str | None:
        """Returns the name that an entry is stored under, or `None` if there is no such entry."""
        entries = self.state.directories[directory].entries
        if name in entries or not self.ignore_case:
            return name if name in entries else None
        folded = name.casefold()
        return next((stored for stored in entries if stored.casefold() == folded), None)

    def entry(self, directory: int, name: str) -> int:
        """Returns the inode behind a name."""
        stored = self.find(directory, name)
        if stored is None:
            raise disk_error(errno.ENOENT, self.state.path_of(directory, name))
        return self.state.directories[directory].entries[stored]

    def file_entry(self, directory: int, name: str) -> int:
        """Returns the inode behind a name that must be a file's."""
        inode = self.entry(directory, name)
        if inode not in self.state.files:
            raise UnexpectedFileType(self.state.path_of(directory, name), "is not a regular file")
        return inode

    def file(self, directory: int, name: str) -> FileInode:
        """Returns the file behind a name."""
        return self.state.files[self.file_entry(directory, name)]

    def new_file(self, directory: int, name: str) -> int:
        """Adds an empty file under a name that must be free."""
        if self.find(directory, name) is not None:
            raise disk_error(errno.EEXIST, self.state.path_of(directory, name))
        inode = self.state.create_file(directory, name, self.mtime_ns(), self.reuse_inodes)
        self.state.set_mode(inode, self.file_mode)
        return inode

    def new_directory(self, directory: int, name: str) -> None:
        """Adds an empty directory under a free name."""
        self.state.set_mode(self.state.make_directory(directory, name), self.directory_mode)

    def release_locks(self, owner: SimulatedProcess) -> None:
        """Frees the locks of a process that died."""
        self.locks = {inode: lock for inode, lock in self.locks.items() if lock.owner is not owner}

    def tree(self) -> dict[str, bytes | None]:
        """Returns the content of every file by path below the root; directories have `None`."""
        return {path: data for path, data in self.state.walk() if path != ROOT}

    def put(self, path: str, data: bytes) -> None:
        """Writes a file, durably, as an editor or another program would."""
        *parents, name = path.split("/")
        directory = self._child(TOP, ROOT)
        for parent in parents:
            directory = self._child(directory, parent)
        entries = self.state.directories[directory].entries
        inode = entries.get(name)
        if inode is None:
            inode = self.state.create_file(directory, name, self.mtime_ns(), self.reuse_inodes)
        self.state.write_file(inode, data, self.mtime_ns())
        self.state.sync_file(inode)
        self.state.sync_directory(directory)
        self.clock_ns += self.tick_ns

    def remove(self, path: str) -> None:
        """Removes a file, durably."""
        *parents, name = path.split("/")
        directory = self.state.directories[TOP].entries[ROOT]
        for parent in parents:
            directory = self.state.directories[directory].entries[parent]
        self.state.unlink(directory, name)
        self.state.sync_directory(directory)

    def link_tree(self, path: str, copy: str) -> None:
        """Makes a copy of a directory, durably, in which each file is one more name of the original."""
        source = self._child(TOP, ROOT)
        for part in path.split("/"):
            source = self.state.directories[source].entries[part]
        target = self._child(TOP, ROOT)
        for part in copy.split("/"):
            target = self._child(target, part)
        waiting = [(source, target)]
        while waiting:
            source, target = waiting.pop()
            for name, inode in self.state.directories[source].entries.items():
                if inode in self.state.files:
                    self.state.link(inode, target, name)
                else:
                    waiting.append((inode, self._child(target, name)))
            self.state.sync_directory(target)

    def set_mode(self, path: str, mode: int) -> None:
        """Changes the permissions of a file or directory; `.` is the storage root."""
        inode = self.state.directories[TOP].entries[ROOT]
        for part in path.split("/") if path != ROOT else ():
            inode = self.state.directories[inode].entries[part]
        self.state.set_mode(inode, mode)

    def _child(self, directory: int, name: str) -> int:
        inode = self.state.directories[directory].entries.get(name)
        if inode is None:
            inode = self.state.make_directory(directory, name)
            self.state.sync_directory(directory)
        return inode

    def _with_state(self, state: DiskState, *, keep_locks: bool = False) -> SimulatedDisk:
        other = SimulatedDisk(
            granularity_ns=self.granularity_ns,
            tick_ns=self.tick_ns,
            reuse_inodes=self.reuse_inodes,
            ignore_case=self.ignore_case,
            capacity=self.capacity,
            modes=(self.directory_mode, self.file_mode),
            root=self.root,
        )
        other.state = state
        other.clock_ns = self.clock_ns
        if keep_locks:
            other.locks = dict(self.locks)
        return other
