"""Runs the store's blocking work in a bounded number of threads, fairly among users."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

# Writers of one user wait for each other anyway; waiting here takes no thread from anybody.
_WRITERS_OF_ONE_USER: Final = 1
_READERS_OF_ONE_USER: Final = 4


class Overloaded(Exception):
    """Says that a piece of work was not begun: too much of it is waiting."""


class WorkPool:
    """Keeps blocking calls off the event loop; belongs to the loop that uses it.

    A user's writes run one after another and of its reads a few at once, so that one user whose lock is
    held elsewhere cannot take every thread.

    Args:
        threads: How many calls run at once.
        waiting: How many calls may wait or run at once.
        patience: How many seconds a call waits for its turn.
    """

    def __init__(self, threads: int, waiting: int, patience: float) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="deermem-gateway")
        self._threads = asyncio.Semaphore(threads)
        self._turns: WeakValueDictionary[tuple[str | None, bool], asyncio.Semaphore] = WeakValueDictionary()
        self._waiting = waiting
        self._patience = patience
        self._present = 0
        self._running: set[asyncio.Future[Any]] = set()

    @property
    def present(self) -> int:
        """How many calls wait or run."""
        return self._present

    async def run(self, bucket: str | None, writes: bool, call: Callable[[], T]) -> T:
        """Runs a call in a thread.

        A call that has begun runs to its end, also when the caller is cancelled meanwhile.

        Args:
            bucket: Whose memory the call is about.
            writes: Whether it may write.
            call: What to run.

        Raises:
            Overloaded: The call did not get its turn; it was not begun.
        """
        with self._counted():
            turn = self._turn_of(bucket, writes)
            await self._acquire(turn, self._threads)
            future = asyncio.get_running_loop().run_in_executor(self._executor, call)
            self._running.add(future)

            def finish(done: asyncio.Future[T]) -> None:
                self._running.discard(done)
                self._threads.release()
                turn.release()
                if not done.cancelled():
                    done.exception()  # or asyncio reports one that nobody waited for any more

            future.add_done_callback(finish)
            return await asyncio.shield(future)

    async def drain(self, seconds: float) -> bool:
        """Waits for the calls that have begun; tells whether all of them came to their end in time."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        self._executor.shutdown(wait=False, cancel_futures=True)
        return not self._running

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._present >= self._waiting:
            raise Overloaded
        self._present += 1
        try:
            yield
        finally:
            self._present -= 1

    def _turn_of(self, bucket: str | None, writes: bool) -> asyncio.Semaphore:
        turn = self._turns.get((bucket, writes))
        if turn is None:
            turn = asyncio.Semaphore(_WRITERS_OF_ONE_USER if writes else _READERS_OF_ONE_USER)
            self._turns[bucket, writes] = turn
        return turn

    async def _acquire(self, *gates: asyncio.Semaphore) -> None:
        passed: list[asyncio.Semaphore] = []
        try:
            async with asyncio.timeout(self._patience):
                for gate in gates:
                    await gate.acquire()
                    passed.append(gate)
        except BaseException as error:
            for gate in passed:
                gate.release()
            if isinstance(error, TimeoutError):
                raise Overloaded from None
            raise
