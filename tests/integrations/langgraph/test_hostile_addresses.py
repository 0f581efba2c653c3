"""Labels and keys of any kind: taken or refused as by LangGraph's store in memory, and never mixed up."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langgraph.store.base import InvalidNamespaceError
from langgraph.store.memory import InMemoryStore

from deermem import InvalidInputError
from deermem.integrations.langgraph import DeerMemStore

# A Cyrillic a beside the Latin one, é in two forms, what paths, URLs, JSON and YAML give a meaning to.
signs = st.sampled_from(
    [*"aA\u0430.é/\\*%25E~:'\"{}-_# ", "e\u0301", "\0", "\n", "\u2028", "\u202e", "\ud800", "👍🏽"]
)
labels = st.lists(signs, max_size=4).map("".join) | st.sampled_from(
    ["langgraph", "..", "%2E", "%252E", "con", "NUL", "__default__", "alice-0123456789abcdef", "u" * 100]
)
namespaces = st.lists(labels, max_size=3).map(tuple)
keys = labels | st.sampled_from(["", "fact_1", f"lg-{'0' * 64}", "k" * 129, "manifest", 1, None])
values = st.fixed_dictionaries({}, optional={"content": st.text("a \n", max_size=3), "n": st.integers(0, 3)})


def put_and_get(store: Any, namespace: tuple[str, ...], key: Any, value: dict[str, Any]) -> Any:
    """Returns what lies there after a put, or that the put was refused."""
    try:
        store.put(namespace, key, dict(value))
    except InvalidNamespaceError:
        return "refused"
    item = store.get(namespace, str(key))
    return item.namespace, item.key, item.value


def utf8(*texts: str) -> bool:
    return not any("\ud800" in text for text in texts)


@settings(max_examples=60)
@given(st.lists(st.tuples(namespaces, keys, values), min_size=1, max_size=6))
@example([(("é",), "é", {}), (("e\u0301",), "é", {}), (("é",), "e\u0301", {}), (("é",), "É", {})])
def test_hostile_addresses_are_those_of_the_store_in_memory(puts: list[tuple[Any, Any, Any]]) -> None:
    model = InMemoryStore()
    with tempfile.TemporaryDirectory() as root, DeerMemStore(root, across_users=True) as store:
        for namespace, key, value in puts:
            if utf8(*namespace, str(key)):
                assert put_and_get(store, namespace, key, value) == put_and_get(model, namespace, key, value)
                continue
            with pytest.raises((InvalidNamespaceError, InvalidInputError)):  # what no file can hold
                store.put(namespace, key, value)
        assert store.list_namespaces() == sorted(n for n in model.list_namespaces() if model._data[n])
        for namespace in model.list_namespaces():
            for depth in range(1, len(namespace) + 1):
                found = store.search(namespace[:depth], limit=100)
                wanted = model.search(namespace[:depth], limit=100)
                assert sorted((item.namespace, item.key) for item in found) == sorted(
                    (item.namespace, item.key) for item in wanted
                )
