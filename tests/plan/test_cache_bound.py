"""Plan section 9 and bar P13: the cache is bounded by bytes, whatever makes a state large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deermem import FactDraft, MemoryRepository, Scope
from deermem.model.identity import FactId
from tests.support.stores import ALICE, draft, store_with

X = FactId("x")


def test_the_cache_is_bounded_by_bytes_and_forgets_what_was_used_least_recently(tmp_path: Path) -> None:
    writer = MemoryRepository(tmp_path)
    scopes = [Scope.of("alice", f"agent-{number}") for number in range(6)]
    for scope in scopes:
        writer.upsert_fact(scope, draft("x", "a" * 10_000))
    store = MemoryRepository(tmp_path, cache_bytes=50_000)
    cache = store.engine.cache
    for scope in scopes:
        store.snapshot(scope)
        assert cache.cost <= 50_000
    assert 1 < len(cache) < 6
    assert cache.find(scopes[-1]) is not None
    assert cache.find(scopes[0]) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "a" * 40_000},
        {"topics": tuple("t" * 40 + str(number) for number in range(1_000))},
        {"consolidated_from": tuple("t" * 40 + str(number) for number in range(1_000))},
        {"source_error": "e" * 4_000, "topics": ("t" * 4_000,) * 9},
    ],
    ids=["content", "topics", "consolidated_from", "source_error"],
)
def test_whatever_makes_a_fact_large_counts_against_the_bound(tmp_path: Path, fields: dict[str, Any]) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, FactDraft(**{"content": "x", **fields}))
    store.snapshot(ALICE)
    assert store.engine.cache.cost > 40_000


def test_summaries_count_against_the_bound(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.update_summaries("alice", {"user": {"topOfMind": "t" * 90_000}})
    store.snapshot(ALICE)
    assert store.engine.cache.cost > 90_000


def test_the_cost_of_the_cache_follows_own_commits_and_returns_to_nothing(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    cache = store.engine.cache
    store.snapshot(ALICE)
    before = cache.cost
    store.edit_fact(ALICE, "x", {"content": "a" * 9_000})
    assert cache.cost > before + 8_000
    store.edit_fact(ALICE, "x", {"content": "text of x"})
    assert cache.cost == before
    store.upsert_fact(ALICE, draft("new"))
    store.delete_fact(ALICE, "new")
    assert cache.cost == before
    store.close()
    assert (cache.cost, len(cache)) == (0, 0)


def test_a_cache_of_no_bytes_keeps_nothing_and_reads_the_same(tmp_path: Path) -> None:
    store_with(tmp_path, "x", "y")
    store = MemoryRepository(tmp_path, cache_bytes=0)
    assert store.snapshot(ALICE) == store.snapshot(ALICE)
    assert len(store.engine.cache) == 0
    store.edit_fact(ALICE, "x", {"content": "two"})
    assert store.snapshot(ALICE).by_id[X].content == "two"


def test_users_that_were_read_once_do_not_stay_for_ever(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path, cache_bytes=20_000)
    for number in range(12):
        store.upsert_fact(Scope.of(f"user{number}"), draft("x"))
        store.snapshot(Scope.of(f"user{number}"))
    assert len(store.engine.cache) < 8


def test_the_cost_after_a_refresh_is_that_of_a_first_read(tmp_path: Path) -> None:
    store = store_with(tmp_path, "kept", "changed", "deleted")
    store.snapshot(ALICE)
    with MemoryRepository(tmp_path) as foreign:
        foreign.edit_fact(ALICE, "changed", {"content": "a much longer text " * 40, "topics": ("one", "two")})
        foreign.delete_fact(ALICE, "deleted")
        foreign.upsert_fact(ALICE, draft("new", "another text " * 20))
    with MemoryRepository(tmp_path) as fresh:
        assert store.snapshot(ALICE).facts == fresh.snapshot(ALICE).facts
        assert store.engine.cache.cost == fresh.engine.cache.cost
