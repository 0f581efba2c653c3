"""The lifetime of a manager: which calls are under way, waiting for them, and the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from deermem.errors import MemoryManagerClosed
from deermem.storage.forks import follows_forks


@dataclass(slots=True)
class _UnderWay:
    thread: int | None
    background: bool


class Lifetime:
    """Counts what is under way, and refuses what comes after the end.

    What is under way has a token. What a thread works on is not waited for by that same thread, or an
    extraction hook that flushes would wait for itself.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = count()
        self._under_way: dict[int, _UnderWay] = {}
        self._closed = False
        follows_forks(self)

    def begin_in_child(self) -> None:
        """Waits in a forked child for nothing that only the parent's other threads can end."""
        self._changed = threading.Condition()
        here = threading.get_ident()
        self._under_way = {token: each for token, each in self._under_way.items() if each.thread == here}

    @property
    def closed(self) -> bool:
        """Whether the end has come."""
        return self._closed

    def begin(self, thread: int | None = None, *, background: bool = False) -> int:
        """Returns the token of something new.

        Args:
            thread: The thread that works on it, where it is known.
            background: Whether it may take any time, so that the end does not wait for it.

        Raises:
            MemoryManagerClosed: The end has come.
        """
        with self._changed:
            if self._closed:
                raise MemoryManagerClosed
            token = next(self._numbers)
            self._under_way[token] = _UnderWay(thread, background)
            return token

    def end(self, token: int) -> None:
        """Says that what has this token is over."""
        with self._changed:
            del self._under_way[token]
            self._changed.notify_all()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Is under way while the block runs.

        Raises:
            MemoryManagerClosed: The end has come.
        """
        token = self.begin(threading.get_ident())
        try:
            yield
        finally:
            self.end(token)

    @contextmanager
    def working_on(self, token: int) -> Iterator[None]:
        """Says that this thread works on what has the token, which is over with the block."""
        with self._changed:
            self._under_way[token].thread = threading.get_ident()
        try:
            yield
        finally:
            self.end(token)

    def wait(self, timeout: float, *, background: bool = True) -> bool:
        """Waits for the end of all that is under way now; tells whether it came within `timeout` seconds.

        What begins meanwhile is not waited for, so that a busy manager can be flushed.

        Args:
            timeout: In seconds.
            background: Whether to wait also for what may take any time.
        """
        deadline = time.monotonic() + timeout
        here = threading.get_ident()
        with self._changed:
            awaited = {
                token
                for token, each in self._under_way.items()
                if each.thread != here and (background or not each.background)
            }
            while not awaited.isdisjoint(self._under_way):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
        return True

    def close(self) -> bool:
        """Refuses all that comes from now on; tells whether this is the first time."""
        with self._changed:
            first, self._closed = not self._closed, True
            return first
