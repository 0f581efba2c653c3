"""Threads, event loops, cancellations, forks and processes on one namespace lose and tear nothing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from langgraph.store.base import GetOp, PutOp, Result

from deermem.integrations.langgraph import DeerMemStore

PLACE = ("alice", "pairs")
ROUNDS = 8


def pair(number: int) -> list[PutOp]:
    return [PutOp(PLACE, name, {"content": f"{name} of {number}", "n": number}) for name in ("a", "b")]


def numbers(results: list[Result]) -> set[int]:
    return {result.value["n"] for result in results}  # type: ignore[union-attr]


GETS = [GetOp(PLACE, "a"), GetOp(PLACE, "b")]


def test_no_thread_and_no_event_loop_ever_sees_half_a_batch(tmp_path: Path) -> None:
    torn: list[set[int]] = []
    with DeerMemStore(tmp_path) as store:
        store.batch(pair(0))

        def write(first: int) -> None:
            for number in range(first, first + ROUNDS):
                store.batch(pair(number))
                torn.append(numbers(store.batch(GETS)))

        async def one(number: int) -> None:
            await store.abatch(pair(number))
            torn.append(numbers(await store.abatch(GETS)))

        async def all_of(first: int) -> None:
            await asyncio.gather(*(one(number) for number in range(first, first + ROUNDS)))

        threads = [threading.Thread(target=write, args=(first,)) for first in (100, 200)]
        threads += [threading.Thread(target=asyncio.run, args=(all_of(first),)) for first in (300, 400)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(torn) == 4 * ROUNDS
    assert [seen for seen in torn if len(seen) != 1] == []


def test_a_batch_that_is_cancelled_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    async def cancelled(store: DeerMemStore, number: int) -> set[int]:
        put = asyncio.create_task(store.abatch(pair(number)))
        for _ in range(number):  # each time a bit later
            await asyncio.sleep(0)
        put.cancel()
        await asyncio.gather(put, return_exceptions=True)
        return numbers(await store.abatch(GETS))

    with DeerMemStore(tmp_path) as store:
        store.batch(pair(0))
        for number in range(1, 40):
            assert len(asyncio.run(cancelled(store, number))) == 1


WRITER = """
import sys
from deermem.integrations.langgraph import DeerMemStore

with DeerMemStore(sys.argv[1]) as store:
    for number in range(8):
        store.put(("alice", "shared"), f"{sys.argv[2]}-{number}", {"content": "mine"})
        store.put(("alice", "shared"), "both", {"content": sys.argv[2], "n": number})
"""


def test_two_processes_in_one_namespace_lose_nothing_and_a_third_sees_all(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.put(("alice", "shared"), "before", {"content": "cached"})
        assert len(store.search(("alice", "shared"))) == 1
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        writers = [subprocess.Popen([*command, name]) for name in ("x", "y")]
        assert [writer.wait(60) for writer in writers] == [0, 0]
        found = {item.key: item.value for item in store.search(("alice", "shared"), limit=100)}
    assert set(found) == {"before", "both"} | {f"{name}-{number}" for name in "xy" for number in range(8)}
    assert found["both"]["n"] == 7


FORKED = """
import asyncio, os, signal, sys, warnings
from deermem.integrations.langgraph import DeerMemStore

warnings.simplefilter("ignore")  # newer versions of Python warn of a fork among threads
store = DeerMemStore(sys.argv[1])
asyncio.run(store.aput(("alice",), "before", {"n": 0}))
assert asyncio.run(store.aget(("alice",), "before")).value == {"n": 0}
child = os.fork()
if not child:
    signal.alarm(20)
    store.put(("alice",), "child", {"n": 1})
    asyncio.run(store.aput(("alice",), "later", {"n": 2}))
    assert asyncio.run(store.aget(("alice",), "before")).value == {"n": 0}
    store.close()
    os._exit(0)
store.put(("alice",), "parent", {"n": 3})
assert os.waitpid(child, 0)[1] == 0, "the child failed or hung"
asyncio.run(store.aput(("alice",), "after", {"n": 4}))
found = asyncio.run(store.asearch(("alice",)))
assert sorted(item.key for item in found) == ["after", "before", "child", "later", "parent"]
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_goes_on_with_threads_of_its_own(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
