"""Searches: filters, queries, pages and their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import SearchOp

from deermem import DeerMem, InvalidInputError, MemoryRepository
from deermem.integrations.langgraph import DeerMemStore, listing
from tests.search.adapters import DictAdapter


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DeerMemStore]:
    with DeerMemStore(tmp_path) as opened:
        yield opened


def keys(store: DeerMemStore, **search: Any) -> list[str]:
    return sorted(item.key for item in store.search(("alice",), **search))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"price": 10}, ["ten"]),
        ({"price": {"$eq": 10}}, ["ten"]),
        ({"price": {"$ne": 10}}, ["none", "text", "twenty"]),
        ({"price": {"$gt": 10}}, ["twenty"]),
        ({"price": {"$gte": 10}}, ["ten", "twenty"]),
        ({"price": {"$lt": 20.5, "$gte": 10}}, ["ten", "twenty"]),
        ({"price": {"$lte": 10}}, ["ten"]),
        ({"price": {"$gt": "a"}}, ["text"]),
        ({"price": {"$lt": float("inf")}}, ["ten", "twenty"]),
        ({"price": {"$gt": None}}, []),
        ({"other": {"$gt": 0}}, []),
        ({"other": {"$eq": True}}, ["none"]),
        ({"price": None}, ["none"]),
        ({"in": {"colour": "red"}}, ["ten"]),
        ({"in": {"size": {"$gte": 2}}}, ["twenty"]),
        ({"tags": ["a", "b"]}, ["ten"]),
        ({"tags": ["a"]}, []),
        ({"price": 10, "in": {"colour": "blue"}}, []),
    ],
)
def test_a_filter_finds_what_it_says(store: DeerMemStore, wanted: dict[str, Any], found: list[str]) -> None:
    store.put(("alice",), "ten", {"price": 10, "in": {"colour": "red", "size": 1}, "tags": ["a", "b"]})
    store.put(("alice",), "twenty", {"price": 20, "in": {"colour": "blue", "size": 2}})
    store.put(("alice",), "text", {"price": "free"})
    store.put(("alice",), "none", {"other": True})
    assert keys(store, filter=wanted) == found


@pytest.mark.parametrize(
    "wanted",
    [
        {"a": {"$in": [1]}},
        {"a": {"b": {"$regex": "x"}}},
        {"a": {"$gt": 1, "b": 1}},
        {"a": [1, {"$bad": 1}]},
        {"a": [[({"b": {"$bad": 1}},)]]},
    ],
)
def test_an_operator_that_there_is_not_is_refused(store: DeerMemStore, wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"which is not one of \$eq"):
        store.search(("alice",), filter=wanted)


def nested(kind: type, levels: int) -> Any:
    condition: Any = 1
    for _ in range(levels):
        condition = {"a": condition} if kind is dict else [condition]
    return {"a": condition}


@pytest.mark.parametrize("kind", [dict, list])
def test_a_filter_may_be_nested_as_deep_as_a_value_and_no_deeper(store: DeerMemStore, kind: type) -> None:
    store.put(("alice",), "deep", nested(kind, 99))
    assert keys(store, filter=nested(kind, 99)) == ["deep"]
    for levels in (100, 5_000):
        with pytest.raises(InvalidInputError, match="nested more than 100 levels"):
            keys(store, filter=nested(kind, levels))


@pytest.mark.parametrize(
    ("search", "what"),
    [
        ({"filter": "content"}, "filter"),
        ({"filter": [("content", "x")]}, "filter"),
        ({"query": 5}, "query"),
        ({"query": b"tea"}, "query"),
        ({"limit": None}, "limit and offset"),
        ({"limit": 2.0}, "limit and offset"),
        ({"offset": "1"}, "limit and offset"),
    ],
)
def test_what_is_of_the_wrong_type_is_refused_as_bad_input(
    store: DeerMemStore, search: dict[str, Any], what: str
) -> None:
    store.put(("alice",), "k", {"content": "tea"})
    with pytest.raises(InvalidInputError, match=what):
        keys(store, **search)


def test_a_query_finds_a_part_of_the_text_in_any_case(store: DeerMemStore) -> None:
    store.put(("alice", "a"), "1", {"content": "Drinks GREEN tea"})
    store.put(("alice", "b"), "2", {"content": "Likes green fields"})
    store.put(("alice", "b"), "3", {"content": "Hates noise"})
    assert keys(store, query="green") == ["1", "2"]
    assert keys(store, query=" ") == ["1", "2", "3"]
    assert [item.key for item in store.search(("alice", "b"), query="green")] == ["2"]


def test_a_filter_is_applied_before_the_limit_of_a_query(
    store: DeerMemStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_TOP_K", 3)  # how many facts a search of the store finds at most
    for number in range(5):
        store.put(("alice",), f"sure{number}", {"content": f"tea {number}", "confidence": 0.9})
    store.put(("alice",), "unsure", {"content": "tea 6", "confidence": 0.1, "kind": "wanted"})
    assert keys(store, query="tea", filter={"kind": "wanted"}, limit=1) == ["unsure"]
    with pytest.raises(InvalidInputError, match="end at 3"):
        store.search(("alice",), query="tea", limit=2, offset=2)


def test_the_last_change_comes_first_and_pages_are_disjoint(store: DeerMemStore) -> None:
    for name in ("one", "two", "three"):
        store.put(("alice",), name, {"content": name})
    store.put(("alice",), "one", {"content": "changed"})
    assert [item.key for item in store.search(("alice",))] == ["one", "three", "two"]
    assert [item.key for item in store.search(("alice",), limit=2)] == ["one", "three"]
    assert [item.key for item in store.search(("alice",), limit=2, offset=2)] == ["two"]


def test_bounds_below_zero_are_refused(store: DeerMemStore) -> None:
    with pytest.raises(InvalidInputError, match="limit and offset"):
        store.batch([SearchOp(("alice",), None, -1)])


def test_an_adapter_ranks_and_its_scores_are_handed_on(tmp_path: Path) -> None:
    repository = MemoryRepository(tmp_path, retrieval_adapter=DictAdapter())
    with DeerMem({}, repository=repository) as manager:
        store = DeerMemStore(manager)
        store.put(("alice", "a"), "1", {"content": "green tea"})
        store.put(("alice", "b"), "2", {"content": "green"})
        (found,) = store.search(("alice", "a"), query="green")
        assert found.key == "1"
        assert found.score is not None


def test_no_time_to_live_is_promised(store: DeerMemStore) -> None:
    assert store.supports_ttl is False
    with pytest.raises(NotImplementedError, match="TTL is not supported"):
        store.put(("alice",), "k", {"content": "x"}, ttl=5)
