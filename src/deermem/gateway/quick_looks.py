"""Looks at the disk from the event loop, where that cannot make anybody wait.

A hop to a thread and back costs more than a look at a cached memory. A look from the loop is worth it only
while it is quick: on a disk of this machine, and as long as the looks before it were.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

SLOW_SECONDS: Final = 0.02
PAUSE_SECONDS: Final = 1.0
JUDGED_SECONDS: Final = 10.0


class QuickLooks:
    """Decides whether the event loop looks itself.

    Args:
        is_local: Says whether the store lies on disks of this machine; it may block.
        clock: Returns seconds.
    """

    def __init__(self, is_local: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_local = is_local
        self._clock = clock
        self._allowed = False
        self._judged = -JUDGED_SECONDS
        self._paused_until = 0.0

    def judge(self) -> None:
        """Finds out where the store lies, at most every ten seconds; for threads, which may wait."""
        now = self._clock()
        if now - self._judged >= JUDGED_SECONDS:
            self._judged = now
            self._allowed = self._is_local()

    def take(self, look: Callable[[], T | None]) -> T | None:
        """Returns what a look returns; `None` too where looking is left to the threads.

        After a look that took long, as on a disk that is overloaded, the loop takes none for a second.
        """
        if not self._allowed:
            return None
        begun = self._clock()
        if begun < self._paused_until:
            return None
        found = look()
        ended = self._clock()
        if ended - begun > SLOW_SECONDS:
            self._paused_until = ended + PAUSE_SECONDS
        return found
