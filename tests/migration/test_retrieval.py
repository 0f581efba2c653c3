"""A retrieval adapter is told of migrated facts once, and never under a lock (plan section 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import MemoryRepository, Scope
from deermem.migration import Status, migrate_users
from tests.migration.runs import facts, put_users, statuses
from tests.migration.v1 import agent_document, document, put
from tests.search.watched import WatchedAdapter
from tests.support.stores import ALICE, CODER, draft

WAYS: dict[str, Callable[[MemoryRepository], object]] = {
    "read": lambda store: store.snapshot(ALICE),
    "write": lambda store: store.upsert_fact(ALICE, draft("new")),
    "migrate": lambda store: store.migrate("alice"),
    "a run": lambda store: list(migrate_users(store, ["alice"])),
}


def told(adapter: WatchedAdapter) -> Counter[tuple[str, str]]:
    """Returns how often the adapter was told of each fact, by user and id."""
    return Counter((str(scope.user), fact_id) for fact_id, scope, _ in adapter.told("upsert"))


@pytest.mark.parametrize("way", WAYS)
def test_the_adapter_is_told_once_of_each_fact(tmp_path: Path, way: str) -> None:
    put(tmp_path, document(*facts(3)))
    adapter = WatchedAdapter()
    store = MemoryRepository(tmp_path, retrieval_adapter=adapter)
    WAYS[way](store)
    expected = Counter(("alice", f"fact_{number:03}") for number in range(3))
    assert told(adapter) - Counter([("alice", "new")]) == expected
    store.migrate("alice")
    store.snapshot(ALICE)
    assert told(adapter) - Counter([("alice", "new")]) == expected
    assert adapter.told("rebuild") == []


@pytest.mark.parametrize("way", WAYS)
def test_the_adapter_is_told_after_the_lock_is_released(tmp_path: Path, way: str) -> None:
    put(tmp_path, document(*facts(3)))
    adapter = WatchedAdapter()
    other = MemoryRepository(tmp_path, lock_timeout=0.2)
    written: list[int] = []

    def write() -> None:
        if len(written) < 3:
            written.append(other.upsert_fact(ALICE, draft(f"during-{len(written)}")).revision)

    adapter.before["upsert"] = write
    WAYS[way](MemoryRepository(tmp_path, retrieval_adapter=adapter))
    assert len(written) == 3
    assert written[0] > 1  # what it is told of is committed


def test_a_lazy_migration_of_an_agent_tells_of_its_facts(tmp_path: Path) -> None:
    put(tmp_path, document(*facts(2)))
    put(tmp_path, agent_document({"id": "fact_c", "content": "Of the agent."}), "coder")
    adapter = WatchedAdapter()
    MemoryRepository(tmp_path, retrieval_adapter=adapter).snapshot(CODER)
    assert sorted((fact_id, scope.agent) for fact_id, scope, _ in adapter.told("upsert")) == [
        ("fact_000", "__default__"),
        ("fact_001", "__default__"),
        ("fact_c", "coder"),
    ]


def test_a_run_with_several_jobs_tells_of_every_fact_of_every_user_once(tmp_path: Path) -> None:
    users = [f"user{number}" for number in range(6)]
    put_users(tmp_path, *users, count=4)
    adapter = WatchedAdapter()
    store = MemoryRepository(tmp_path, retrieval_adapter=adapter)
    assert set(statuses(migrate_users(store, users, jobs=3)).values()) == {Status.MIGRATED}
    assert told(adapter) == Counter((user, f"fact_{number:03}") for user in users for number in range(4))
    assert adapter.clashes == 0


def test_an_adapter_that_fails_takes_no_migration_back(tmp_path: Path) -> None:
    put_users(tmp_path, "alice", "bob")
    adapter = WatchedAdapter()

    def fail() -> None:
        raise RuntimeError("the index is down")

    adapter.before["upsert"] = fail
    store = MemoryRepository(tmp_path, retrieval_adapter=adapter)
    outcomes = list(migrate_users(store, ["alice", "bob"]))
    assert [outcome.status for outcome in outcomes] == [Status.MIGRATED, Status.MIGRATED]
    del adapter.before["upsert"]
    (hit,) = store.search_facts("says 1", [Scope.of("alice")])
    assert hit.fact.id == "fact_001"


def test_a_dry_run_tells_nothing(tmp_path: Path) -> None:
    put_users(tmp_path, "alice")
    adapter = WatchedAdapter()
    list(migrate_users(MemoryRepository(tmp_path, retrieval_adapter=adapter), ["alice"], dry_run=True))
    assert adapter.calls == []
