"""Namespaces never mix users or agents, and no two keys share a fact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langgraph.store.base import InvalidNamespaceError

from deermem import InvalidInputError, Scope
from deermem.integrations.langgraph import DeerMemStore
from deermem.integrations.langgraph.namespaces import Layout, candidates, fact_id_of, label_of, user_of
from deermem.model.identity import is_fact_id, safe_user_id

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
user_ids = st.text(characters, min_size=1, max_size=12) | st.text("%25E.", min_size=1, max_size=8)
labels = st.text(characters, min_size=1, max_size=6).filter(lambda label: "." not in label)
keys = st.text(characters, max_size=8) | st.sampled_from(["A", "a", "CON", "nul", "readme", "fact_1"])
DIGEST = safe_user_id("bob@x.com").removeprefix("bob-x-com-")


@given(user_ids)
@example("%2E")
@example("%252E")
@example("a.b%2Ec")
def test_every_user_has_a_label_without_a_period_that_means_the_user(user_id: str) -> None:
    label = label_of(user_id)
    assert "." not in label
    assert user_of(label).raw == user_id


@given(st.lists(user_ids | labels, min_size=2, max_size=2, unique=True))
def test_two_labels_are_two_users(pair: list[str]) -> None:
    first, second = ({label_of(each), each} - {"x"} for each in pair)
    for one in first:
        for other in second - first:
            if "." not in one + other:
                assert user_of(one).bucket != user_of(other).bucket


def test_a_label_that_is_the_name_of_a_bucket_does_not_open_it(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.put((label_of("bob@x.com"),), "k", {"content": "secret"})
        assert store.get((f"bob-x-com-{DIGEST}",), "k") is None
        assert store.search((f"bob-x-com-{DIGEST}",)) == []
        store.put((f"bob-x-com-{DIGEST}",), "k", {"content": "other"})
        assert store.get((label_of("bob@x.com"),), "k").value == {"content": "secret"}  # type: ignore[union-attr]
        assert len(list((tmp_path / "users").iterdir())) == 2


def test_a_user_that_looks_encoded_is_listed_under_the_label_that_was_given(tmp_path: Path) -> None:
    label = f"bob-x-com-{DIGEST}"
    with DeerMemStore(tmp_path, across_users=True) as store:
        store.put((label, "n"), "k", {"content": "x"})
        assert store.list_namespaces() == [(label, "n")]
        assert [item.namespace for item in store.search(())] == [(label, "n")]
        assert [item.namespace for item in store.search((label,))] == [(label, "n")]


@given(
    st.lists(st.tuples(st.lists(labels, max_size=2).map(tuple), keys), min_size=2, max_size=2, unique=True)
)
@example([((), "A"), ((), "a")])
@example([(("a",), "b"), ((), "a/b")])
@example([(("a", "b"), "c"), (("a",), "b")])
def test_two_addresses_are_two_facts(pair: list[tuple[tuple[str, ...], str]]) -> None:
    first, second = (fact_id_of(rest, key) for rest, key in pair)
    assert first.lower() != second.lower()
    assert is_fact_id(first)
    assert is_fact_id(second)


def test_a_key_that_looks_like_the_id_of_another_address_is_not_that_address() -> None:
    other = fact_id_of(("notes",), "k")
    assert fact_id_of((), other) != other
    assert candidates((), other) == (fact_id_of((), other), other)


@pytest.mark.parametrize(
    ("layout", "namespace", "user", "agent", "rest"),
    [
        (("{user}",), ("alice", "notes", "2026"), "alice", None, ("notes", "2026")),
        (("{user}",), ("alice",), "alice", None, ()),
        (("memories", "{user}"), ("memories", "alice", "x"), "alice", None, ("x",)),
        (("{user}", "{agent}"), ("alice", "writer"), "alice", "writer", ()),
        (("{user}", "{agent}"), ("alice", "__default__", "x"), "alice", None, ("x",)),
        (("{agent}", "of", "{user}"), ("writer", "of", "alice@x%2Eorg"), "alice@x.org", "writer", ()),
    ],
)
def test_a_layout_finds_user_agent_and_rest(
    layout: Sequence[str], namespace: tuple[str, ...], user: str, agent: str | None, rest: tuple[str, ...]
) -> None:
    place = Layout(layout).place(namespace)
    assert place is not None
    assert (place.scope, place.rest) == (Scope.of(user, agent), rest)


@pytest.mark.parametrize("namespace", [("alice",), ("other", "alice"), ("Memories", "alice")])
def test_outside_the_layout_nothing_is_found_and_nothing_can_be_put(
    tmp_path: Path, namespace: tuple[str, ...]
) -> None:
    with DeerMemStore(tmp_path, layout=("memories", "{user}")) as store:
        assert store.get(namespace, "k") is None
        store.delete(namespace, "k")
        with pytest.raises(InvalidNamespaceError, match="does not begin as the layout"):
            store.put(namespace, "k", {"content": "x"})
    assert not list(tmp_path.rglob("*.md"))


@pytest.mark.parametrize("agent", ["Writer", "a_b", "x" * 65, "ä", "__default"])
def test_an_agent_label_that_is_not_canonical_is_refused(tmp_path: Path, agent: str) -> None:
    with DeerMemStore(tmp_path, layout=("{user}", "{agent}")) as store:
        with pytest.raises(InvalidNamespaceError, match="cannot be an agent"):
            store.put(("alice", agent), "k", {"content": "x"})
        with pytest.raises(InvalidNamespaceError, match="cannot be an agent"):
            store.get(("alice", agent), "k")


def test_a_store_of_one_user_takes_any_namespace(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path, layout=(), user_id="alice", agent_name="writer") as store:
        store.put(("docs", "a"), "k", {"content": "x"})
        assert store.list_namespaces() == [("docs", "a")]
        assert [item.key for item in store.search(())] == ["k"]
        memory = store.manager.get_memory(user_id="alice", agent_name="writer")
        assert [fact["content"] for fact in memory["facts"]] == ["x"]


def test_a_fact_cannot_pass_its_user_off_as_another(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.put(("ann@x",), "k", {"content": "x"})
    (document,) = tmp_path.rglob("k.md")
    text = document.read_text("utf-8")
    assert "'user':'ann@x'" in text
    document.write_text(text.replace("'user':'ann@x'", "'user':'bob'"), "utf-8")
    with DeerMemStore(tmp_path, across_users=True) as store:
        assert store.list_namespaces() == []
        assert store.search(("bob",)) == []
        assert [item.namespace for item in store.search(("ann@x",))] == [("ann@x",)]


def test_a_store_without_users_has_the_memory_in_the_storage_root(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path, layout=(), user_id=None) as store:
        store.put(("docs",), "k", {"content": "x"})
        assert [item.key for item in store.search(())] == ["k"]
    assert (tmp_path / "memory.json").is_file()


def test_no_search_looks_at_several_users_unless_that_was_allowed(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        store.put(("alice",), "k", {"content": "x"})
        with pytest.raises(InvalidNamespaceError, match="names no user"):
            store.search(())
        with pytest.raises(InvalidNamespaceError, match="names no user"):
            store.list_namespaces()
        with pytest.raises(InvalidNamespaceError, match="names no user"):
            store.list_namespaces(prefix=("*", "notes"))
        assert store.list_namespaces(prefix=("alice",)) == [("alice",)]


def test_users_with_the_same_keys_do_not_see_each_other(tmp_path: Path) -> None:
    users = ["alice", "Alice2", "a b", "a-b", "ünï", label_of("a.b")]
    with DeerMemStore(tmp_path) as store:
        for user in users:
            store.put((user, "n"), "k", {"content": user})
        for user in users:
            assert [item.value for item in store.search((user,))] == [{"content": user}]
            store.delete((user, "n"), "k")
            assert store.search((user,)) == []


@pytest.mark.parametrize(
    ("layout", "user_id", "agent_name"),
    [
        (("{user}", "{user}"), ..., None),
        (("{user}",), "alice", None),
        (("{user}",), None, None),
        (("{user}", "{agent}"), ..., "writer"),
        (("",), "alice", None),
        ("{user}", ..., None),
        (("memories",), ..., None),
        (("my.app", "{user}"), ..., None),
        (("langgraph", "{user}"), ..., None),
        (("{user}", "a\0b"), ..., None),
        (("\ud800", "{user}"), ..., None),
        ((), ..., None),
    ],
)
def test_a_layout_that_contradicts_itself_or_fits_no_namespace_is_refused(
    tmp_path: Path, layout: Sequence[str], user_id: str | EllipsisType | None, agent_name: str | None
) -> None:
    with pytest.raises(InvalidInputError):
        DeerMemStore(tmp_path, layout=layout, user_id=user_id, agent_name=agent_name)


def test_a_text_is_no_namespace_since_its_first_letter_would_be_the_user(tmp_path: Path) -> None:
    text: Any = "alice"
    with DeerMemStore(tmp_path) as store:
        store.put(("a", "l", "i", "c", "e"), "k", {"content": "of the user a"})
        attempts: list[Callable[[], object]] = [
            lambda: store.put(text, "k", {"content": "x"}),
            lambda: store.get(text, "k"),
            lambda: store.delete(text, "k"),
            lambda: store.search(text),
            lambda: store.list_namespaces(prefix=text),
        ]
        for attempt in attempts:
            with pytest.raises(InvalidNamespaceError, match="tuple of labels"):
                attempt()
        kept = store.get(("a", "l", "i", "c", "e"), "k")
        assert kept is not None
        assert kept.value == {"content": "of the user a"}
