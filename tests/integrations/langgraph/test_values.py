"""A value comes back exactly, whatever JSON can hold; what JSON cannot hold is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deermem import InvalidInputError
from deermem.format.fact_markdown import decode_fact
from deermem.format.fact_writer import encode_fact
from deermem.integrations.langgraph import DeerMemStore
from deermem.integrations.langgraph.items import TEXT_FIELDS, Stored, draft_of
from deermem.integrations.langgraph.namespaces import fact_id_of
from deermem.model.fact import next_fact
from deermem.model.identity import Scope

NOW = "2026-07-19T00:00:00Z"
ALICE = Scope.of("alice")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from([*TEXT_FIELDS, "category", "confidence", "topics", "kind"]) | texts
values = st.dictionaries(names, anything, max_size=6)
labels = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), max_size=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DeerMemStore]:
    with DeerMemStore(tmp_path) as opened:
        yield opened


@given(values, labels, texts)
def test_a_value_survives_its_way_through_a_fact_document(value: Any, rest: list[str], key: str) -> None:
    fact_id = fact_id_of(tuple(rest), key)
    draft = draft_of(tuple(rest), key, value, "alice")
    fact = next_fact(draft.new(fact_id), ALICE, NOW, None)
    read = decode_fact(encode_fact(fact), path="", scope=ALICE, fact_id=fact_id)
    stored = Stored.of(read)
    assert (stored.rest, stored.key, stored.user_label) == (tuple(rest), key, "alice")
    assert json.dumps(stored.value(), sort_keys=True) == json.dumps(value, sort_keys=True)


@given(values, values)
def test_a_value_put_over_another_shows_nothing_of_it(first: Any, second: Any) -> None:
    before = next_fact(draft_of((), "k", first, "alice").new(fact_id_of((), "k")), ALICE, NOW, None)
    after = next_fact(draft_of((), "k", second, "alice").over(before), ALICE, NOW, before)
    assert json.dumps(Stored.of(after).value(), sort_keys=True) == json.dumps(second, sort_keys=True)


def test_a_text_is_what_a_person_reads_in_the_file(store: DeerMemStore, tmp_path: Path) -> None:
    store.put(("alice", "notes"), "tea", {"text": "Drinks tea.\n", "since": 2019})
    (document,) = tmp_path.rglob("*.md")
    assert document.read_text("utf-8").endswith("\n# Drinks tea.\n\nDrinks tea.\n")
    assert store.get(("alice", "notes"), "tea").value == {"text": "Drinks tea.\n", "since": 2019}  # type: ignore[union-attr]


def test_a_value_without_a_text_is_readable_json_under_its_key(store: DeerMemStore, tmp_path: Path) -> None:
    store.put(("alice",), "theme", {"colour": "dark", "größe": [1, 2]})
    (document,) = tmp_path.rglob("*.md")
    assert '# theme\n\n{\n  "colour": "dark",\n  "größe": [' in document.read_text("utf-8")


@pytest.mark.parametrize("size", [15_900, 200_000])
def test_a_large_value_beside_a_text_survives(store: DeerMemStore, size: int) -> None:
    value = {"content": "short", "blob": "x" * size, "many": [*range(size // 10)]}
    store.put(("alice",), "k", value)
    assert store.get(("alice",), "k").value == value  # type: ignore[union-attr]


@pytest.mark.parametrize("field", ["content", "text", "memory"])
def test_the_text_of_a_value_comes_first(store: DeerMemStore, field: str) -> None:
    store.put(("alice",), "k", {field: "tea", "since": 2019, "by": "me"})
    item = store.get(("alice",), "k")
    assert item is not None
    assert list(item.value.items()) == [(field, "tea"), ("since", 2019), ("by", "me")]


def test_a_tuple_becomes_a_list_as_in_stores_that_write_json(store: DeerMemStore) -> None:
    store.put(("alice",), "k", {"pair": (1, (2,))})
    assert store.get(("alice",), "k").value == {"pair": [1, [2]]}  # type: ignore[union-attr]


def test_many_long_topics_are_part_of_the_value_alone(store: DeerMemStore) -> None:
    value = {"content": "x", "topics": [f"{number} {'x' * 900}" for number in range(900)]}
    store.put(("alice",), "k", value)
    assert store.get(("alice",), "k").value == value  # type: ignore[union-attr]


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": {"b": {1, 2}}}, "value.a.b: is of type set, which JSON cannot hold"),
        ({"a": [1, b"x"]}, "value.a[1]: is of type bytes, which JSON cannot hold"),
        ({"a": float("nan")}, "value.a: is nan, which JSON cannot hold"),
        ({"a": float("-inf")}, "value.a: is -inf, which JSON cannot hold"),
        ({"a": {1: 2}}, "value.a: has a key of type int; JSON has only strings"),
        ({"a": "\ud800"}, "value.a: contains a lone surrogate"),
        ({"\ud800": 1}, "value: contains a lone surrogate"),
        ({"a": _nested(120)}, "value: is nested more than 100 levels deep"),
        ({"a": "x" * 1_000_001}, "value: is larger than 1,000,000 bytes as JSON"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(
    store: DeerMemStore, tmp_path: Path, value: Any, told: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        store.put(("alice",), "k", value)
    assert str(refused.value) == told
    assert not list(tmp_path.rglob("*.md"))


def test_an_item_changed_by_its_reader_changes_nothing(store: DeerMemStore) -> None:
    store.put(("alice",), "k", {"content": "x", "list": [1]})
    store.get(("alice",), "k").value["list"].append(2)  # type: ignore[union-attr]
    assert store.get(("alice",), "k").value == {"content": "x", "list": [1]}  # type: ignore[union-attr]


def test_times_are_of_the_first_put_and_of_the_last_change(store: DeerMemStore) -> None:
    store.put(("alice",), "k", {"content": "one"})
    first = store.get(("alice",), "k")
    store.put(("alice",), "k", {"content": "two"})
    second = store.get(("alice",), "k")
    assert first is not None
    assert second is not None
    assert second.created_at == first.created_at == first.updated_at
    assert second.updated_at > first.updated_at
    assert second.created_at.tzinfo is not None


def test_a_put_of_what_is_there_already_writes_nothing(store: DeerMemStore) -> None:
    store.put(("alice", "n"), "k", {"content": "one", "a": [1.5, None]})
    revision = store.manager.get_memory(user_id="alice")["revision"]
    store.put(("alice", "n"), "k", {"content": "one", "a": [1.5, None]})
    assert store.manager.get_memory(user_id="alice")["revision"] == revision


@pytest.mark.parametrize("value", [["x"], "x", 1, True])
def test_a_value_that_is_no_dictionary_is_refused_as_bad_input(store: DeerMemStore, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be a dictionary"):
        store.put(("alice",), "k", value)
    assert store.get(("alice",), "k") is None
