"""Reads that several requests share.

Those who ask before a read begins get its result; those who ask while it is under way get that of the next
one, since it may show a state from before their question. So many requests for one memory cost few reads of
it, also when it is not cached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from deermem.gateway.work import WorkPool

T = TypeVar("T")

Waiters = list["asyncio.Future[T]"]


class SharedReads(Generic[T]):
    """Runs reads in a pool; belongs to the event loop that uses it.

    Args:
        pool: Where to run them.
    """

    def __init__(self, pool: WorkPool) -> None:
        self._pool = pool
        self._gathering: dict[Hashable, Waiters[T]] = {}
        self._under_way: dict[Hashable, asyncio.Task[None]] = {}

    async def run(self, key: Hashable, bucket: str | None, call: Callable[[], T]) -> T:
        """Returns what a call returns that begins after this.

        Args:
            key: Calls with the same key return the same.
            bucket: Whose memory the call reads.
            call: What to run.

        Raises:
            Overloaded: The call did not get its turn.
        """
        loop = asyncio.get_running_loop()
        waiters = self._gathering.get(key)
        if waiters is None:
            waiters = self._gathering[key] = []
            before = self._under_way.get(key)
            # A task begins when those that are ready now have had their turn: they may ask for the same.
            self._under_way[key] = loop.create_task(self._read(key, bucket, call, waiters, before))
        waiter: asyncio.Future[T] = loop.create_future()
        waiters.append(waiter)
        return await waiter

    async def _read(
        self,
        key: Hashable,
        bucket: str | None,
        call: Callable[[], T],
        waiters: Waiters[T],
        before: asyncio.Task[None] | None,
    ) -> None:
        if before is not None:
            await before
        del self._gathering[key]
        try:
            result = await self._pool.run(bucket, False, call)
        except Exception as error:  # noqa: BLE001 - raised again where the result is awaited
            for waiter in _still_there(waiters):
                waiter.set_exception(error)
        else:
            for waiter in _still_there(waiters):
                waiter.set_result(result)
        finally:
            if key not in self._gathering:
                del self._under_way[key]


def _still_there(waiters: Waiters[T]) -> Waiters[T]:
    return [waiter for waiter in waiters if not waiter.done()]
