"""Whatever is asked of it, the store answers as LangGraph's own store in memory does."""

from __future__ import annotations

import asyncio
import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from deermem.integrations.langgraph import DeerMemStore

USERS = ("ann", "b b")
PLACES = ("notes", "a-b", "ünï")
namespaces = st.builds(
    lambda user, rest: (user, *rest), st.sampled_from(USERS), st.lists(st.sampled_from(PLACES), max_size=2)
)
keys = st.sampled_from(["k", "K", "fact_1", "two words", ""])
numbers = st.integers(-2, 2) | st.sampled_from([0.5, 1.5])
values = st.fixed_dictionaries(
    {"content": st.sampled_from(["tea", " Coffee ", "water\n"])},
    optional={
        "n": numbers,
        "tag": st.sampled_from(["a", "b", None]),
        "in": st.fixed_dictionaries({"n": numbers}, optional={"deep": st.lists(numbers, max_size=2)}),
        "confidence": st.sampled_from([0, 0.5, 1, 1.0, 2]),
        "category": st.sampled_from(["goal", "mine", " x "]),
    },
)
filters = st.dictionaries(
    st.just("tag"), st.sampled_from(["a", None, {"$ne": "a"}, {"$eq": "b"}]), max_size=1
) | st.one_of(
    st.builds(lambda number: {"in": {"n": number}}, numbers),
    st.builds(lambda number: {"in": {"deep": [number]}}, numbers),
    st.builds(
        lambda operator, number: {"in": {"n": {operator: number}}},
        st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
        numbers,
    ),
    st.builds(lambda low, high: {"in": {"n": {"$gte": low, "$lt": high}}}, numbers, numbers),
    st.builds(lambda number: {"in": {"deep": [number, {"$gt": 0}]}, "tag": None}, numbers),
)
paths = st.lists(st.sampled_from([*USERS, *PLACES, "*"]), min_size=1, max_size=2).map(tuple)
conditions = st.lists(
    st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), paths), max_size=2
).map(tuple)

# Not `st.builds`, which also makes up what an operation has a default for.
puts = st.tuples(namespaces, keys, st.none() | values).map(lambda each: PutOp(*each))
gets = st.tuples(namespaces, keys).map(lambda each: GetOp(*each))
searches = st.tuples(namespaces | st.just(()), st.none() | filters, st.just(100)).map(
    lambda each: SearchOp(*each)
)
pages = st.tuples(namespaces, st.none() | filters, st.integers(0, 3), st.integers(0, 3)).map(
    lambda each: SearchOp(*each)
)
lists = st.tuples(conditions, st.none() | st.integers(-1, 3), st.integers(1, 4), st.integers(0, 2)).map(
    lambda each: ListNamespacesOp(*each)
)
batches = st.lists(st.lists(puts | puts | gets | searches | pages | lists, max_size=6), max_size=5)


def shown(op: Op, result: Any) -> Any:
    """Returns what counts of a result: the order of a search and the times differ on purpose."""
    if isinstance(op, SearchOp) and op.limit < 100:
        return len(result)
    if isinstance(result, Item):
        return result.namespace, result.key, result.value
    if isinstance(result, list) and result and isinstance(result[0], Item):
        return sorted((item.namespace, item.key, repr(sorted(item.value.items()))) for item in result)
    return result


def forget_emptied_namespaces(model: InMemoryStore) -> None:
    """The store in memory lists every namespace that it was ever asked for."""
    for namespace in [namespace for namespace, items in model._data.items() if not items]:
        del model._data[namespace]


@settings(max_examples=60)
@given(batches)
def test_the_answers_are_those_of_the_store_in_memory(batches: list[list[Op]]) -> None:
    model = InMemoryStore()
    with tempfile.TemporaryDirectory() as root, DeerMemStore(root, across_users=True) as store:
        for ops in batches:
            others = [op for op in ops if not isinstance(op, ListNamespacesOp)]
            lists = [op for op in ops if isinstance(op, ListNamespacesOp)]
            wanted = [*map(shown, others, model.batch(others))]
            answers = asyncio.run(store.abatch(others)) if len(ops) % 2 else store.batch(others)
            assert [*map(shown, others, answers)] == wanted
            forget_emptied_namespaces(model)
            assert store.batch(lists) == model.batch(lists)
        assert store.list_namespaces(limit=1_000) == model.list_namespaces(limit=1_000)
