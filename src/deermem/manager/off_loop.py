"""Threads for what would block an event loop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, TypeVar

from deermem.errors import MemoryManagerClosed
from deermem.manager.lifetime import Lifetime

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

READERS: Final = 16
# Most of these only wait for a lock, and one user's waiting must not keep others from writing.
WRITERS: Final = 64


class OffLoop:
    """Runs calls in two bounded sets of threads, so that reads never queue behind writers that wait.

    Args:
        lifetime: Counts the calls from the moment they are made.
    """

    def __init__(self, lifetime: Lifetime) -> None:
        self._lifetime = lifetime
        self._mutex = threading.Lock()
        self._pools: dict[tuple[int, bool], ThreadPoolExecutor] = {}

    async def run(self, work: Callable[[], T], *, writes: bool) -> T:
        """Runs `work` in a thread, with the context variables of the caller.

        Work that has begun runs to its end, once, whether or not it is still awaited; work that has not
        begun when its await is cancelled never will.

        Raises:
            MemoryManagerClosed: The manager was closed before; the work was not begun.
        """
        import asyncio

        token = self._lifetime.begin()
        try:
            future = self._pool(writes).submit(copy_context().run, work)
        except RuntimeError:
            self._lifetime.end(token)
            raise MemoryManagerClosed from None
        future.add_done_callback(lambda _: self._lifetime.end(token))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Lets the threads end when what they were given is over."""
        with self._mutex:
            for (process, _), pool in self._pools.items():
                if process == os.getpid():
                    pool.shutdown(wait=False)

    def _pool(self, writes: bool) -> ThreadPoolExecutor:
        # asyncio and this take longer to import than the rest of the package.
        from concurrent.futures import ThreadPoolExecutor

        key = os.getpid(), writes  # a forked child has its parent's pools, but none of their threads
        with self._mutex:
            if key not in self._pools:
                name = "deermem-write" if writes else "deermem-read"
                self._pools[key] = ThreadPoolExecutor(WRITERS if writes else READERS, name)
            return self._pools[key]
