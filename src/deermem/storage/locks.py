"""One writer per user: first among the threads of this process, then among processes and hosts."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from deermem.errors import LockTimeout
from deermem.format.layout import LOCK
from deermem.storage.counters import LOCK_TIMEOUTS, LOCK_WAITS, Counters
from deermem.storage.forks import follows_forks
from deermem.storage.opening import BucketGone, trusted
from deermem.storage.port import Directory

# What taking a free lock does not take.
_NOTICEABLE_SECONDS: Final = 0.005


class Turns:
    """Serves the threads of one process in the order in which they came.

    `threading.Lock` lets the thread that just gave it back take it again before a waiter wakes up.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._owner: int | None = None
        self._waiters: deque[threading.Lock] = deque()

    def acquire(self, timeout: float) -> bool:
        """Waits for the turn; tells whether it came within `timeout` seconds."""
        with self._mutex:
            if self._owner is None:
                self._owner = threading.get_ident()
                return True
            if self._owner == threading.get_ident():
                return False
            waiter = threading.Lock()
            waiter.acquire()
            self._waiters.append(waiter)
        try:
            came = waiter.acquire(timeout=max(timeout, 0))
        except BaseException:
            # A signal's handler raised: the turn must not be handed to somebody who went away.
            if not self._give_up(waiter):
                self.release()
            raise
        if not came and self._give_up(waiter):
            return False
        self._owner = threading.get_ident()
        return True

    def _give_up(self, waiter: threading.Lock) -> bool:
        """Leaves the queue; `False` when the turn had come already."""
        with self._mutex:
            if waiter not in self._waiters:
                return False
            self._waiters.remove(waiter)
            return True

    def release(self) -> None:
        """Hands the turn to the one who waits longest."""
        with self._mutex:
            # The next owner is unknown until it wakes up; -1 keeps newcomers in the queue.
            self._owner = -1 if self._waiters else None
            if self._waiters:
                self._waiters.popleft().release()


class UserLocks:
    """Hands out the lock of a user bucket; locks that nobody uses are forgotten.

    Args:
        root: The storage root, for messages.
        timeout: How long a writer waits for its turn, in seconds.
        counters: Where waits are counted.
    """

    def __init__(self, root: str, timeout: float, counters: Counters) -> None:
        self._root = root
        self._timeout = timeout
        self._counters = counters
        self.begin_in_child()
        follows_forks(self)

    def begin_in_child(self) -> None:
        """Forgets whose turn it is: the threads that held the turns do not exist in a forked child."""
        self._mutex = threading.Lock()
        self._turns: weakref.WeakValueDictionary[str, Turns] = weakref.WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._turns)

    @contextmanager
    def hold(self, bucket: Directory) -> Iterator[None]:
        """Holds the user's lock while the block runs.

        Raises:
            LockTimeout: Another writer held it too long.
            BucketGone: The bucket was removed meanwhile.
            Corruption: There is a link or a directory in place of the lock file.
        """
        start = time.monotonic()
        lock_path = f"{self._root}/{bucket.path}/{LOCK}".replace("/./", "/")
        with self._mutex:
            turns = self._turns.setdefault(bucket.path, Turns())
        if not turns.acquire(self._timeout):
            raise self._timed_out(lock_path, start, "another thread of this process")
        try:
            with _present(), trusted():
                opened = bucket.lock_file(LOCK)
            with closing(opened) as lock_file:
                with _present(), trusted():
                    is_ours = lock_file.acquire(start + self._timeout - time.monotonic())
                if not is_ours:
                    raise self._timed_out(lock_path, start, lock_file.holder())
                if time.monotonic() - start > _NOTICEABLE_SECONDS:
                    self._counters.count(LOCK_WAITS)
                yield
        finally:
            turns.release()

    def _timed_out(self, lock_path: str, start: float, holder: str | None) -> LockTimeout:
        self._counters.count(LOCK_TIMEOUTS)
        return LockTimeout(lock_path, time.monotonic() - start, holder)


@contextmanager
def _present() -> Iterator[None]:
    """Tells a bucket that is gone from any other file that is not there."""
    try:
        yield
    except FileNotFoundError as error:
        raise BucketGone(*error.args) from None
