"""Facts of other origin are items too, and neither side destroys what the other wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem, FactDraft, MemoryConflictError, Scope, Source
from deermem.format.strict_json import dump_compact
from deermem.integrations.langgraph import DeerMemStore
from deermem.model.fact import ExtraField

ALICE = Scope.of("alice")


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[DeerMem]:
    with DeerMem({"storage_path": str(tmp_path)}) as opened:
        yield opened


@pytest.fixture
def store(manager: DeerMem) -> DeerMemStore:
    return DeerMemStore(manager)


def write(manager: DeerMem, fact_id: str, content: str, **fields: Any) -> None:
    draft = FactDraft(content, id=fact_id, **fields)
    manager.run_on_store(lambda repository: repository.upsert_fact(ALICE, draft))


def read(manager: DeerMem, fact_id: str) -> dict[str, Any]:
    facts = manager.get_memory(user_id="alice")["facts"]
    (found,) = [fact for fact in facts if fact["id"] == fact_id]
    assert isinstance(found, dict)
    return found


def test_a_fact_of_another_origin_is_an_item_under_its_id(manager: DeerMem, store: DeerMemStore) -> None:
    write(manager, "Fact_1", "Drinks tea", category="preference", topics=("tea",), confidence=0.9)
    value = {
        "content": "Drinks tea",
        "category": "preference",
        "confidence": 0.9,
        "topics": ["tea"],
        "source": "unknown",
    }
    assert store.get(("alice",), "Fact_1").value == value  # type: ignore[union-attr]
    assert [(item.key, item.value) for item in store.search(("alice",))] == [("Fact_1", value)]
    assert store.get(("alice", "notes"), "Fact_1") is None
    assert store.list_namespaces(prefix=("alice",)) == [("alice",)]


def test_of_two_facts_at_one_key_the_one_that_was_put_is_the_item(
    manager: DeerMem, store: DeerMemStore
) -> None:
    store.put(("alice",), "Fact_1", {"content": "was put"})
    write(manager, "Fact_1", "came later from elsewhere")
    assert store.get(("alice",), "Fact_1").value == {"content": "was put"}  # type: ignore[union-attr]
    assert [item.value for item in store.search(("alice",))] == [{"content": "was put"}]
    assert store.search(("alice",), query="elsewhere") == []
    store.delete(("alice",), "Fact_1")
    (item,) = store.search(("alice",))
    assert (item.key, item.value["content"]) == ("Fact_1", "came later from elsewhere")


def test_a_put_on_it_replaces_the_value_and_keeps_the_fields_that_no_value_has(
    manager: DeerMem, store: DeerMemStore
) -> None:
    unknown = ExtraField("mood", '"calm"')
    source = Source("conversation", "thread_1")
    write(manager, "Fact_1", "Drinks tea", category="mine", confidence=0.9, source=source, extra=(unknown,))
    store.put(("alice",), "Fact_1", {"content": "Drinks coffee"})
    assert store.get(("alice",), "Fact_1").value == {"content": "Drinks coffee"}  # type: ignore[union-attr]
    fact = read(manager, "Fact_1")
    assert (fact["content"], fact["categoryExtension"], fact["confidence"]) == ("Drinks coffee", "mine", 0.9)
    assert (fact["source"], fact["mood"], fact["revision"]) == ("thread_1", "calm", 2)


def test_a_value_that_was_read_and_put_back_changes_only_what_was_changed(
    manager: DeerMem, store: DeerMemStore
) -> None:
    write(manager, "fact_1", "Drinks tea", category="preference", topics=("tea",))
    item = store.get(("alice",), "fact_1")
    assert item is not None
    store.put(("alice",), "fact_1", {**item.value, "content": "Drinks coffee", "confidence": 0.75})
    fact = read(manager, "fact_1")
    assert (fact["content"], fact["confidence"]) == ("Drinks coffee", 0.75)
    assert (fact["category"], fact["topics"]) == ("preference", ["tea"])


@pytest.mark.parametrize("value", [{"content": "old", "n": 1}, {"kind": "json", "n": 1}])
def test_what_another_program_changes_shows_in_the_value(
    manager: DeerMem, store: DeerMemStore, value: dict[str, Any]
) -> None:
    store.put(("alice",), "k", {**value, "category": "goal", "confidence": 0.5})
    manager.update_fact("k", category="decision", confidence=0.25, user_id="alice")
    found = store.get(("alice",), "k")
    assert found is not None
    assert found.value == {**value, "category": "decision", "confidence": 0.25}
    manager.update_fact("k", content="no JSON", user_id="alice")
    found = store.get(("alice",), "k")
    assert found is not None
    assert found.value["content"] == "no JSON"


def test_what_another_program_changes_does_not_lose_the_rest_of_the_value(
    manager: DeerMem, store: DeerMemStore
) -> None:
    store.put(("alice", "n"), "k", {"text": "one\n", "deep": {"a": [1]}})
    fact_id = manager.search("one", user_id="alice")[0]["id"]
    manager.update_fact(fact_id, content="two", user_id="alice")
    assert store.get(("alice", "n"), "k").value == {"text": "two\n", "deep": {"a": [1]}}  # type: ignore[union-attr]


def test_an_export_taken_in_again_gives_the_same_items(
    manager: DeerMem, store: DeerMemStore, tmp_path: Path
) -> None:
    store.put(("alice", "n"), "k", {"text": "one\n", "deep": {"a": [1.5, None]}})
    store.put(("alice",), "json", {"deep": {"a": [1.5, None]}})
    document = manager.export_memory(user_id="alice")
    with DeerMem({"storage_path": str(tmp_path / "other")}) as other:
        other.import_memory(document, user_id="alice")
        again = DeerMemStore(other)
        assert again.get(("alice", "n"), "k").value == {"text": "one\n", "deep": {"a": [1.5, None]}}  # type: ignore[union-attr]
        assert again.get(("alice",), "json").value == {"deep": {"a": [1.5, None]}}  # type: ignore[union-attr]


def test_a_fact_edited_by_hand_is_not_overwritten_unseen(
    manager: DeerMem, store: DeerMemStore, tmp_path: Path
) -> None:
    store.put(("alice",), "k", {"content": "by the graph"})
    assert store.get(("alice",), "k") is not None
    (document,) = tmp_path.rglob("k.md")
    document.write_text(document.read_text("utf-8").replace("\nby the graph\n", "\nby hand\n"), "utf-8")
    with pytest.raises(MemoryConflictError):
        store.put(("alice",), "k", {"content": "newer"})
    assert "by hand" in document.read_text("utf-8")
    manager.reload_memory(user_id="alice")
    assert store.get(("alice",), "k").value == {"content": "by hand"}  # type: ignore[union-attr]
    store.put(("alice",), "k", {"content": "newer"})
    assert store.get(("alice",), "k").value == {"content": "newer"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "entry",
    [
        {"namespace": [], "key": "fact_1"},
        "text",
        "{'namespace':'x','key':'k'}",
        "{'namespace':[1],'key':'k'}",
        "{'namespace':[],'key':1}",
        "{'namespace':['n'],'key':'other'}",
        "{'namespace':[],'key':'fact_1','value':3}",
        "{'namespace':['\\ud800'],'key':'k'}",
        f"{{'namespace':['n'],'key':'{'k' * 5_000}'}}",
        "[" * 5_000,
    ],
)
def test_an_entry_that_is_not_this_facts_counts_for_nothing(
    manager: DeerMem, store: DeerMemStore, entry: object
) -> None:
    write(manager, "fact_1", "Drinks tea", extra=(ExtraField("langgraph", dump_compact(entry)),))
    found = store.get(("alice",), "fact_1")
    assert found is not None
    assert found.value["content"] == "Drinks tea"
    assert [item.key for item in store.search(("alice",))] == ["fact_1"]
