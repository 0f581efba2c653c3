"""The lock file of a simulated disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from deermem.testing.disk_steps import StepKind

if TYPE_CHECKING:
    from deermem.testing.simulated_filesystem import SimulatedFileSystem


class SimulatedLockFile:
    """Is an open lock file; as with `flock`, each opening of it is a holder of its own.

    Args:
        owner: The process.
        reopen: Opens the file and returns its inode.
        path: Where it is, for messages.
    """

    def __init__(self, owner: SimulatedFileSystem, reopen: Callable[[], int], path: str) -> None:
        self.owner = owner
        self.path = path
        self.inode = reopen()
        self._reopen = reopen
        owner.handles.add(self)

    def acquire(self, timeout: float) -> bool:
        """Takes the lock if it is free; otherwise the disk's `when_blocked` decides whether to wait."""
        disk = self.owner.disk
        while True:
            while not self.owner.perform(StepKind.LOCK, self.path, self._take):
                if disk.when_blocked is None or not disk.when_blocked(self, timeout):
                    disk.advance(timeout)
                    return False
            if self.owner.perform(StepKind.STAT, self.path, self._is_in_place):
                return True
            self._give_back()
            self.inode = self._reopen()

    def holder(self) -> str | None:
        """Names the process that holds the lock."""
        lock = self.owner.disk.locks.get(self.inode)
        return None if lock is None else f"process {lock.owner.name}"

    def close(self) -> None:
        """Gives the lock back and closes the file."""
        self.owner.handles.discard(self)
        self._give_back()

    def _give_back(self) -> None:
        if self.owner.disk.locks.get(self.inode) is self:
            del self.owner.disk.locks[self.inode]

    def _is_in_place(self) -> bool:
        directories = self.owner.disk.state.directories.values()
        return any(self.inode in directory.entries.values() for directory in directories)

    def _take(self) -> bool:
        return self.owner.disk.locks.setdefault(self.inode, self) is self
