"""A batch is one transaction of each user, reads what was before, and loses nothing to other writers."""

from __future__ import annotations

import asyncio
import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp

from deermem import CommitInDoubt, DeerMem, InvalidInputError
from deermem.integrations.langgraph import DeerMemStore
from tests.manager.managers import watched_manager
from tests.support.watched import call_of


def revision(store: DeerMemStore, user: str = "alice") -> int:
    found = store.manager.get_memory(user_id=user)["revision"]
    assert isinstance(found, int)
    return found


def test_the_puts_of_one_user_are_one_transaction(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.batch([PutOp(("alice", f"n{number}"), "k", {"n": number}) for number in range(5)])
        assert revision(store) == 1
        store.batch(
            [
                PutOp(("alice", "n0"), "k", None),
                PutOp(("alice", "n1"), "k", {"n": 10}),
                PutOp(("alice", "new"), "k", {"n": 11}),
                PutOp(("bob",), "k", {"n": 12}),
            ]
        )
        assert (revision(store), revision(store, "bob")) == (2, 1)


def test_reads_show_what_was_before_the_puts_of_their_batch(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.put(("alice",), "k", {"n": 1})
        results = store.batch(
            [PutOp(("alice",), "k", {"n": 2}), GetOp(("alice",), "k"), SearchOp(("alice",))]
        )
        assert results[0] is None
        assert results[1].value == {"n": 1}  # type: ignore[union-attr]
        assert [item.value for item in results[2]] == [{"n": 1}]  # type: ignore[union-attr]
        assert store.get(("alice",), "k").value == {"n": 2}  # type: ignore[union-attr]


def test_of_several_puts_to_one_key_the_last_counts(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.batch([PutOp(("alice",), "k", {"n": 1}), PutOp(("alice",), "k", {"n": 2})])
        assert store.get(("alice",), "k").value == {"n": 2}  # type: ignore[union-attr]
        store.batch([PutOp(("alice",), "k", {"n": 3}), PutOp(("alice",), "k", None)])
        assert store.get(("alice",), "k") is None
        store.batch([PutOp(("alice",), "k", None), PutOp(("alice",), "k", {"n": 4})])
        assert store.get(("alice",), "k").value == {"n": 4}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (PutOp(("alice",), "k2", {"n": {1}}), InvalidInputError),
        (PutOp(("bob", "a.b"), "k2", {"n": 1}), InvalidNamespaceError),
        (PutOp((), "k2", {"n": 1}), InvalidNamespaceError),
        (PutOp(("alice",), "k2", {"n": 1}, None, 5), NotImplementedError),
        (SearchOp(("alice",), {"n": {"$in": []}}), InvalidInputError),
        ("no operation", ValueError),
    ],
)
def test_a_batch_with_one_wrong_operation_does_nothing(tmp_path: Path, wrong: Any, error: type) -> None:
    with DeerMemStore(tmp_path) as store:
        with pytest.raises(error):
            store.batch([PutOp(("alice",), "k", {"n": 1}), wrong])
        assert revision(store) == 0


def test_a_delete_of_nothing_makes_no_user(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.delete(("alice", "n"), "k")
    assert not list(tmp_path.iterdir())


def test_one_get_reads_one_fact_of_many(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.batch([PutOp(("alice", "n"), f"k{number}", {"n": number}) for number in range(40)])
    manager, disk = watched_manager(tmp_path)
    with manager:
        assert DeerMemStore(manager).get(("alice", "n"), "k7").value == {"n": 7}  # type: ignore[union-attr]
        assert disk.count("read", ending=".md") == 1


def test_writers_from_many_threads_and_stores_lose_nothing(tmp_path: Path) -> None:
    def work(number: int) -> None:
        patient = {"storage_path": str(tmp_path), "file_lock_timeout_seconds": 120}
        with DeerMem(patient) as manager:
            store = DeerMemStore(manager)
            for turn in range(5):
                store.batch(
                    [
                        PutOp(("alice", "own"), f"{number}.{turn}", {"n": number}),
                        PutOp(("alice", "shared"), "k", {"from": number, "turn": turn}),
                    ]
                )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with DeerMemStore(tmp_path) as store:
        assert len(store.search(("alice", "own"), limit=100)) == 20
        assert store.get(("alice", "shared"), "k").value["turn"] == 4  # type: ignore[union-attr]
        assert revision(store) == 20


def test_a_put_does_not_take_back_what_another_front_door_changed_meanwhile(tmp_path: Path) -> None:
    """The fact is read under the lock: what the value does not speak of is never from before."""
    with DeerMem({"storage_path": str(tmp_path)}) as manager:
        store = DeerMemStore(manager)
        store.put(("alice",), "k", {"content": "x"})

        def rate() -> None:
            for step in range(1, 21):
                manager.update_fact("k", confidence=step / 20, user_id="alice")

        def put() -> None:
            for step in range(20):
                store.put(("alice",), "k", {"content": f"x{step}"})

        threads = [threading.Thread(target=rate), threading.Thread(target=put)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (fact,) = manager.get_memory(user_id="alice")["facts"]
        assert (fact["content"], fact["confidence"]) == ("x19", 1.0)


def test_the_event_loop_goes_on_while_batches_wait(tmp_path: Path) -> None:
    async def run() -> tuple[list[Any], bool]:
        with DeerMemStore(tmp_path) as store:
            ticked = False

            async def tick() -> None:
                nonlocal ticked
                ticked = True

            puts = [store.aput((f"user{number}", "n"), "k", {"n": number}) for number in range(8)]
            await asyncio.gather(*puts, tick())
            gets = await asyncio.gather(*[store.aget((f"user{number}", "n"), "k") for number in range(8)])
            return [item and item.value for item in gets], ticked

    values, ticked = asyncio.run(run())
    assert values == [{"n": number} for number in range(8)]
    assert ticked


def test_a_batch_that_fails_on_the_disk_leaves_all_as_it_was(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.put(("alice",), "a", {"n": 1})
    manager, disk = watched_manager(tmp_path)
    with manager:
        store = DeerMemStore(manager)
        disk.fail(call_of("create"), errno.ENOSPC)
        with pytest.raises(OSError, match="No space left") as failed:
            store.batch([PutOp(("alice",), "a", None), PutOp(("alice",), "b", {"n": 2})])
        assert not isinstance(failed.value, CommitInDoubt)
    with DeerMemStore(tmp_path) as store:
        assert [item.key for item in store.search(("alice",))] == ["a"]
