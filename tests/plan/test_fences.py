"""Guarantee G7: what was cleared stays cleared, whatever a writer had read before (plan section 8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import (
    ABSENT,
    AtRevision,
    ChangeSet,
    Corruption,
    FactConflict,
    ManifestConflict,
    MemoryRepository,
    UnsupportedFormat,
    Upsert,
)
from tests.support.stores import ALICE, CODER, bucket_path, draft, interrupt, store_with, tree
from tests.support.watched import call_of

FENCES = ".memory.fences.json"
CLEARS: dict[str, Callable[[MemoryRepository], object]] = {
    "clear": lambda store: store.clear(ALICE),
    "clear_all": lambda store: store.clear_all("alice"),
}


def late(fact_id: str, revision: int) -> ChangeSet:
    """Returns a write that names an old revision and whose fact precondition holds after a clear."""
    upsert = Upsert(ALICE.agent, draft(fact_id, "from before"), ABSENT)
    return ChangeSet(upserts=(upsert,), expected_manifest_revision=revision, may_rebase=True)


@pytest.mark.parametrize("clear", CLEARS)
def test_after_a_clear_no_write_based_on_an_older_revision_brings_a_fact_back(
    tmp_path: Path, clear: str
) -> None:
    store = store_with(tmp_path, "x")
    CLEARS[clear](store)
    other = MemoryRepository(tmp_path)
    for fact_id in ("x", "y"):
        for revision in (0, 1):
            with pytest.raises(ManifestConflict):
                store.apply_changes("alice", late(fact_id, revision))
            with pytest.raises(ManifestConflict):
                other.upsert_fact(ALICE, draft(fact_id), expected_manifest_revision=revision)
    assert store.snapshot(ALICE).facts == ()
    assert store.snapshot(ALICE).revision == 2


def test_a_fence_stands_for_writes_of_any_later_time(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.clear(ALICE)
    for number in range(3):
        store.upsert_fact(ALICE, draft(f"new{number}"))
    with pytest.raises(ManifestConflict):
        store.apply_changes("alice", late("x", 1))


def test_a_fence_also_refuses_to_change_a_fact_that_was_created_after_the_clear(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.clear(ALICE)
    store.upsert_fact(ALICE, draft("x", "new"))
    with pytest.raises(ManifestConflict):
        store.upsert_fact(ALICE, draft("x", "old"), expected=1, expected_manifest_revision=1)
    with pytest.raises(ManifestConflict):
        store.delete_fact(ALICE, "x", expected=1, expected_manifest_revision=1)
    fact = store.get_fact(ALICE, "x")
    assert fact is not None
    assert fact.content == "new"


@pytest.mark.parametrize("clear", CLEARS)
def test_a_write_based_on_the_clear_itself_or_later_is_not_fenced(tmp_path: Path, clear: str) -> None:
    store = store_with(tmp_path, "x")
    CLEARS[clear](store)
    store.upsert_fact(ALICE, draft("a"), expected_manifest_revision=2)
    store.upsert_fact(ALICE, draft("b"), expected_manifest_revision=2)
    assert store.snapshot(ALICE).by_id.keys() == {"a", "b"}


@pytest.mark.parametrize("clear", CLEARS)
def test_a_fresh_intent_that_names_no_manifest_revision_is_not_fenced(tmp_path: Path, clear: str) -> None:
    store = store_with(tmp_path, "x")
    CLEARS[clear](store)
    assert store.upsert_fact(ALICE, draft("x")).written[0].revision == 1


def test_a_fresh_intent_with_a_stale_fact_still_cannot_bring_it_back(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    fact = store.get_fact(ALICE, "x")
    store.clear(ALICE)
    for expected in (1, fact):
        with pytest.raises(FactConflict):
            store.upsert_fact(ALICE, draft("x", "again"), expected=expected)


def test_the_clear_of_one_agent_does_not_fence_another(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.clear(CODER)
    store.upsert_fact(ALICE, draft("y"), expected_manifest_revision=1)
    with pytest.raises(ManifestConflict):
        store.upsert_fact(CODER, draft("y"), expected_manifest_revision=1)


def test_a_change_set_over_two_agents_is_fenced_by_the_clear_of_either(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.clear(CODER)
    upserts = (Upsert(ALICE.agent, draft("x", "2"), AtRevision(1)), Upsert(CODER.agent, draft("c")))
    with pytest.raises(ManifestConflict, match="coder"):
        store.apply_changes(
            "alice", ChangeSet(upserts=upserts, expected_manifest_revision=1, may_rebase=True)
        )


def test_clear_all_fences_agents_that_had_no_facts_yet(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.clear_all("alice")
    with pytest.raises(ManifestConflict):
        store.upsert_fact(CODER, draft("y"), expected_manifest_revision=1)


def test_clearing_an_empty_scope_raises_its_fence_all_the_same(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.delete_fact(ALICE, "x")
    assert store.clear(ALICE).revision == 3
    with pytest.raises(ManifestConflict):
        store.upsert_fact(ALICE, draft("y"), expected_manifest_revision=2)


def test_the_deletion_of_an_agent_fences_it_and_no_late_write_makes_its_directory_again(
    tmp_path: Path,
) -> None:
    store = store_with(tmp_path, "x", scope=CODER)
    agent = bucket_path(tmp_path) / "agents" / "coder"
    agent.joinpath("config.yaml").write_text("model: any")
    fact = store.get_fact(CODER, "x")
    store.delete_agent(CODER)
    late = MemoryRepository(tmp_path)
    with pytest.raises(ManifestConflict):
        late.upsert_fact(CODER, draft("y"), expected_manifest_revision=1)
    with pytest.raises(FactConflict):
        late.upsert_fact(CODER, draft("x", "two"), expected=fact)
    assert late.delete_fact(CODER, "x").deleted == ()
    assert not agent.exists()
    late.upsert_fact(CODER, draft("x"))
    assert store.snapshot(CODER).by_id.keys() == {"x"}


def test_the_fences_are_kept_on_disk_with_the_revision_of_each_clear(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.clear(ALICE)
    store.clear(CODER)
    assert json.loads(bucket_path(tmp_path).joinpath(FENCES).read_bytes()) == {
        "format": 1,
        "everything": 0,
        "agents": {"__default__": 2, "coder": 3},
    }
    store.clear_all("alice")
    assert json.loads(bucket_path(tmp_path).joinpath(FENCES).read_bytes()) == {
        "format": 1,
        "everything": 4,
        "agents": {},
    }


def test_the_fence_is_written_in_the_same_transaction_as_the_clear(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    interrupt(tmp_path, lambda store: store.clear(ALICE), call_of("unlink", "x.md"))
    store = MemoryRepository(tmp_path)
    with pytest.raises(ManifestConflict):
        store.apply_changes("alice", late("x", 1))
    assert store.snapshot(ALICE).facts == ()


def test_a_clear_that_never_reached_its_commit_point_fences_nothing(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    interrupt(tmp_path, lambda store: store.clear(ALICE), call_of("rename", ".memory.journal.json"))
    store = MemoryRepository(tmp_path)
    assert store.upsert_fact(ALICE, draft("y"), expected_manifest_revision=1).revision == 2
    assert not bucket_path(tmp_path).joinpath(FENCES).exists()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", Corruption),
        (b"[]", Corruption),
        (b'{"format": 1, "everything": -1}', Corruption),
        (b'{"format": 1, "everything": true}', Corruption),
        (b'{"format": 1, "everything": 0, "agents": {"../x": 1}}', Corruption),
        (b'{"format": 1, "everything": 0, "agents": []}', Corruption),
        (b'{"format": 2, "everything": 0}', UnsupportedFormat),
    ],
)
def test_fences_that_cannot_be_read_stop_stale_writes_and_clears_and_nothing_else(
    tmp_path: Path, data: bytes, error: type[Exception]
) -> None:
    store = store_with(tmp_path, "x", "y")
    fences = bucket_path(tmp_path) / FENCES
    fences.write_bytes(data)
    before = tree(tmp_path)
    with pytest.raises(error, match=FENCES):
        store.upsert_fact(ALICE, draft("z"), expected_manifest_revision=1)
    with pytest.raises(error, match=FENCES):
        store.clear(ALICE)
    assert tree(tmp_path) == before
    store.upsert_fact(ALICE, draft("z"))
    assert fences.read_bytes() == data
