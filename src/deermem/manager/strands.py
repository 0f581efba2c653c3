"""Works in the background: those with the same key one after another, others side by side."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Work = TypeVar("Work")


class Strands(Generic[Work]):
    """Runs works in threads of its own, which end when there is nothing to do.

    The threads do not keep the process alive: a work that never ends must not, and whoever minds
    waits before the end.

    Args:
        run: Runs one work; it raises nothing.
        threads: How many works run at once, at most.
        limit: How many works may wait.
    """

    def __init__(self, run: Callable[[Work], None], *, threads: int, limit: int) -> None:
        self._run = run
        self._threads = threads
        self._limit = limit
        self._mutex = threading.Lock()
        self._waiting: dict[Hashable, deque[Work]] = {}
        self._ready: deque[Hashable] = deque()
        self._count = 0
        self._running = 0

    def put(self, key: Hashable, work: Work, *, urgent: bool = False) -> bool:
        """Takes a work; tells whether there was room.

        Args:
            key: Works with the same key run one after another, in the order in which they came.
            work: What to run.
            urgent: Whether it goes before those that wait, and is taken even if there is no room.
        """
        with self._mutex:
            if self._count >= self._limit and not urgent:
                return False
            self._count += 1
            known = key in self._waiting
            line = self._waiting.setdefault(key, deque())
            (line.appendleft if urgent else line.append)(work)
            if not known:
                (self._ready.appendleft if urgent else self._ready.append)(key)
            if self._running < min(self._threads, len(self._waiting)):
                self._running += 1
                threading.Thread(target=self._work, name="deermem-extraction", daemon=True).start()
        return True

    def drain(self) -> list[Work]:
        """Takes back all works that have not begun."""
        with self._mutex:
            dropped = [work for line in self._waiting.values() for work in line]
            for line in self._waiting.values():
                line.clear()
            for key in self._ready:  # the others have a work that runs, whose thread will look again
                del self._waiting[key]
            self._ready.clear()
            self._count = 0
            return dropped

    def _work(self) -> None:
        while True:
            with self._mutex:
                if not self._ready:
                    self._running -= 1
                    return
                key = self._ready.popleft()
                work = self._waiting[key].popleft()
                self._count -= 1
            self._run(work)
            with self._mutex:
                if self._waiting[key]:
                    self._ready.append(key)
                else:
                    del self._waiting[key]
