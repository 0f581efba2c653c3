"""Flushing and closing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from deermem import (
    DeerMem,
    ExtractionRequest,
    MemoryManagerClosed,
    MemoryManagerError,
    MemoryRepository,
    Scope,
)
from deermem.manager.strands import Strands
from tests.manager.managers import contents, manager_at, watched_manager
from tests.search.adapters import DictAdapter
from tests.support.threads import in_thread
from tests.support.watched import Call, call_of

PATIENCE = 60.0

CALLS: dict[str, Callable[[DeerMem], object]] = {
    "add": lambda manager: manager.add("t", ["x"], user_id="alice"),
    "add_nowait": lambda manager: manager.add_nowait("t", ["x"], user_id="alice"),
    "get_context": lambda manager: manager.get_context("alice"),
    "search": lambda manager: manager.search("x", user_id="alice"),
    "get_memory": lambda manager: manager.get_memory(user_id="alice"),
    "reload_memory": lambda manager: manager.reload_memory(user_id="alice"),
    "export_memory": lambda manager: manager.export_memory(user_id="alice"),
    "import_memory": lambda manager: manager.import_memory({"facts": []}, user_id="alice"),
    "clear_memory": lambda manager: manager.clear_memory(user_id="alice"),
    "delete_memory": lambda manager: manager.delete_memory(user_id="alice"),
    "create_fact": lambda manager: manager.create_fact("x", user_id="alice"),
    "update_fact": lambda manager: manager.update_fact("x", user_id="alice"),
    "delete_fact": lambda manager: manager.delete_fact("x", user_id="alice"),
    "warm": lambda manager: manager.warm(),
    "run_on_store": lambda manager: manager.run_on_store(lambda _: None),
}


@pytest.mark.parametrize("name", CALLS)
def test_after_the_end_a_call_says_that_the_manager_is_closed(tmp_path: Path, name: str) -> None:
    manager = manager_at(tmp_path, lambda _: None)
    manager.close()
    with pytest.raises(MemoryManagerClosed, match="closed") as closed:
        CALLS[name](manager)
    assert isinstance(closed.value, MemoryManagerError)
    assert list(tmp_path.iterdir()) == []


def test_closing_twice_closes_once(tmp_path: Path) -> None:
    closed: list[str] = []

    class Adapter(DictAdapter):
        def close(self) -> None:
            closed.append("closed")

    manager = DeerMem(repository=MemoryRepository(tmp_path, retrieval_adapter=Adapter()))
    manager.close()
    manager.close()
    assert closed == ["closed"]


def test_after_the_end_no_thread_is_left(tmp_path: Path) -> None:
    manager = manager_at(tmp_path, lambda _: None)
    before = set(threading.enumerate())

    async def use() -> None:
        await manager.acreate_fact("x", user_id="alice")
        await manager.aadd("t", ["x"], user_id="alice")
        assert await manager.aget_memory(user_id="alice")

    asyncio.run(use())
    assert manager.shutdown_flush(PATIENCE)
    manager.close()
    while any(thread.name.startswith("deermem-") for thread in set(threading.enumerate()) - before):
        pass  # the time-out of the test is the limit


class Held(NamedTuple):
    """Is a manager with a write of alice in the middle of its transaction."""

    manager: DeerMem
    go_on: threading.Event
    outcome: list[str]


@contextmanager
def held(root: Path) -> Iterator[Held]:
    """Holds a write while the block runs, or until it may go on."""
    manager, disk = watched_manager(root)
    manager.create_fact("first", user_id="alice")
    reached, go_on = threading.Event(), threading.Event()
    outcome: list[str] = []

    def stop(call: Call) -> None:
        if call_of("rename", "memory.json")(call):
            reached.set()
            assert go_on.wait(PATIENCE)

    def write() -> None:
        document, _ = manager.create_fact("held", user_id="alice")
        outcome.extend(contents(document))

    disk.on_call = stop
    with in_thread(write):
        assert reached.wait(PATIENCE)
        try:
            yield Held(manager, go_on, outcome)
        finally:
            go_on.set()


def test_a_flush_waits_for_the_writes_under_way_and_no_longer_than_it_may(tmp_path: Path) -> None:
    flushed: list[bool] = []
    with held(tmp_path) as (manager, go_on, outcome):
        assert manager.shutdown_flush(0.01) is False
        assert manager.shutdown_flush(-1) is False
        with in_thread(lambda: flushed.append(manager.shutdown_flush(PATIENCE))):
            go_on.set()
    assert flushed == [True]
    assert outcome == ["first", "held"]


def test_a_flush_does_not_wait_for_what_begins_after_it(tmp_path: Path) -> None:
    gate, begun = threading.Event(), threading.Semaphore(0)

    def hook(request: ExtractionRequest) -> None:
        begun.release()
        assert request.thread_id == "first" or gate.wait(PATIENCE)

    manager = manager_at(tmp_path, hook)
    manager.add("first", ["x"], user_id="alice")
    token = manager._lifetime.begin()
    flushed: list[bool] = []
    with in_thread(lambda: flushed.append(manager.shutdown_flush(PATIENCE))):
        assert begun.acquire(timeout=PATIENCE)
        while not manager._lifetime._changed._waiters:  # type: ignore[attr-defined]  # the flush waits
            pass
        manager.add("second", ["x"], user_id="bob")
        assert begun.acquire(timeout=PATIENCE)
        manager._lifetime.end(token)
    assert flushed == [True]
    gate.set()
    assert manager.shutdown_flush(PATIENCE)


def test_closing_waits_for_a_write_under_way_and_keeps_what_it_wrote(tmp_path: Path) -> None:
    ended = threading.Event()

    def close() -> None:
        manager.close()
        ended.set()

    with held(tmp_path) as (manager, go_on, outcome), in_thread(close):
        while not manager._lifetime.closed:
            pass  # the time-out of the test is the limit
        assert not ended.wait(0.2)
        go_on.set()
    assert ended.is_set()
    assert outcome == ["first", "held"]
    assert len(MemoryRepository(tmp_path).snapshot(Scope.of("alice")).facts) == 2


@pytest.mark.parametrize("timeout", ["1", None, float("nan"), True])
def test_a_flush_needs_a_number(tmp_path: Path, timeout: Any) -> None:
    with pytest.raises(ValueError, match="timeout"):
        manager_at(tmp_path).shutdown_flush(timeout)


def test_works_that_wait_can_be_taken_back_and_others_put_after_them() -> None:
    begun, go_on = threading.Event(), threading.Event()
    ran: list[str] = []
    lifetimes: dict[str, threading.Event] = {"after": threading.Event(), "other": threading.Event()}

    def run(work: str) -> None:
        ran.append(work)
        if work == "holds":
            begun.set()
            assert go_on.wait(PATIENCE)
        elif work in lifetimes:
            lifetimes[work].set()

    strands = Strands(run, threads=1, limit=9)
    assert strands.put("a", "holds")
    assert begun.wait(PATIENCE)
    assert strands.put("a", "taken back")
    assert strands.put("b", "taken back too")
    assert sorted(strands.drain()) == ["taken back", "taken back too"]
    assert strands.put("a", "after")
    assert strands.put("b", "other")
    go_on.set()
    assert all(ended.wait(PATIENCE) for ended in lifetimes.values())
    assert sorted(ran) == ["after", "holds", "other"]


def test_a_manager_closes_at_the_end_of_its_block(tmp_path: Path) -> None:
    with DeerMem({"storage_path": str(tmp_path)}) as manager:
        manager.create_fact("A text.", user_id="alice")
    with pytest.raises(MemoryManagerClosed):
        manager.get_memory(user_id="alice")
