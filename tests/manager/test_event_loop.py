"""The twins for event loops: they block none, and a cancelled await neither loses nor doubles a write."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem, DuplicateFact, MemoryManager, MemoryManagerClosed, MemoryRepository, Scope
from deermem.manager import off_loop
from tests.manager.managers import contents, manager_at, watched_manager
from tests.support.stores import store_with
from tests.support.watched import Call, call_of

PATIENCE = 60.0
TICKS = 50

TWINS: dict[str, Callable[[DeerMem], Awaitable[object]]] = {
    "aadd": lambda manager: manager.aadd("t", ["x"], user_id="alice"),
    "aadd_nowait": lambda manager: manager.aadd_nowait("t", ["x"], user_id="alice"),
    "aget_context": lambda manager: manager.aget_context("alice"),
    "asearch": lambda manager: manager.asearch("text", user_id="alice"),
    "aget_memory": lambda manager: manager.aget_memory(user_id="alice"),
    "areload_memory": lambda manager: manager.areload_memory(user_id="alice"),
    "aexport_memory": lambda manager: manager.aexport_memory(user_id="alice"),
    "aimport_memory": lambda manager: manager.aimport_memory({"facts": []}, user_id="alice"),
    "aclear_memory": lambda manager: manager.aclear_memory(user_id="alice"),
    "adelete_memory": lambda manager: manager.adelete_memory(user_id="alice"),
    "acreate_fact": lambda manager: manager.acreate_fact("new", user_id="alice"),
    "aupdate_fact": lambda manager: manager.aupdate_fact("x", "new", user_id="alice"),
    "adelete_fact": lambda manager: manager.adelete_fact("x", user_id="alice"),
    "awarm": lambda manager: manager.awarm(),
    "arun_on_store": lambda manager: manager.arun_on_store(lambda store: store.list_users()),
}
WAITING = ("ashutdown_flush", "aclose")


def test_every_operation_has_a_twin_that_is_tested_here() -> None:
    twins = {
        name for name in dir(MemoryManager) if not name.startswith("_") and hasattr(MemoryManager, name[1:])
    }
    assert twins == {*TWINS, *WAITING} - {"arun_on_store"}


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop tick until something holds that threads bring about."""
    while not condition():  # noqa: ASYNC110 - the ticking is what is tested
        await asyncio.sleep(0)


class Barrier:
    """Keeps every call of a disk from returning until the loop has ticked on for a while."""

    def __init__(self) -> None:
        self.ticked = threading.Event()
        self.reached = threading.Event()

    def stop(self, _: Call) -> None:
        self.reached.set()
        assert self.ticked.wait(PATIENCE), "the loop stood still"

    async def tick(self) -> None:
        await until(self.reached.is_set)
        for _ in range(TICKS):
            await asyncio.sleep(0)
        self.ticked.set()


@pytest.mark.parametrize("name", TWINS)
def test_the_loop_goes_on_while_a_twin_works(tmp_path: Path, name: str) -> None:
    store_with(tmp_path, "x")
    manager, disk = watched_manager(tmp_path, lambda _: None)
    barrier = Barrier()
    disk.on_call = barrier.stop

    async def together() -> None:
        await asyncio.gather(TWINS[name](manager), barrier.tick())

    asyncio.run(together())


@pytest.mark.parametrize("name", WAITING)
def test_the_loop_goes_on_while_a_twin_waits_for_what_is_under_way(tmp_path: Path, name: str) -> None:
    manager, disk = watched_manager(tmp_path)
    barrier = Barrier()
    disk.on_call = barrier.stop

    async def together() -> None:
        write = asyncio.ensure_future(manager.acreate_fact("x", user_id="alice"))
        await until(barrier.reached.is_set)
        waiting = manager.ashutdown_flush(PATIENCE) if name == "ashutdown_flush" else manager.aclose()
        assert (await asyncio.gather(waiting, barrier.tick()))[0] is not False
        assert (await write)[1] is not None

    asyncio.run(together())


def test_a_twin_returns_and_raises_what_its_operation_does(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)

    async def use() -> None:
        document, fact_id = await manager.acreate_fact("x", "goal", 0.25, user_id="alice", agent_name="Coder")
        assert document == manager.get_memory(user_id="alice", agent_name="coder")
        with pytest.raises(DuplicateFact):
            await manager.acreate_fact("x", user_id="alice", agent_name="coder")
        found = await manager.asearch("X", 1, user_id="alice", agent_name="coder", category="goal")
        assert [fact["id"] for fact in found] == [fact_id]
        changed = await manager.aupdate_fact(str(fact_id), "y", user_id="alice", agent_name="coder")
        assert contents(changed) == ["y"]
        assert "y" in await manager.aget_context("alice", agent_name="coder")
        with pytest.raises(KeyError):
            await manager.adelete_fact("absent", user_id="alice", agent_name="coder")
        assert await manager.awarm() is True
        assert await manager.ashutdown_flush(1) is True
        await manager.aclose()
        with pytest.raises(MemoryManagerClosed):
            await manager.aget_memory(user_id="alice")

    asyncio.run(use())


def test_the_twins_of_another_backend_run_in_threads_too() -> None:
    class Recording(MemoryManager):
        def add(self, *_: Any, **__: Any) -> None:
            threads.append(threading.get_ident())

        def get_context(self, *_: Any, **__: Any) -> str:
            return "text"

    threads: list[int] = []
    asyncio.run(Recording().aadd("t", ["x"]))
    assert threads[0] != threading.get_ident()
    assert asyncio.run(Recording().aget_context("alice")) == "text"


