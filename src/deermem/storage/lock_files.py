"""The lock file: one writer at a time across processes and hosts, and no lock that outlives its holder.

The lock is the system's own (`flock`; on Windows a locked byte), so it is free the moment its holder
dies, and there is no process id to go stale. Only the holder may delete the file, as when a user is
erased. A waiter that then gets the lock has it on a file that no newcomer finds, so the lock counts only
if afterwards the file's name still leads to the file that was locked.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from deermem.storage.lock_table import command_of, locks_on, read_table

_BUSY: Final = frozenset([errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES])
# Some network file systems number an open file otherwise than its name; there the link count has to do.
_RENUMBERED: Final = 5


class _Descriptor:
    """Owns a descriptor of a lock file, of which a forked child has a copy."""

    def __init__(self, descriptor: int) -> None:
        self._fd = descriptor
        _open_descriptors.add(self)

    def forget(self) -> None:
        """Closes the copy in a forked child without unlocking: the lock is the parent's.

        While a copy is open anywhere, the lock stays held though the parent dies.
        """
        if self._fd >= 0:
            descriptor, self._fd = self._fd, -1
            os.close(descriptor)


_open_descriptors: weakref.WeakSet[_Descriptor] = weakref.WeakSet()


class SystemLockFile(_Descriptor):
    """Locks one file; an instance is used by one thread at a time.

    Args:
        reopen: Opens the file and returns a new descriptor.
        inode: Returns the inode number that the file's name has now.
    """

    def __init__(self, reopen: Callable[[], int], inode: Callable[[], int]) -> None:
        super().__init__(reopen())
        self._reopen = reopen
        self._inode = inode

    def acquire(self, timeout: float) -> bool:
        """Takes the lock; a waiter sleeps in the kernel and is woken by the release.

        Raises:
            FileNotFoundError: The directory of the lock file is gone.
        """
        deadline = time.monotonic() + timeout
        lost = 0
        while True:
            if not self._try() and not self._wait(deadline - time.monotonic()):
                return False
            if self._is_in_place(lost):
                return True
            self.close()
            if lost and time.monotonic() > deadline:
                return False
            self._fd = self._reopen()
            lost += 1

    def _is_in_place(self, lost: int) -> bool:
        """Tells whether whoever comes next will lock this very file, after so many that were not."""
        status = os.fstat(self._fd)
        try:
            same = status.st_ino == self._inode()
        except FileNotFoundError:
            return False
        return same or (lost >= _RENUMBERED and status.st_nlink > 0)

    def _try(self) -> bool:
        return try_lock(self._fd)

    def _wait(self, timeout: float) -> bool:
        return wait_for_lock(self._fd, timeout)

    def holder(self) -> str | None:
        """Names the process that holds the lock; known on Linux, for processes of this host."""
        with suppress(OSError):
            status = os.fstat(self._fd)
            for entry in locks_on(status.st_ino, status.st_dev, read_table() or ()):
                if not entry.waiting:
                    return f"process {entry.pid} ({command_of(entry.pid) or 'unknown'})"
        return None

    def close(self) -> None:
        """Unlocks explicitly, since a forked child may still have the descriptor open, and closes."""
        if self._fd >= 0:
            descriptor, self._fd = self._fd, -1
            with suppress(OSError):
                unlock(descriptor)
            os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    _FIRST_PAUSE: Final = 0.001
    _LONGEST_PAUSE: Final = 0.02

    def try_lock(descriptor: int) -> bool:
        """Takes the lock if it is free; byte 0 may be locked though the file is empty."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise
        return True

    def wait_for_lock(descriptor: int, timeout: float) -> bool:
        """Asks again and again, since Windows has no blocking lock with a time limit."""
        deadline = time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while not try_lock(descriptor):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def unlock(descriptor: int) -> None:
        """Gives the lock back."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Takes the lock if it is free."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise
        return True

    def wait_for_lock(descriptor: int, timeout: float) -> bool:
        """Waits in the kernel, in a thread of its own, since `flock` has no time limit.

        Polling would hand the lock over late and to whoever asks at the right moment. A wait that
        is given up goes on in the thread; when it gets the lock in the end it gives it back.
        """
        waiter = _Waiter(os.dup(descriptor))
        return waiter.wait(timeout)

    def unlock(descriptor: int) -> None:
        """Gives the lock back."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    class _Waiter(_Descriptor):
        """Waits for a lock on a duplicate of the descriptor, which shares the lock with it."""

        def __init__(self, descriptor: int) -> None:
            super().__init__(descriptor)
            self._decision = threading.Lock()
            self._finished = threading.Event()
            self._abandoned = False
            self._error: OSError | None = None
            threading.Thread(target=self._run, name="deermem-lock", daemon=True).start()

        def _run(self) -> None:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX)
            except OSError as error:
                self._error = error
            with self._decision:
                self._finished.set()
                if self._abandoned and self._error is None:
                    unlock(self._fd)
                self.forget()

        def wait(self, timeout: float) -> bool:
            self._finished.wait(max(timeout, 0))
            with self._decision:
                self._abandoned = not self._finished.is_set()
            if self._error is not None:
                raise self._error
            return not self._abandoned


def _forget_all() -> None:
    for descriptor in list(_open_descriptors):
        descriptor.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
