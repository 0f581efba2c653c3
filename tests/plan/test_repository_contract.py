"""Plan section 7: what the repository exposes, and what its writes expect."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from deermem import (
    ABSENT,
    AtRevision,
    ChangeSet,
    Delete,
    FactConflict,
    FactNotFoundError,
    InvalidInputError,
    ManifestConflict,
    MemoryRepository,
    RevisionConflict,
    SummaryPatch,
    Unchanged,
    Upsert,
)
from deermem.model.identity import FactId
from tests.support.stores import ALICE, BOB, CODER, Clock, bucket_path, draft, files, store_with, tree

X, Y = FactId("x"), FactId("y")


def test_upsert_without_an_expected_revision_means_that_the_fact_must_not_exist(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    with pytest.raises(FactConflict) as conflict:
        store.upsert_fact(ALICE, draft("x", "another"))
    assert (conflict.value.fact_id, conflict.value.expected, conflict.value.actual) == ("x", None, 1)
    fact = store.get_fact(ALICE, "x")
    assert fact is not None
    assert fact.content == "text of x"


def test_an_update_needs_the_revision_that_was_read(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    assert store.upsert_fact(ALICE, draft("x", "two"), expected=1).written[0].revision == 2
    with pytest.raises(FactConflict) as conflict:
        store.upsert_fact(ALICE, draft("x", "three"), expected=1)
    assert (conflict.value.expected, conflict.value.actual) == (1, 2)


def test_an_update_of_an_absent_fact_fails_when_a_revision_is_expected(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    with pytest.raises(FactConflict) as conflict:
        store.upsert_fact(ALICE, draft("y"), expected=1)
    assert (conflict.value.expected, conflict.value.actual) == (1, None)


def test_every_change_of_substance_adds_one_to_the_facts_revision(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    changes: list[dict[str, object]] = [
        {"content": "b"},
        {"category": "goal"},
        {"topics": ["t"]},
        {"confidence": 1},
        {"title": "T"},
    ]
    changes += [
        {"source": "t1"},
        {"expected_valid_days": 3},
        {"source_error": "e"},
        {"confirmation_count": 2},
    ]
    revisions = [store.edit_fact(ALICE, "x", change).written[0].revision for change in changes]
    assert revisions == list(range(2, 2 + len(changes)))


def test_an_upsert_that_changes_nothing_leaves_file_time_and_revisions_alone(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("x", topics=("a",), source="t", consolidated_from=("o",)))
    before = tree(tmp_path)
    delta = store.upsert_fact(
        ALICE, draft("x", topics=("a",), source="t", consolidated_from=("o",)), expected=1
    )
    assert tree(tmp_path) == before
    assert (delta.written, delta.revision, [fact.revision for fact in delta.unchanged]) == ((), 1, [1])


def test_an_update_keeps_the_creation_time(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    before = store.get_fact(ALICE, "x")
    assert before is not None
    after = store.upsert_fact(
        ALICE, draft("x", "two", created_at="2020-01-01T00:00:00Z"), expected=1
    ).written[0]
    assert after.created_at == before.created_at
    assert after.updated_at > before.updated_at


def test_a_derived_title_follows_the_content_and_a_given_one_stays(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("derived", "first line\nsecond"))
    store.upsert_fact(ALICE, draft("given", "first line", title="Mine"))
    for fact_id in ("derived", "given"):
        store.edit_fact(ALICE, fact_id, {"content": "another line"})
    facts = store.snapshot(ALICE).by_id
    assert (facts[FactId("derived")].title, facts[FactId("given")].title) == ("another line", "Mine")


def test_edit_of_an_absent_fact_says_that_it_is_not_there(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    with pytest.raises(FactNotFoundError) as missing:
        store.edit_fact(ALICE, "y", {"content": "text"})
    assert missing.value.fact_id == "y"
    with pytest.raises(FactNotFoundError):
        store.adopt_fact(ALICE, "y")
    with pytest.raises(FactNotFoundError):
        store.edit_fact(BOB, "x", {"content": "text"})
    assert not bucket_path(tmp_path, "bob").exists()


def test_delete_of_an_absent_fact_without_a_precondition_changes_nothing(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    before = tree(tmp_path)
    assert store.delete_fact(ALICE, "y").deleted == ()
    assert store.delete_fact(BOB, "y").deleted == ()
    assert tree(tmp_path) == before


def test_delete_of_an_absent_fact_fails_when_a_revision_is_expected(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    fact = store.get_fact(ALICE, "x")
    store.delete_fact(ALICE, "x")
    for scope, expected in ((ALICE, 1), (ALICE, fact), (BOB, 1)):
        with pytest.raises(FactConflict) as conflict:
            store.delete_fact(scope, "x", expected=expected)
        assert (conflict.value.expected, conflict.value.actual) == (1, None)


def test_delete_fails_when_another_revision_is_expected(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    with pytest.raises(FactConflict):
        store.delete_fact(ALICE, "x", expected=2)
    assert store.delete_fact(ALICE, "x", expected=1).deleted == ((ALICE.agent, "x"),)


@pytest.mark.parametrize("step", [1, 0], ids=["the clock goes on", "the clock stands still"])
def test_a_fact_that_was_deleted_and_created_again_is_not_mistaken_for_the_old_one(
    tmp_path: Path, step: int
) -> None:
    clock = Clock()
    clock.step = timedelta(seconds=step)
    store = MemoryRepository(tmp_path, clock=clock)
    store.upsert_fact(ALICE, draft("x"))
    old = store.get_fact(ALICE, "x")
    store.delete_fact(ALICE, "x")
    store.upsert_fact(ALICE, draft("x"))
    new = store.get_fact(ALICE, "x")
    assert old is not None
    assert new is not None
    assert new.same_meaning(old)
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("x", "changed"), expected=old)
    with pytest.raises(FactConflict):
        store.delete_fact(ALICE, "x", expected=old)
    assert store.get_fact(ALICE, "x") == new


def test_apply_changes_commits_facts_of_several_agents_and_summaries_at_one_revision(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    delta = store.apply_changes(
        "alice",
        ChangeSet(
            upserts=(Upsert(ALICE.agent, draft("y")), Upsert(CODER.agent, draft("x"))),
            deletes=(Delete(ALICE.agent, X, AtRevision(1)),),
            summaries=SummaryPatch.parse({"user": {"topOfMind": "both"}}),
        ),
    )
    assert delta.revision == 2
    assert store.snapshot(ALICE).by_id.keys() == {"y"}
    assert store.snapshot(CODER).by_id.keys() == {"x"}
    assert store.get_summaries("alice")["user", "topOfMind"].summary == "both"


def test_apply_changes_returns_an_explicitly_incomplete_delta_of_addressed_facts_only(tmp_path: Path) -> None:
    store = store_with(tmp_path, "other", "x")
    delta = store.apply_changes(
        "alice",
        ChangeSet(
            upserts=(Upsert(ALICE.agent, draft("y")), Upsert(ALICE.agent, draft("x"), AtRevision(1))),
            deletes=(Delete(ALICE.agent, FactId("absent")),),
        ),
    )
    assert delta.complete is False
    assert (delta.version, delta.revision) == ("2.0", 3)
    assert [fact.id for fact in delta.written] == ["y"]
    assert [fact.id for fact in delta.upserted] == ["y", "x"]
    assert delta.deleted == ()
    assert delta.last_updated == delta.written[0].updated_at


def test_a_caller_that_reloads_after_committing_gets_the_full_state_of_its_revision(tmp_path: Path) -> None:
    store = store_with(tmp_path, "other")
    delta = store.upsert_fact(ALICE, draft("x"))
    full = store.reload(ALICE)
    assert full.revision == delta.revision
    assert full.by_id.keys() == {"other", "x"}


def test_a_change_set_with_one_broken_precondition_changes_nothing_at_all(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    before = tree(tmp_path)
    with pytest.raises(FactConflict) as conflict:
        store.apply_changes(
            "alice",
            ChangeSet(
                upserts=(Upsert(ALICE.agent, draft("y")), Upsert(CODER.agent, draft("z"))),
                deletes=(Delete(ALICE.agent, X, AtRevision(7)),),
                summaries=SummaryPatch.parse({"user": {"topOfMind": "not this"}}),
            ),
        )
    assert conflict.value.fact_id == "x"
    assert tree(tmp_path) == before


def test_an_empty_change_set_changes_nothing(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    before = tree(tmp_path)
    assert store.apply_changes("alice", ChangeSet()).revision == 1
    assert store.apply_changes("bob", ChangeSet()).revision == 0
    assert tree(tmp_path) == before


@pytest.mark.parametrize("kind", ["two upserts", "two deletes", "an upsert and a delete"])
def test_naming_a_fact_twice_in_a_change_set_is_an_error(kind: str) -> None:
    upsert, delete = Upsert(ALICE.agent, draft("x")), Delete(ALICE.agent, X)
    sets: dict[str, Callable[[], ChangeSet]] = {
        "two upserts": lambda: ChangeSet(upserts=(upsert, upsert)),
        "two deletes": lambda: ChangeSet(deletes=(delete, delete)),
        "an upsert and a delete": lambda: ChangeSet(upserts=(upsert,), deletes=(delete,)),
    }
    with pytest.raises(InvalidInputError, match="'x'") as refusal:
        sets[kind]()
    assert refusal.value.field == "changes"


def test_the_same_id_in_two_agents_is_not_named_twice(tmp_path: Path) -> None:
    upserts = (Upsert(ALICE.agent, draft("x")), Upsert(CODER.agent, draft("x")))
    assert len(MemoryRepository(tmp_path).apply_changes("alice", ChangeSet(upserts=upserts)).written) == 2


def test_a_manifest_precondition_alone_refuses_a_stale_base(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x", "y")
    with pytest.raises(ManifestConflict) as conflict:
        store.update_summaries("alice", {"user": {"topOfMind": "late"}}, expected_manifest_revision=1)
    assert (conflict.value.expected, conflict.value.actual) == (1, 2)
    store.update_summaries("alice", {"user": {"topOfMind": "in time"}}, expected_manifest_revision=2)


def test_a_fact_precondition_does_not_ask_for_a_manifest_revision(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x", "y")
    assert store.upsert_fact(ALICE, draft("x", "two"), expected=1).revision == 3


def test_a_fresh_manifest_revision_does_not_excuse_a_stale_fact(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.edit_fact(ALICE, "x", {"content": "two"})
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("x", "three"), expected=1, expected_manifest_revision=2)
    with pytest.raises(FactConflict):
        store.delete_fact(ALICE, "x", expected=1, expected_manifest_revision=2)


def test_a_manifest_revision_that_never_was_is_a_conflict(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    with pytest.raises(ManifestConflict):
        store.upsert_fact(ALICE, draft("x", "two"), expected=1, expected_manifest_revision=9)
    with pytest.raises(ManifestConflict):
        store.upsert_fact(BOB, draft("x"), expected_manifest_revision=1)
    assert not bucket_path(tmp_path, "bob").exists()


def test_expected_absence_is_a_precondition_of_its_own(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    absent = ChangeSet(upserts=(Upsert(ALICE.agent, draft("x", "mine"), ABSENT),))
    with pytest.raises(FactConflict):
        store.apply_changes("alice", absent)
    with pytest.raises(FactConflict):
        store.apply_changes("alice", ChangeSet(deletes=(Delete(ALICE.agent, X, ABSENT),)))


def test_a_conflict_carries_both_texts_when_the_whole_fact_was_expected(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    fact = store.get_fact(ALICE, "x")
    assert fact is not None
    store.edit_fact(ALICE, "x", {"content": "theirs"})
    changes = ChangeSet(upserts=(Upsert(ALICE.agent, draft("x", "mine"), Unchanged(fact)),))
    with pytest.raises(FactConflict) as conflict:
        store.apply_changes("alice", changes)
    assert (conflict.value.expected_text, conflict.value.actual_text) == ("text of x", "theirs")


def test_both_conflicts_are_revision_conflicts(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    with pytest.raises(RevisionConflict):
        store.upsert_fact(ALICE, draft("x"))
    with pytest.raises(RevisionConflict):
        store.update_summaries("alice", {}, expected_manifest_revision=0)


def test_a_refused_first_write_leaves_no_trace_of_the_user(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("x"), expected=3)
    store.clear(ALICE)
    store.clear_all("alice")
    store.trim(ALICE, 5)
    assert files(tmp_path) == set()
    assert not list(tmp_path.iterdir())
