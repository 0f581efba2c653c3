"""Creating, updating and deleting facts."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Any

import pytest

from deermem import DuplicateFact, MemoryConflictError, MemoryCorruptionError, Scope
from tests.manager.managers import contents, fact_of, manager_at, watched_manager
from tests.support.stores import draft, edit, fact_path, store_with, tree
from tests.support.watched import Call


def test_a_created_fact_is_in_the_document_that_comes_back(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.create_fact("first", user_id="alice")
    document, fact_id = manager.create_fact(" second\n", "goal", 0.75, user_id="alice")
    fact = fact_of(document, fact_id)
    assert document == manager.get_memory(user_id="alice")
    assert contents(document) == ["first", "second"]
    assert (fact["category"], fact["confidence"], fact["source"]) == ("goal", 0.75, "manual")


def test_a_fact_without_category_and_confidence_gets_the_defaults(tmp_path: Path) -> None:
    document, fact_id = manager_at(tmp_path).create_fact("x", user_id="alice")
    fact = fact_of(document, fact_id)
    assert (fact["category"], fact["confidence"]) == ("context", 0.5)


@pytest.mark.parametrize("same", ["Straße 5", "  STRASSE 5 ", "straße 5\n"])
def test_the_same_text_again_is_a_value_error_that_says_duplicate_fact(tmp_path: Path, same: str) -> None:
    manager = manager_at(tmp_path)
    _, fact_id = manager.create_fact("Straße 5", user_id="alice")
    before = tree(tmp_path)
    with pytest.raises(ValueError, match=r"^Duplicate fact$") as refused:
        manager.create_fact(same, user_id="alice")
    assert refused.value.args[0] == "Duplicate fact"
    assert isinstance(refused.value, DuplicateFact)
    assert refused.value.fact_id == fact_id
    assert tree(tmp_path) == before


def test_the_same_text_for_another_agent_is_no_duplicate(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.create_fact("x", user_id="alice")
    manager.create_fact("x", user_id="alice", agent_name="coder")
    assert contents(manager.get_memory(user_id="alice", agent_name="coder")) == ["x"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("  ",), "content"),
        ((5,), "content"),
        (("\ud800",), "content"),
        (("x", ""), "category"),
        (("x", 5), "category"),
        (("x", "goal", 1.5), "confidence"),
        (("x", "goal", True), "confidence"),
        (("x", "goal", float("nan")), "confidence"),
        (("x", "goal", "0.5"), "confidence"),
    ],
)
def test_bad_input_of_a_new_fact_names_the_field_and_writes_nothing(
    tmp_path: Path, arguments: tuple[Any, ...], field: str
) -> None:
    with pytest.raises(ValueError, match=field):
        manager_at(tmp_path).create_fact(*arguments, user_id="alice")
    assert tree(tmp_path) == {}


def filled(tmp_path: Path, *confidences: float) -> Any:
    manager = manager_at(tmp_path, max_facts=10)
    for number, confidence in enumerate(confidences):
        manager.create_fact(f"fact {number}", "goal", confidence, user_id="alice")
    return manager


def test_at_the_cap_the_fact_with_the_lowest_confidence_goes(tmp_path: Path) -> None:
    manager = filled(tmp_path, 0.5, 0.5, 0.1, *[0.5] * 7)
    document, fact_id = manager.create_fact("new", "goal", 0.9, user_id="alice")
    assert len(document["facts"]) == 10
    assert fact_of(document, fact_id)["content"] == "new"
    assert "fact 2" not in contents(document)


def test_the_id_is_none_when_the_cap_evicts_the_new_fact_itself(tmp_path: Path) -> None:
    manager = filled(tmp_path, *[0.5] * 10)
    before = tree(tmp_path)
    document, fact_id = manager.create_fact("new", "goal", 0.4, user_id="alice")
    assert fact_id is None
    assert document == manager.get_memory(user_id="alice")
    assert "new" not in contents(document)
    assert tree(tmp_path) == before


def test_an_eviction_at_the_cap_is_logged_with_the_ids_and_without_the_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = filled(tmp_path, 0.1, *[0.5] * 9)
    (loser,) = [
        fact["id"] for fact in manager.get_memory(user_id="alice")["facts"] if fact["confidence"] == 0.1
    ]
    with caplog.at_level(logging.INFO, "deermem"):
        manager.create_fact("new", "goal", 0.9, user_id="alice")
    assert loser in caplog.text
    assert "fact 0" not in caplog.text


def test_more_facts_than_the_cap_stay_until_the_next_create(tmp_path: Path) -> None:
    store_with(tmp_path, *(f"f{number:02}" for number in range(15)))
    manager = manager_at(tmp_path, max_facts=10)
    manager.update_fact("f00", confidence=0.9, user_id="alice")
    assert len(manager.get_memory(user_id="alice")["facts"]) == 15
    document, _ = manager.create_fact("new", "goal", 0.9, user_id="alice")
    assert len(document["facts"]) == 10


def test_an_update_changes_only_what_is_given(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    store = manager.repository
    store.upsert_fact(
        Scope.of("alice"),
        draft("x", "old", category="goal", topics=("a",), confidence=0.3, source="thread_1", title="T"),
    )
    before = fact_of(manager.get_memory(user_id="alice"), "x")
    after = fact_of(manager.update_fact("x", confidence=0.8, user_id="alice"), "x")
    assert after == {**before, "confidence": 0.8, "revision": 2, "updatedAt": after["updatedAt"]}
    after = fact_of(manager.update_fact("x", "new", "decision", user_id="alice"), "x")
    assert (after["content"], after["category"], after["confidence"]) == ("new", "decision", 0.8)
    assert (after["topics"], after["source"], after["title"]) == (["a"], "thread_1", "T")
    assert after["revision"] == 3


def test_an_update_that_changes_nothing_leaves_all_as_it_is(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    before = tree(tmp_path)
    document = manager_at(tmp_path).update_fact("x", user_id="alice")
    assert fact_of(document, "x")["revision"] == 1
    assert tree(tmp_path) == before


def test_zero_is_a_confidence(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    document = manager_at(tmp_path).update_fact("x", confidence=0.0, user_id="alice")
    assert fact_of(document, "x")["confidence"] == 0.0


@pytest.mark.parametrize("given", [{"content": " "}, {"category": " "}, {"confidence": 2}])
def test_bad_input_of_an_update_names_the_field_and_writes_nothing(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    store_with(tmp_path, "x")
    before = tree(tmp_path)
    with pytest.raises(ValueError, match=next(iter(given))):
        manager_at(tmp_path).update_fact("x", **given, user_id="alice")
    assert tree(tmp_path) == before


def test_an_update_of_a_missing_fact_is_a_key_error_with_its_id(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    for user_id in ("alice", "bob"):
        with pytest.raises(KeyError) as missing:
            manager_at(tmp_path).update_fact("y", "z", user_id=user_id)
        assert missing.value.args == ("y",)


def test_a_deleted_fact_is_not_in_the_document_that_comes_back(tmp_path: Path) -> None:
    store_with(tmp_path, "x", "y")
    document = manager_at(tmp_path).delete_fact("x", user_id="alice")
    assert contents(document) == ["text of y"]
    assert document["revision"] == 3


def test_deleting_a_missing_fact_is_a_key_error_with_its_id(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    before = tree(tmp_path)
    manager = manager_at(tmp_path)
    for user_id, agent_name in (("alice", None), ("alice", "coder"), ("bob", None)):
        fact_id = "y" if (user_id, agent_name) == ("alice", None) else "x"
        with pytest.raises(KeyError) as missing:
            manager.delete_fact(fact_id, user_id=user_id, agent_name=agent_name)
        assert missing.value.args == (fact_id,)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("fact_id", ["", "../x", "a b", 5, "x" * 129])
def test_what_cannot_be_a_fact_id_is_a_value_error(tmp_path: Path, fact_id: Any) -> None:
    manager = manager_at(tmp_path)
    with pytest.raises(ValueError, match="id"):
        manager.update_fact(fact_id, "x", user_id="alice")
    with pytest.raises(ValueError, match="id"):
        manager.delete_fact(fact_id, user_id="alice")


def test_an_edit_by_hand_is_not_overwritten_and_both_texts_are_told(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    manager = manager_at(tmp_path)
    manager.get_memory(user_id="alice")
    edit(fact_path(tmp_path, Scope.of("alice"), "x"), "\n\ntext of x\n", "\n\nby hand\n")
    with pytest.raises(MemoryConflictError) as conflict:
        manager.update_fact("x", "by program", user_id="alice")
    assert (conflict.value.fact_id, conflict.value.current_revision) == ("x", 1)
    assert (conflict.value.expected_text, conflict.value.current_text) == ("text of x", "by hand")


def test_what_can_fail_after_a_change_fails_before_it(tmp_path: Path) -> None:
    store_with(tmp_path, "x", "broken")
    fact_path(tmp_path, Scope.of("alice"), "broken").write_text("no fact", "utf-8")
    before = tree(tmp_path)
    manager = manager_at(tmp_path)
    with pytest.raises(MemoryCorruptionError):
        manager.delete_fact("x", user_id="alice")
    with pytest.raises(MemoryCorruptionError):
        manager.update_fact("x", "y", user_id="alice")
    assert tree(tmp_path) == before


def test_once_a_change_is_committed_nothing_is_read_for_the_document(tmp_path: Path) -> None:
    manager, disk = watched_manager(tmp_path)
    manager.create_fact("x", user_id="alice")

    def fail_once_committed(call: Call) -> None:
        if call.kind == "unlink" and call.path.endswith(".memory.journal.json"):
            disk.fail(lambda _: True, errno.EIO)

    disk.on_call = fail_once_committed
    document, fact_id = manager.create_fact("y", user_id="alice")
    disk.heal()
    document = manager.update_fact(str(fact_id), "z", user_id="alice")
    disk.heal()
    assert contents(document) == ["x", "z"]
    document = manager.delete_fact(str(fact_id), user_id="alice")
    disk.heal()
    assert contents(document) == ["x"]
