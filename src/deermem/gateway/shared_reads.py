"""Reads that several requests share: whoever asks while a read is under way gets the result of the next one.

The read that is under way may show a state from before the question, so it is not shared. The next one
answers all that have asked by then: many requests for one memory cost few reads of it, also when it is not
cached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from deermem.gateway.work import WorkPool

T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    """Is a read that is under way, and what waits for the next one."""

    call: Callable[[], T] | None = None
    awaited: asyncio.Future[T] | None = None


class SharedReads(Generic[T]):
    """Runs reads in a pool; belongs to the event loop that uses it.

    Args:
        pool: Where to run them.
    """

    def __init__(self, pool: WorkPool) -> None:
        self._pool = pool
        self._flights: dict[Hashable, _Flight[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # the loop holds its tasks weakly

    async def run(self, key: Hashable, bucket: str | None, call: Callable[[], T]) -> T:
        """Returns what a call returns that begins after this.

        Args:
            key: Calls with the same key return the same.
            bucket: Whose memory the call reads.
            call: What to run.

        Raises:
            Overloaded: The call did not get its turn.
        """
        flight = self._flights.get(key)
        if flight is None:
            self._flights[key] = flight = _Flight[T]()
            return await self._fly(key, bucket, call, flight)
        if flight.awaited is None:
            flight.call, flight.awaited = call, asyncio.get_running_loop().create_future()
        return await asyncio.shield(flight.awaited)

    async def _fly(self, key: Hashable, bucket: str | None, call: Callable[[], T], flight: _Flight[T]) -> T:
        try:
            return await self._pool.run(bucket, False, call)
        finally:
            if flight.call is None or flight.awaited is None:
                del self._flights[key]
            else:
                self._flights[key] = following = _Flight[T]()
                delivery = self._deliver(flight.awaited, self._fly(key, bucket, flight.call, following))
                task = asyncio.get_running_loop().create_task(delivery)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _deliver(self, awaited: asyncio.Future[T], read: Coroutine[Any, Any, T]) -> None:
        try:
            awaited.set_result(await read)
        except Exception as error:  # noqa: BLE001 - raised again where the result is awaited
            awaited.set_exception(error)
            awaited.exception()  # or asyncio reports one that nobody waits for any more
