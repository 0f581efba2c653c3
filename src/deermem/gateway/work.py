"""Runs the store's blocking work in a bounded number of threads, fairly among users."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, TypeVar, cast
from weakref import WeakValueDictionary

T = TypeVar("T")

# Writers of one user wait for each other anyway; waiting here takes no thread from anybody.
_WRITERS_OF_ONE_USER: Final = 1
_READERS_OF_ONE_USER: Final = 4


class Overloaded(Exception):
    """Says that a piece of work was not begun: too much of it is waiting."""


class _Crew:
    """Is a number of threads that run what they are given; hardly more than a queue.

    An executor of the standard library takes twice the time to hand work over, which counts where the work
    is a cached read. The threads do not keep the process alive: an end that cannot wait loses no more than
    any crash does.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._present = 0

    def take(self, work: Callable[[], None], at_once: int) -> None:
        """Runs a work, which raises nothing; there are as many threads as `at_once` ever was."""
        if self._present < at_once:
            self._present += 1
            threading.Thread(target=self._run, name="deermem-gateway", daemon=True).start()
        self._queue.put(work)

    def dismiss(self) -> None:
        """Lets the threads end when what they were given is over."""
        for _ in range(self._present):
            self._queue.put(None)
        self._present = 0

    def _run(self) -> None:
        while True:
            work = self._queue.get()
            if work is None:
                return
            work()
            del work  # or what it refers to is kept until there is more to do


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
        self._crew = _Crew()
        self._threads = asyncio.Semaphore(threads)
        self._turns: WeakValueDictionary[tuple[str | None, bool], asyncio.Semaphore] = WeakValueDictionary()
        self._waiting = waiting
        self._patience = patience
        self._present = 0
        self._begun = 0
        self._quiet: asyncio.Future[None] | None = None

    @property
    def present(self) -> int:
        """How many calls wait or run."""
        return self._present

    @property
    def is_idle(self) -> bool:
        """Whether no thread is at work."""
        return not self._begun

    @property
    def is_full(self) -> bool:
        """Whether every thread is at work."""
        return self._threads.locked()

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
        if self._present >= self._waiting:
            raise Overloaded
        self._present += 1
        try:
            turn = self._turn_of(bucket, writes)
            if turn.locked() or self._threads.locked():
                await self._wait_for(turn, self._threads)
            else:
                await turn.acquire()
                await self._threads.acquire()
            return await self._begin(call, turn)
        finally:
            self._present -= 1

    def _begin(self, call: Callable[[], T], turn: asyncio.Semaphore) -> asyncio.Future[T]:
        """Runs a call in a thread; its turn ends with it, whether or not it is still waited for."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        self._begun += 1

        def finish(result: T | None, error: BaseException | None) -> None:
            self._begun -= 1
            if self._quiet is not None and not self._begun and not self._quiet.done():
                self._quiet.set_result(None)
            self._threads.release()
            turn.release()
            if outcome.done():
                return
            if error is None:
                outcome.set_result(cast(T, result))
            else:
                outcome.set_exception(error)

        def work() -> None:
            result, error = None, None
            try:
                result = call()
            except BaseException as raised:  # noqa: BLE001 - raised again where the call is awaited
                error = raised
            with suppress(RuntimeError):  # the loop may have been closed by an end that does not wait
                loop.call_soon_threadsafe(finish, result, error)

        self._crew.take(work, self._begun)
        return outcome

    async def drain(self, seconds: float) -> bool:
        """Waits for the calls that have begun; tells whether all of them came to their end in time."""
        if self._begun:
            self._quiet = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._quiet], timeout=seconds)
        self._crew.dismiss()
        return not self._begun

    def _turn_of(self, bucket: str | None, writes: bool) -> asyncio.Semaphore:
        turn = self._turns.get((bucket, writes))
        if turn is None:
            turn = asyncio.Semaphore(_WRITERS_OF_ONE_USER if writes else _READERS_OF_ONE_USER)
            self._turns[bucket, writes] = turn
        return turn

    async def _wait_for(self, *gates: asyncio.Semaphore) -> None:
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
