"""Guarantee G5: a fact that was edited by hand is never silently overwritten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deermem import (
    AtRevision,
    ChangeSet,
    Corruption,
    Delete,
    FactConflict,
    FactDraft,
    MemoryRepository,
    Scope,
    Upsert,
)
from deermem.model.identity import FactId
from tests.support.stores import ALICE, BOB, CODER, draft, edit, fact_path, store_with

X = FactId("x")

Write = Callable[[MemoryRepository], object]
WRITES: dict[str, Write] = {
    "upsert_fact": lambda store: store.upsert_fact(ALICE, draft("x", "mine"), expected=1),
    "upsert_fact with the fact": lambda store: store.upsert_fact(
        ALICE, draft("x", "mine"), expected=store.get_fact(ALICE, "x")
    ),
    "edit_fact": lambda store: store.edit_fact(ALICE, "x", {"confidence": 0.9}),
    "delete_fact": lambda store: store.delete_fact(ALICE, "x"),
    "delete_fact at its revision": lambda store: store.delete_fact(ALICE, "x", expected=1),
    "apply_changes": lambda store: store.apply_changes(
        "alice", ChangeSet(upserts=(Upsert(ALICE.agent, draft("x", "mine"), AtRevision(1)),))
    ),
    "apply_changes with a delete": lambda store: store.apply_changes(
        "alice", ChangeSet(deletes=(Delete(ALICE.agent, X),))
    ),
    "trim": lambda store: store.trim(ALICE, 1),
    "create_fact at the cap": lambda store: store.create_fact(
        ALICE, FactDraft("new", confidence=1), max_facts=2
    ),
    "consolidate": lambda store: store.consolidate(ALICE, ["x", "a"], draft("both")),
}


def edited(root: Path, *, cached: bool = True) -> MemoryRepository:
    """Returns a store that had read a fact before an editor changed it."""
    store = store_with(root, "a", "x")
    if cached:
        store.snapshot(ALICE)
    edit(fact_path(root, ALICE, "x"), "\n\ntext of x\n", "\n\nby hand\n")
    return store


@pytest.mark.parametrize("write", WRITES)
def test_a_write_based_on_what_was_read_before_the_edit_is_a_conflict_with_both_texts(
    tmp_path: Path, write: str
) -> None:
    store = edited(tmp_path)
    data = fact_path(tmp_path, ALICE, "x").read_bytes()
    with pytest.raises(FactConflict) as conflict:
        WRITES[write](store)
    assert conflict.value.fact_id == "x"
    assert (conflict.value.expected_text, conflict.value.actual_text) == ("text of x", "by hand")
    assert fact_path(tmp_path, ALICE, "x").read_bytes() == data
    assert store.snapshot(ALICE).revision == 2


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.get_fact(ALICE, "x"),
        lambda store: store.list_facts(ALICE),
        lambda store: store.search_facts("text", [ALICE]),
    ],
    ids=["get_fact", "list_facts", "search_facts"],
)
def test_whatever_way_the_fact_was_read_before_the_edit_a_write_is_a_conflict(
    tmp_path: Path, read: Write
) -> None:
    store_with(tmp_path, "x")
    store = MemoryRepository(tmp_path)
    read(store)
    edit(fact_path(tmp_path, ALICE, "x"), "\n\ntext of x\n", "\n\nby hand\n")
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("x", "mine"), expected=1)
    assert b"by hand" in fact_path(tmp_path, ALICE, "x").read_bytes()


def test_a_fact_that_this_process_wrote_itself_counts_as_read(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("x"))
    edit(fact_path(tmp_path, ALICE, "x"), "\n\ntext of x\n", "\n\nby hand\n")
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("x", "mine"), expected=1)


@pytest.mark.parametrize("field", ["revision", "updatedAt", "createdAt", "confidence"])
def test_an_edit_of_any_field_counts(tmp_path: Path, field: str) -> None:
    store = store_with(tmp_path, "x")
    fact = store.snapshot(ALICE).by_id[X]
    changes = {
        "revision": ("revision: 1", "revision: 4"),
        "updatedAt": (f'updatedAt: "{fact.updated_at}"', 'updatedAt: "2030-01-01T00:00:00Z"'),
        "createdAt": (f'createdAt: "{fact.created_at}"', 'createdAt: "2020-01-01T00:00:00Z"'),
        "confidence": ("confidence: 0.5", "confidence: 0.75"),
    }
    edit(fact_path(tmp_path, ALICE, "x"), *changes[field])
    for write in (WRITES["delete_fact"], WRITES["edit_fact"]):
        with pytest.raises(FactConflict):
            write(store)


def test_the_conflict_lasts_until_reload(tmp_path: Path) -> None:
    store = edited(tmp_path)
    for _ in range(2):
        with pytest.raises(FactConflict):
            store.edit_fact(ALICE, "x", {"confidence": 0.9})
    assert store.reload(ALICE).by_id[X].content == "by hand"
    fact = store.edit_fact(ALICE, "x", {"confidence": 0.9}).written[0]
    assert (fact.content, fact.confidence, fact.revision) == ("by hand", 0.9, 2)


def test_the_conflict_outlives_commits_of_others_and_refreshes_of_the_cache(tmp_path: Path) -> None:
    store = edited(tmp_path)
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("late"))
    assert store.snapshot(ALICE).by_id.keys() == {"a", "x", "late"}
    store.edit_fact(ALICE, "a", {"content": "own commit"})
    with pytest.raises(FactConflict) as conflict:
        store.upsert_fact(ALICE, draft("x", "mine"), expected=1)
    assert (conflict.value.expected_text, conflict.value.actual_text) == ("text of x", "by hand")


def test_an_edit_does_not_hinder_writes_of_other_facts(tmp_path: Path) -> None:
    store = edited(tmp_path)
    store.edit_fact(ALICE, "a", {"content": "two"})
    store.upsert_fact(ALICE, draft("b"))
    assert "by hand" in fact_path(tmp_path, ALICE, "x").read_text()


def test_a_process_that_never_read_the_fact_takes_the_edit_for_what_is_stored(tmp_path: Path) -> None:
    edited(tmp_path)
    fact = MemoryRepository(tmp_path).edit_fact(ALICE, "x", {"confidence": 0.9}).written[0]
    assert (fact.content, fact.revision) == ("by hand", 2)


def test_adopting_an_old_text_gives_it_a_revision_that_nobody_has_seen(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("x"))
    old = fact_path(tmp_path, ALICE, "x").read_bytes()
    seen = [store.edit_fact(ALICE, "x", {"content": text}).written[0].revision for text in ("two", "three")]
    fact_path(tmp_path, ALICE, "x").write_bytes(old)
    assert store.adopt_fact(ALICE, "x").written[0].revision > max(seen)


def test_adopting_makes_the_edit_a_commit_with_a_new_revision(tmp_path: Path) -> None:
    store = edited(tmp_path)
    delta = store.adopt_fact(ALICE, "x")
    assert [(fact.content, fact.revision) for fact in delta.written] == [("by hand", 3)]
    assert delta.revision == 3
    assert store.snapshot(ALICE).by_id[X].content == "by hand"
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id[X].revision == 3
    store.edit_fact(ALICE, "x", {"content": "goes on"})


def test_adopting_keeps_the_creation_time_and_renews_the_other(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    before = store.snapshot(ALICE).by_id[X]
    edit(fact_path(tmp_path, ALICE, "x"), "\n\ntext of x\n", "\n\nby hand\n")
    after = store.adopt_fact(ALICE, "x").written[0]
    assert after.created_at == before.created_at
    assert after.updated_at > before.updated_at


def test_an_edit_that_cannot_be_read_is_corruption_and_is_neither_adopted_nor_overwritten(
    tmp_path: Path,
) -> None:
    store = store_with(tmp_path, "x")
    store.snapshot(ALICE)
    path = fact_path(tmp_path, ALICE, "x")
    edit(path, "confidence: 0.5", "confidence: much")
    data = path.read_bytes()
    for name, write in WRITES.items():
        if name not in ("trim", "create_fact at the cap", "consolidate"):
            with pytest.raises(Corruption, match="confidence"):
                write(store)
    with pytest.raises(Corruption, match="confidence"):
        store.adopt_fact(ALICE, "x")
    assert path.read_bytes() == data


def test_a_fact_that_another_process_replaced_is_no_hand_edit(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.snapshot(ALICE)
    other = MemoryRepository(tmp_path)
    other.edit_fact(ALICE, "x", {"content": "theirs"})
    with pytest.raises(FactConflict) as conflict:
        store.upsert_fact(ALICE, draft("x", "mine"), expected=1)
    assert (conflict.value.expected, conflict.value.actual) == (1, 2)
    assert store.edit_fact(ALICE, "x", {"content": "mine"}).written[0].revision == 3


def test_a_fact_that_another_process_deleted_and_imported_again_shows_its_new_text(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("x", "old", created_at="2020-01-01T00:00:00Z"))
    assert store.snapshot(ALICE).by_id[X].content == "old"
    other = MemoryRepository(tmp_path)
    other.clear(ALICE)
    other.upsert_fact(ALICE, draft("x", "imported", created_at="2020-01-01T00:00:00Z"))
    assert store.snapshot(ALICE).by_id[X].content == "imported"
    assert store.edit_fact(ALICE, "x", {"content": "next"}).written[0].revision == 2


def test_the_raw_id_and_the_bucket_name_of_a_user_are_no_difference_between_facts(tmp_path: Path) -> None:
    raw = Scope.of("a@b.c")
    store = MemoryRepository(tmp_path)
    store.upsert_fact(raw, draft("x"))
    fact = store.snapshot(raw).by_id[X]
    bucket = Scope.of(store.list_users()[0])
    store.edit_fact(bucket, "x", {"content": "two"})
    assert store.snapshot(raw).by_id[X].content == "two"
    store.upsert_fact(raw, draft("x", "three"), expected=store.get_fact(bucket, "x"))
    assert fact.same_meaning(replace(fact, scope=bucket))


def test_a_fact_of_another_agent_is_not_the_fact_that_was_expected(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path, clock=lambda: datetime(2026, 7, 19, tzinfo=UTC))
    upserts = tuple(Upsert(scope.agent, draft("x")) for scope in (ALICE, CODER))
    store.apply_changes("alice", ChangeSet(upserts=upserts))
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("x", "two"), expected=store.get_fact(CODER, "x"))


def test_adopting_one_fact_does_not_give_up_the_edit_of_another(tmp_path: Path) -> None:
    store = edited(tmp_path)
    edit(fact_path(tmp_path, ALICE, "a"), "\n\ntext of a\n", "\n\nalso by hand\n")
    store.adopt_fact(ALICE, "x")
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("a", "mine"), expected=1)


def test_a_store_without_a_cache_keeps_to_what_the_caller_expects(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store = MemoryRepository(tmp_path, cache_bytes=0)
    fact = store.get_fact(ALICE, "x")
    edit(fact_path(tmp_path, ALICE, "x"), "\n\ntext of x\n", "\n\nby hand\n")
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("x", "mine"), expected=fact)
    assert store.upsert_fact(ALICE, draft("x", "mine"), expected=1).written[0].revision == 2


def test_what_is_known_of_single_facts_is_bounded_and_reload_forgets_it(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    small = MemoryRepository(tmp_path, cache_bytes=80_000)
    for number in range(8):
        store.upsert_fact(ALICE, draft(f"f{number}", "a" * 3_000))
        small.get_fact(ALICE, f"f{number}")
    known = small.engine.cache.known_fact
    assert known(ALICE, FactId("f7")) is not None
    assert known(ALICE, FactId("f0")) is None
    small.reload(BOB)
    assert known(ALICE, FactId("f7")) is not None
    small.reload(CODER)
    assert known(ALICE, FactId("f7")) is None


def test_a_fact_that_this_process_deleted_is_not_known_any_more(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.delete_fact(ALICE, "x")
    assert store.engine.cache.known_fact(ALICE, X) is None
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("x", "by another"))
    assert store.edit_fact(ALICE, "x", {"confidence": 1}).written[0].content == "by another"