def test_context_variables_reach_the_thread(tmp_path: Path) -> None:
    trace = contextvars.ContextVar("trace", default="none")
    manager = manager_at(tmp_path)

    async def use() -> str:
        trace.set("trace_1")
        return await manager.arun_on_store(lambda _: trace.get())

    assert asyncio.run(use()) == "trace_1"


class Stopped:
    """Stops each create of a disk at its commit until it may go on."""

    def __init__(self, root: Path) -> None:
        self.manager, disk = watched_manager(root)
        self.reached, self.go_on = threading.Event(), threading.Event()
        disk.on_call = self._stop

    def _stop(self, call: Call) -> None:
        if call_of("rename", "memory.json")(call):
            self.reached.set()
            assert self.go_on.wait(PATIENCE)

    async def until_reached(self) -> None:
        await until(self.reached.is_set)


def test_a_write_whose_await_is_cancelled_is_completed_once(tmp_path: Path) -> None:
    stopped = Stopped(tmp_path)

    async def cancel() -> None:
        write = asyncio.ensure_future(stopped.manager.acreate_fact("x", user_id="alice"))
        await stopped.until_reached()
        write.cancel()
        with pytest.raises(asyncio.CancelledError):
            await write
        assert stopped.manager.shutdown_flush(0.01) is False
        stopped.go_on.set()
        assert await stopped.manager.ashutdown_flush(PATIENCE) is True

    asyncio.run(cancel())
    gc.collect()  # or an error that nobody fetched is reported later, if it is at all
    assert contents(stopped.manager.get_memory(user_id="alice")) == ["x"]
    assert stopped.manager.get_memory(user_id="alice")["revision"] == 1


def test_a_write_that_has_not_begun_when_its_await_is_cancelled_never_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_loop, "WRITERS", 1)
    stopped = Stopped(tmp_path)

    async def cancel() -> None:
        first = asyncio.ensure_future(stopped.manager.acreate_fact("x", user_id="alice"))
        await stopped.until_reached()
        second = asyncio.ensure_future(stopped.manager.acreate_fact("y", user_id="alice"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        stopped.go_on.set()
        await first
        assert await stopped.manager.ashutdown_flush(PATIENCE) is True

    asyncio.run(cancel())
    assert contents(stopped.manager.get_memory(user_id="alice")) == ["x"]


def test_many_cancelled_creates_leave_each_fact_there_once_or_not_at_all(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    acknowledged: list[str] = []

    async def create(number: int) -> None:
        await manager.acreate_fact(f"fact {number}", user_id="alice")
        acknowledged.append(f"fact {number}")

    async def storm() -> None:
        tasks = [asyncio.ensure_future(create(number)) for number in range(30)]
        await until(lambda: len(acknowledged) >= 3)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert await manager.ashutdown_flush(PATIENCE) is True

    asyncio.run(storm())
    stored = [fact.content for fact in MemoryRepository(tmp_path).snapshot(Scope.of("alice")).facts]
    assert len(stored) == len(set(stored))
    assert {f"fact {number}" for number in range(1, 30, 2)} <= set(stored)
    assert set(acknowledged) <= set(stored)


def test_reads_do_not_queue_behind_writers_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(off_loop, "WRITERS", 2)
    store_with(tmp_path, "z", scope=Scope.of("bob"))
    stopped = Stopped(tmp_path)

    async def use() -> None:
        writes = [
            asyncio.ensure_future(stopped.manager.acreate_fact(f"{number}", user_id="alice"))
            for number in range(4)
        ]
        await stopped.until_reached()
        assert contents(await stopped.manager.aget_memory(user_id="bob")) == ["text of z"]
        stopped.go_on.set()
        await asyncio.gather(*writes)

    asyncio.run(use())


def test_a_flush_waits_for_writes_that_have_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_loop, "WRITERS", 1)
    manager, disk = watched_manager(tmp_path)
    reached, go_on = threading.Semaphore(0), threading.Semaphore(0)

    def stop(call: Call) -> None:
        if call_of("rename", "memory.json")(call):
            reached.release()
            assert go_on.acquire(timeout=PATIENCE)

    disk.on_call = stop

    async def use() -> None:
        first, second = (asyncio.ensure_future(manager.acreate_fact(text, user_id="alice")) for text in "xy")
        await until(lambda: reached.acquire(blocking=False))
        flush = asyncio.ensure_future(manager.ashutdown_flush(PATIENCE))
        await asyncio.sleep(0)
        go_on.release()
        await first
        await until(lambda: reached.acquire(blocking=False))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(flush), 0.2)
        go_on.release()
        assert await flush is True
        assert contents((await second)[0]) == ["x", "y"]

    asyncio.run(use())


def test_a_write_that_has_not_begun_at_the_end_says_that_the_manager_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_loop, "WRITERS", 1)
    stopped = Stopped(tmp_path)

    async def use() -> None:
        first = asyncio.ensure_future(stopped.manager.acreate_fact("x", user_id="alice"))
        await stopped.until_reached()
        second = asyncio.ensure_future(stopped.manager.acreate_fact("y", user_id="alice"))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(stopped.manager.aclose())
        await until(lambda: stopped.manager._lifetime.closed)
        stopped.go_on.set()
        await first
        with pytest.raises(MemoryManagerClosed):
            await second
        await closing

    asyncio.run(use())
    assert len(MemoryRepository(tmp_path).snapshot(Scope.of("alice")).facts) == 1
