"""A restore over a memory that is there is one transaction above both revisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from deermem import ArchiveError, MemoryRepository, RevisionConflict, Scope
from deermem.maintenance.restore import Fate, OnConflict
from deermem.model.summaries import Summaries
from tests.maintenance.backup.archives import files_below, restored, saved
from tests.support.stores import ALICE, CODER, bucket_path, draft, fact_path, store_with


@pytest.fixture
def store(tmp_path: Path) -> MemoryRepository:
    store = store_with(tmp_path / "a", "a", "b", "c")
    store.upsert_fact(CODER, draft("d"))
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Then."}}})
    return store


def change(store: MemoryRepository) -> None:
    """Makes another memory: of each kind of change one."""
    store.edit_fact(ALICE, "a", {"content": "changed"})
    store.delete_fact(ALICE, "b")
    store.upsert_fact(ALICE, draft("new"))
    store.clear(CODER)
    store.upsert_fact(Scope.of("alice", "late"), draft("e"))
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Now."}}})


def contents(store: MemoryRepository, scope: Scope) -> dict[str, str]:
    return {fact.id: fact.content for fact in store.snapshot(scope).facts}


def test_the_memory_is_that_of_the_backup_above_both_revisions(store: MemoryRepository) -> None:
    archive, saved_at = saved(store), store.get_manifest("alice").revision
    change(store)
    before = store.get_manifest("alice").revision
    plan = restored(store, archive, OnConflict.OVERWRITE)
    assert plan.users["alice"].fate is Fate.REPLACE
    for reader in (store, MemoryRepository(store.storage_root)):
        assert contents(reader, ALICE) == {name: f"text of {name}" for name in "abc"}
        assert contents(reader, CODER) == {"d": "text of d"}
        assert contents(reader, Scope.of("alice", "late")) == {}
        assert reader.get_summaries("alice")["user", "topOfMind"].summary == "Then."
        assert reader.get_manifest("alice").revision == before + 1 > saved_at


def test_an_older_memory_goes_above_the_revision_of_the_backup(
    store: MemoryRepository, tmp_path: Path
) -> None:
    other = store_with(tmp_path / "b", "z")
    restored(other, saved(store), OnConflict.OVERWRITE)
    assert other.get_manifest("alice").revision == store.get_manifest("alice").revision + 1
    assert contents(other, ALICE) == contents(store, ALICE)


def test_what_was_the_same_keeps_its_revision_and_what_comes_back_gets_a_new_one(
    store: MemoryRepository,
) -> None:
    archive = saved(store)
    created = {fact.id: fact.created_at for fact in store.snapshot(ALICE).facts}
    change(store)
    restored(store, archive, OnConflict.OVERWRITE)
    snapshot = store.snapshot(ALICE)
    assert snapshot.by_id["c"].revision == 1  # type: ignore[index]  # ids are strings
    assert snapshot.by_id["a"].revision > 2  # type: ignore[index]
    assert snapshot.by_id["b"].revision > 1  # type: ignore[index]
    assert {fact.id: fact.created_at for fact in snapshot.facts} == created


def test_a_writer_that_had_read_before_is_refused(store: MemoryRepository) -> None:
    archive = saved(store)
    change(store)
    fact = store.get_fact(ALICE, "c")
    base = store.get_manifest("alice").revision
    restored(store, archive, OnConflict.OVERWRITE)
    for scope in (ALICE, CODER, Scope.of("alice", "never-seen")):
        with pytest.raises(RevisionConflict):
            store.upsert_fact(scope, draft("late"), expected_manifest_revision=base)
    assert fact is not None
    with pytest.raises(RevisionConflict):
        store.upsert_fact(ALICE, fact.draft(content="late"), expected=fact, expected_manifest_revision=base)


def test_a_writer_that_saw_a_fact_at_the_number_that_comes_back_is_refused(store: MemoryRepository) -> None:
    archive = saved(store)
    store.delete_fact(ALICE, "b")
    restored(store, archive, OnConflict.OVERWRITE)
    with pytest.raises(RevisionConflict):
        store.upsert_fact(ALICE, draft("b", "late"), expected=1)


def test_a_fact_that_was_edited_by_hand_gives_way(store: MemoryRepository, tmp_path: Path) -> None:
    archive = saved(store)
    path = fact_path(tmp_path / "a", ALICE, "a")
    path.write_bytes(path.read_bytes().replace(b"text of a", b"by hand"))
    restored(MemoryRepository(tmp_path / "a"), archive, OnConflict.OVERWRITE)
    assert contents(MemoryRepository(tmp_path / "a"), ALICE)["a"] == "text of a"


def test_side_files_come_back_where_their_names_are_free(store: MemoryRepository, tmp_path: Path) -> None:
    folder = bucket_path(tmp_path / "a") / "agents" / "coder" / ".metadata"
    folder.mkdir()
    for name in ("kept", "gone"):
        folder.joinpath(name).write_bytes(b"then")
    archive = saved(store)
    folder.joinpath("gone").unlink()
    folder.joinpath("kept").write_bytes(b"now")
    restored(store, archive, OnConflict.OVERWRITE)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"kept": b"now", "gone": b"then"}


def test_what_cannot_be_read_replaces_nothing(store: MemoryRepository, tmp_path: Path) -> None:
    fact_path(tmp_path / "a", ALICE, "a").write_bytes(b"no fact")
    archive = saved(store)
    other = store_with(tmp_path / "b", "z")
    before = files_below(tmp_path / "b")
    with pytest.raises(ArchiveError, match="cannot replace a memory"):
        restored(other, archive, OnConflict.OVERWRITE)
    assert files_below(tmp_path / "b") == before


@pytest.mark.parametrize("name", ["memory.json", "agents/coder/memory.json"])
def test_version_1_replaces_nothing(tmp_path: Path, name: str) -> None:
    path = bucket_path(tmp_path / "a") / name
    path.parent.mkdir(parents=True)
    path.write_text('{"version": "1.0", "facts": []}', "utf-8")
    archive = saved(MemoryRepository(tmp_path / "a"))
    other = store_with(tmp_path / "b", "z")
    before = files_below(tmp_path / "b")
    with pytest.raises(ArchiveError, match="version 1"):
        restored(other, archive, OnConflict.OVERWRITE)
    assert files_below(tmp_path / "b") == before


def test_summaries_that_the_backup_lacks_go(store: MemoryRepository, tmp_path: Path) -> None:
    other = store_with(tmp_path / "b", "z")
    archive = saved(other)
    restored(store, archive, OnConflict.OVERWRITE)
    assert store.get_summaries("alice").sections == Summaries.of({}).sections
