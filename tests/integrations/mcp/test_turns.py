"""A user's calls take turns, whatever becomes of those who made them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from deermem.integrations.mcp.failures import TOO_MANY, Refused
from deermem.integrations.mcp.turns import MOST_WAITING, WRITERS, Turns


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def gated(gate: asyncio.Event, began: list[int], number: int) -> Callable[[], Awaitable[int]]:
    async def call() -> int:
        began.append(number)
        await gate.wait()
        return number

    return call


def test_a_call_that_has_begun_keeps_its_turn_and_one_that_waits_is_given_up() -> None:
    async def work() -> None:
        turns, gate, began = Turns(), asyncio.Event(), list[int]()
        calls = [
            asyncio.ensure_future(turns.run("alice", gated(gate, began, number), writes=True))
            for number in range(WRITERS + 2)
        ]
        await settle()
        assert began == list(range(WRITERS))
        for call in calls[:-1]:
            call.cancel()
        await settle()
        assert began == list(range(WRITERS))  # those who were cancelled are still at work
        gate.set()
        assert await calls[-1] == WRITERS + 1
        assert began == [*range(WRITERS), WRITERS + 1]
        await settle()
        assert not turns._lines

    asyncio.run(work())


def test_readers_and_other_users_do_not_wait_for_writers() -> None:
    async def work() -> None:
        turns, gate, began = Turns(), asyncio.Event(), list[int]()
        stuck = [
            asyncio.ensure_future(turns.run("alice", gated(gate, began, number), writes=True))
            for number in range(WRITERS)
        ]
        await settle()
        free = asyncio.Event()
        free.set()
        assert await turns.run("alice", gated(free, began, 7), writes=False) == 7
        assert await turns.run("bob", gated(free, began, 8), writes=True) == 8
        gate.set()
        await asyncio.gather(*stuck)

    asyncio.run(work())


def test_too_many_calls_are_refused_and_not_begun() -> None:
    async def work() -> None:
        turns, gate, began = Turns(), asyncio.Event(), list[int]()
        calls = [
            asyncio.ensure_future(turns.run("alice", gated(gate, began, number), writes=True))
            for number in range(MOST_WAITING)
        ]
        await settle()
        with pytest.raises(Refused, match=TOO_MANY):
            await turns.run("alice", gated(gate, began, -1), writes=True)
        gate.set()
        await asyncio.gather(*calls)
        assert -1 not in began

    asyncio.run(work())


def test_an_error_that_nobody_waits_for_is_no_complaint(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        gate = asyncio.Event()

        async def fail() -> None:
            await gate.wait()
            raise ValueError

        call = asyncio.ensure_future(Turns().run("alice", fail, writes=True))
        await settle()
        call.cancel()
        await settle()
        gate.set()
        await settle()

    asyncio.run(work())
    assert caplog.text == ""
