"""Turns: how many calls of one user are at work at once, so that nobody takes every thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from deermem.integrations.mcp.failures import TOO_MANY, Refused

T = TypeVar("T")

READERS: Final = 8
# Writers of one user wait for each other at the lock, where each takes a thread.
WRITERS: Final = 2
MOST_WAITING: Final = 256


class Turns:
    """Lets some calls of a user begin and the others wait; belongs to the event loop that uses it."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str | None, bool], _Line] = {}

    async def run(self, bucket: str | None, call: Callable[[], Awaitable[T]], *, writes: bool) -> T:
        """Runs a call when it is the user's turn; readers do not wait for writers.

        A call that has begun runs to its end, and keeps its turn till then, also when its caller is
        cancelled; one that waits is given up.

        Raises:
            Refused: Too many calls wait already; this one was not begun.
        """
        key = bucket, writes
        line = self._lines.setdefault(key, _Line(WRITERS if writes else READERS))
        if line.present >= MOST_WAITING:
            raise Refused(TOO_MANY)
        line.present += 1
        has_begun = False

        async def work() -> T:
            nonlocal has_begun
            async with line.gate:
                has_begun = True
                return await call()

        def leave(task: asyncio.Future[T]) -> None:
            line.present -= 1
            if not line.present:
                del self._lines[key]
            if not task.cancelled():
                task.exception()  # or asyncio would complain that nobody waited for it

        task = asyncio.ensure_future(work())
        task.add_done_callback(leave)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not has_begun:
                task.cancel()
            raise


class _Line:
    """Counts the calls that wait or are at work."""

    def __init__(self, at_once: int) -> None:
        self.gate = asyncio.Semaphore(at_once)
        self.present = 0
