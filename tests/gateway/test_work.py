"""Blocking work runs in a bounded number of threads, fairly among users, and is never cut short."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from deermem.gateway.work import Overloaded, WorkPool

PATIENCE = 20.0


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(), PATIENCE)

    asyncio.run(bounded())


class Gate:
    """Holds whoever passes until it is opened; tells how many are inside."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._mutex = threading.Lock()
        self.inside = 0
        self.most = 0

    def pass_through(self) -> None:
        with self._mutex:
            self.inside += 1
            self.most = max(self.most, self.inside)
        assert self._opened.wait(PATIENCE)
        with self._mutex:
            self.inside -= 1

    def open(self) -> None:
        self._opened.set()

    async def until(self, number: int) -> None:
        while self.inside < number:  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0)


def test_work_returns_and_raises_what_the_call_does() -> None:
    async def scenario() -> None:
        pool = WorkPool(2, 10, PATIENCE)
        assert await pool.run("a", False, lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await pool.run("a", True, lambda: 1 // 0)
        assert await pool.drain(PATIENCE)

    run(scenario)


def test_writes_of_one_user_run_one_after_another_and_those_of_others_beside_them() -> None:
    async def scenario() -> None:
        pool = WorkPool(8, 100, PATIENCE)
        first, second = Gate(), Gate()
        tasks = [asyncio.create_task(pool.run("a", True, first.pass_through)) for _ in range(5)]
        tasks += [asyncio.create_task(pool.run("b", True, second.pass_through)) for _ in range(5)]
        await first.until(1)
        await second.until(1)
        first.open()
        second.open()
        await asyncio.gather(*tasks)
        assert (first.most, second.most) == (1, 1)
        assert await pool.drain(PATIENCE)

    run(scenario)


def test_one_users_reads_leave_threads_for_others() -> None:
    async def scenario() -> None:
        pool = WorkPool(8, 100, PATIENCE)
        gate = Gate()
        tasks = [asyncio.create_task(pool.run("a", False, gate.pass_through)) for _ in range(20)]
        await gate.until(4)
        assert await pool.run("b", False, lambda: "served") == "served"
        gate.open()
        await asyncio.gather(*tasks)
        assert gate.most == 4
        assert await pool.drain(PATIENCE)

    run(scenario)


def test_reads_do_not_wait_for_the_writes_of_the_same_user() -> None:
    async def scenario() -> None:
        pool = WorkPool(8, 100, PATIENCE)
        gate = Gate()
        task = asyncio.create_task(pool.run("a", True, gate.pass_through))
        await gate.until(1)
        assert await pool.run("a", False, lambda: "read") == "read"
        gate.open()
        await task
        assert await pool.drain(PATIENCE)

    run(scenario)


def test_what_does_not_get_its_turn_in_time_is_not_begun() -> None:
    async def scenario() -> None:
        pool = WorkPool(1, 100, 0.05)
        gate = Gate()
        task = asyncio.create_task(pool.run("a", True, gate.pass_through))
        await gate.until(1)
        begun: list[str] = []
        for bucket in ("a", "b"):
            with pytest.raises(Overloaded):
                await pool.run(bucket, True, lambda: begun.append("begun"))
        gate.open()
        await task
        assert begun == []
        assert await pool.run("b", True, lambda: "later") == "later"
        assert await pool.drain(PATIENCE)

    run(scenario)


def test_what_is_too_much_is_refused_at_once() -> None:
    async def scenario() -> None:
        pool = WorkPool(1, 2, PATIENCE)
        gate = Gate()
        tasks = [asyncio.create_task(pool.run(name, False, gate.pass_through)) for name in "ab"]
        await gate.until(1)
        assert pool.present == 2
        with pytest.raises(Overloaded):
            await pool.run("c", False, lambda: None)
        gate.open()
        await asyncio.gather(*tasks)
        assert pool.present == 0
        assert await pool.drain(PATIENCE)

    run(scenario)


def test_work_whose_caller_went_away_runs_to_its_end_and_keeps_its_turn_until_then() -> None:
    async def scenario() -> None:
        pool = WorkPool(4, 10, PATIENCE)
        gate = Gate()
        ended: list[str] = []

        def work() -> None:
            gate.pass_through()
            ended.append("first")

        task = asyncio.create_task(pool.run("a", True, work))
        await gate.until(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        second = asyncio.create_task(pool.run("a", True, lambda: ended.append("second")))
        await asyncio.sleep(0.01)
        assert ended == []
        gate.open()
        await second
        assert ended == ["first", "second"]
        assert await pool.drain(PATIENCE)

    run(scenario)


def test_waiting_that_is_given_up_takes_no_turn() -> None:
    async def scenario() -> None:
        pool = WorkPool(4, 10, PATIENCE)
        gate = Gate()
        first = asyncio.create_task(pool.run("a", True, gate.pass_through))
        await gate.until(1)
        second = asyncio.create_task(pool.run("a", True, lambda: "never"))
        await asyncio.sleep(0)
        second.cancel()
        gate.open()
        await first
        assert await pool.run("a", True, lambda: "third") == "third"
        assert await pool.drain(PATIENCE)

    run(scenario)


def test_draining_waits_for_what_has_begun_and_no_longer_than_it_may() -> None:
    async def scenario() -> None:
        pool = WorkPool(4, 10, PATIENCE)
        gate = Gate()
        task = asyncio.create_task(pool.run("a", True, gate.pass_through))
        await gate.until(1)
        assert not await pool.drain(0.01)
        gate.open()
        await task
        assert await pool.drain(PATIENCE)

    run(scenario)


def test_turns_of_users_that_went_away_are_forgotten() -> None:
    async def scenario() -> None:
        pool = WorkPool(4, 10, PATIENCE)
        for number in range(1_000):
            await pool.run(f"user {number}", True, lambda: None)
        assert len(pool._turns) <= 1
        assert await pool.drain(PATIENCE)

    run(scenario)
