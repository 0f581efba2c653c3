"""Who may do what on a simulated disk, by the permission bits of POSIX."""

from __future__ import annotations

import errno
from typing import Final, NamedTuple

from deermem.testing.disk_steps import disk_error

READ: Final = 4
WRITE: Final = 2
SEARCH: Final = 1


class Rights(NamedTuple):
    """Says which three bits of a mode count for a process: those of the owner, or of the group."""

    shift: int

    def check(self, mode: int, wanted: int, path: str) -> None:
        """Refuses what a mode does not allow.

        Raises:
            PermissionError: The process may not.
        """
        if wanted & ~(mode >> self.shift):
            raise disk_error(errno.EACCES, path)


OWNER: Final = Rights(6)
GROUP: Final = Rights(3)
