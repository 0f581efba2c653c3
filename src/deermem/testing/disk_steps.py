"""The steps in which a simulated process uses the disk, and how a step is made to fail."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class StepKind(StrEnum):
    """Names what a step does; roughly one system call."""

    MKDIR = "mkdir"
    CREATE = "create"
    WRITE = "write"
    FSYNC = "fsync"
    RENAME = "rename"
    UNLINK = "unlink"
    RMDIR = "rmdir"
    SYNC = "sync"
    OPEN = "open"
    READ = "read"
    STAT = "stat"
    SCAN = "scan"
    LOCK = "lock"
    WAIT = "wait"


CHANGING: Final = frozenset(
    [
        StepKind.MKDIR,
        StepKind.CREATE,
        StepKind.WRITE,
        StepKind.FSYNC,
        StepKind.RENAME,
        StepKind.UNLINK,
        StepKind.RMDIR,
        StepKind.SYNC,
    ]
)


@dataclass(frozen=True, slots=True)
class Step:
    """Is one step of one process; `index` counts the steps of that process from 0.

    `fsync` is the sync of a file, `sync` that of a directory. Paths are relative to the storage
    root; `target` is the new path of a rename.
    """

    index: int
    process: str
    kind: StepKind
    path: str
    target: str = ""

    @property
    def changing(self) -> bool:
        """Whether the step changes what is on the disk or what of it is durable."""
        return self.kind in CHANGING

    def __str__(self) -> str:
        return f"{self.kind} {self.path}" + (f" to {self.target}" if self.target else "")


@dataclass(frozen=True, slots=True)
class Fault:
    """Makes the steps fail that `hits` selects.

    The step fails without an effect, or with `after` once it had its effect; it fails once, or with
    `lasting` from then on.
    """

    hits: Callable[[Step], bool]
    number: int
    after: bool = False
    lasting: bool = False

    @classmethod
    def at(cls, index: int, number: int, *, after: bool = False, lasting: bool = False) -> Fault:
        """Makes the step with this index fail, and with `lasting` every later one."""
        if lasting:
            return cls(lambda step: step.index >= index, number, after, lasting)
        return cls(lambda step: step.index == index, number, after)

    def error(self, step: Step) -> OSError:
        """Returns what the process gets to see."""
        return disk_error(self.number, step.path)


def disk_error(number: int, path: str) -> OSError:
    """Returns the exception that Python raises for an errno."""
    return OSError(number, os.strerror(number), path)


class SimulatedDeath(BaseException):
    """Ends a simulated process between two steps; nothing in the engine may catch it."""


ERRNOS: Final = (
    errno.EIO,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EACCES,
    errno.EMFILE,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.EINTR,
)
