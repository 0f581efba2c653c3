"""The disk port on a simulated disk, as one process sees it."""

from __future__ import annotations

from deermem.testing.disk_permissions import OWNER, READ, Rights
from deermem.testing.disk_state import TOP
from deermem.testing.disk_steps import StepKind
from deermem.testing.simulated_directory import SimulatedDirectory
from deermem.testing.simulated_disk import ROOT, SimulatedDisk
from deermem.testing.simulated_lock import SimulatedLockFile
from deermem.testing.simulated_process import SimulatedProcess


class SimulatedFileSystem(SimulatedProcess):
    """Is one process's view of a simulated disk; `handles` are those that it did not close yet."""

    def __init__(self, disk: SimulatedDisk, name: str, rights: Rights = OWNER) -> None:
        super().__init__(disk, name)
        self.rights = rights
        self.handles: set[SimulatedDirectory | SimulatedLockFile] = set()

    @property
    def root(self) -> str:
        """The storage root, for messages."""
        return self.disk.root

    @property
    def windows_names(self) -> bool:
        """Whether names such as `CON` stand for devices: never here."""
        return False

    def open_root(self) -> SimulatedDirectory:
        """Opens the storage root."""

        def effect() -> int:
            inode = self.disk.entry(TOP, ROOT)
            self.rights.check(self.disk.state.directories[inode].mode, READ, ROOT)
            return inode

        return SimulatedDirectory(self, self.perform(StepKind.OPEN, ROOT, effect))

    def make_root(self) -> None:
        """Makes the storage root and syncs the directory above it."""

        def effect() -> None:
            # Another process may have come first since it was seen to be missing.
            if self.disk.find(TOP, ROOT) is None:
                self.disk.new_directory(TOP, ROOT)

        if self.disk.find(TOP, ROOT) is None:
            self.perform(StepKind.MKDIR, ROOT, effect)
        self.change(StepKind.SYNC, "..", lambda: self.disk.state.sync_directory(TOP))

    def accept_root(self) -> None:
        """Does nothing: there is one file system."""

    def wait(self, seconds: float) -> None:
        """Lets the disk's clock run on."""
        self.perform(StepKind.WAIT, f"{seconds} s", lambda: self.disk.advance(seconds))
