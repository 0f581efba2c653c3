"""Requests for the same thing at once share a read, but never one that began before they came."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from deermem.gateway.shared_reads import SharedReads
from deermem.gateway.work import WorkPool
from tests.gateway.test_work import PATIENCE, run


class Counter:
    """Counts its reads; each is held until it is let go."""

    def __init__(self) -> None:
        self.begun = 0
        self._allowed = threading.Semaphore(0)

    def read(self) -> int:
        self.begun += 1
        number = self.begun
        assert self._allowed.acquire(timeout=PATIENCE)
        return number

    def let_go(self, number: int = 1) -> None:
        self._allowed.release(number)

    async def until(self, begun: int) -> None:
        while self.begun < begun:  # noqa: ASYNC110 - a thread counts
            await asyncio.sleep(0)


def with_reads(scenario: Callable[[SharedReads[int]], Awaitable[None]]) -> None:
    async def play() -> None:
        pool = WorkPool(4, 100, PATIENCE)
        await scenario(SharedReads(pool))
        assert await pool.drain(PATIENCE)

    run(play)


def test_those_who_ask_during_a_read_share_the_next_one() -> None:
    async def scenario(reads: SharedReads[int]) -> None:
        counter = Counter()
        first = asyncio.create_task(reads.run("key", "a", counter.read))
        await counter.until(1)
        others = [asyncio.create_task(reads.run("key", "a", counter.read)) for _ in range(10)]
        await asyncio.sleep(0)
        counter.let_go(2)
        assert await first == 1
        assert await asyncio.gather(*others) == [2] * 10
        assert counter.begun == 2

    with_reads(scenario)


def test_those_who_ask_during_the_next_read_wait_for_the_one_after() -> None:
    async def scenario(reads: SharedReads[int]) -> None:
        counter = Counter()
        asked = []
        for number in range(1, 6):
            asked.append(asyncio.create_task(reads.run("key", "a", counter.read)))
            await asyncio.sleep(0)
            if number > 1:
                counter.let_go()
            await counter.until(number)
        counter.let_go()
        assert await asyncio.gather(*asked) == [1, 2, 3, 4, 5]

    with_reads(scenario)


def test_one_after_another_each_has_a_read_of_its_own() -> None:
    async def scenario(reads: SharedReads[int]) -> None:
        counter = Counter()
        counter.let_go(3)
        assert [await reads.run("key", "a", counter.read) for _ in range(3)] == [1, 2, 3]

    with_reads(scenario)


def test_other_keys_have_reads_of_their_own() -> None:
    async def scenario(reads: SharedReads[int]) -> None:
        one, other = Counter(), Counter()
        tasks = [asyncio.create_task(reads.run("one", "a", one.read))]
        await one.until(1)
        tasks.append(asyncio.create_task(reads.run("other", "a", other.read)))
        await other.until(1)
        one.let_go()
        other.let_go()
        assert await asyncio.gather(*tasks) == [1, 1]

    with_reads(scenario)


def test_an_error_reaches_all_who_share_the_read_and_ends_with_it() -> None:
    async def scenario(reads: SharedReads[int]) -> None:
        counter = Counter()

        def fail() -> int:
            raise OSError("bad disk")

        first = asyncio.create_task(reads.run("key", "a", counter.read))
        await counter.until(1)
        others = [asyncio.create_task(reads.run("key", "a", fail)) for _ in range(3)]
        await asyncio.sleep(0)
        counter.let_go(2)
        assert await first == 1
        for other in others:
            with pytest.raises(OSError, match="bad disk"):
                await other
        assert await reads.run("key", "a", counter.read) == 2

    with_reads(scenario)


def test_who_gives_up_takes_nothing_from_the_others() -> None:
    async def scenario(reads: SharedReads[int]) -> None:
        counter = Counter()
        first = asyncio.create_task(reads.run("key", "a", counter.read))
        await counter.until(1)
        second, third = (asyncio.create_task(reads.run("key", "a", counter.read)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        counter.let_go(2)
        assert await third == 2
        for task in (first, second):
            with pytest.raises(asyncio.CancelledError):
                await task

    with_reads(scenario)
