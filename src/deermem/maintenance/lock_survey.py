"""Who holds or awaits the locks of users; nothing is locked, made or changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

from deermem.errors import Corruption
from deermem.format.journal_json import is_staged_name
from deermem.format.layout import JOURNAL, LOCK, RECOVERY
from deermem.model.identity import UserId
from deermem.storage.access import BucketAccess
from deermem.storage.bucket import Bucket
from deermem.storage.lock_table import LockEntry, command_of, locks_on, read_table
from deermem.storage.opening import trusted

LockState = Literal["held", "free", "unknown", "absent"]


class LockProcess(NamedTuple):
    """Is a process that holds or awaits a lock; `command` is `None` where it cannot be told."""

    pid: int
    command: str | None


@dataclass(frozen=True, slots=True)
class LockReport:
    """Says who holds or awaits a user's lock.

    `free` means that no process that can be seen from here holds it: those of other hosts and containers
    cannot. `unknown` means that the system does not tell, `absent` that there is no lock file. `seconds` is
    how long the transaction has been under way, if it has written anything yet.
    """

    user: UserId
    path: str
    state: LockState
    holders: tuple[LockProcess, ...] = ()
    waiters: tuple[LockProcess, ...] = ()
    seconds: float | None = None


def survey_locks(
    access: BucketAccess, users: Iterable[UserId], problems: list[Corruption | OSError]
) -> list[LockReport]:
    """Looks at the locks of users.

    Args:
        access: The store.
        users: Whose locks to look at.
        problems: Collects where a link or a directory lies in place of a bucket or a lock file, and what
            the system refuses to show.
    """
    device = None
    with suppress(OSError):
        device = os.stat(access.file_system.root).st_dev
    table = read_table()
    found: list[LockReport] = []
    for user in users:
        try:
            found.append(_look_at(access, user, table, device))
        except (Corruption, OSError) as problem:
            problems.append(problem)
    return found


def _look_at(
    access: BucketAccess, user: UserId, table: Sequence[LockEntry] | None, device: int | None
) -> LockReport:
    with access.opened(user) as bucket:
        if bucket is None:
            return LockReport(user, LOCK, "absent")
        path = bucket.path_of((LOCK,))
        try:
            with trusted():
                inode = bucket.directory.identify(LOCK).inode
        except FileNotFoundError:
            return LockReport(user, path, "absent")
        if table is None:
            return LockReport(user, path, "unknown")
        entries = locks_on(inode, device, table)
        processes = [(LockProcess(entry.pid, command_of(entry.pid)), entry.waiting) for entry in entries]
        holders = tuple(process for process, waiting in processes if not waiting)
        waiters = tuple(process for process, waiting in processes if waiting)
        seconds = _seconds_under_way(bucket) if holders else None
        return LockReport(user, path, "held" if holders else "free", holders, waiters, seconds)


def _seconds_under_way(bucket: Bucket) -> float | None:
    """Returns the age of the oldest file that a transaction has written and not yet moved into place."""
    times: list[int] = []
    with suppress(OSError):
        times.append(bucket.directory.identify(JOURNAL).mtime_ns)
    with suppress(OSError), bucket.directory_at((RECOVERY,)) as recovery:
        staged = recovery.identities().items()
        times += [file.mtime_ns for name, file in staged if file is not None and is_staged_name(name)]
    return max(0.0, (time.time_ns() - min(times)) / 1e9) if times else None
