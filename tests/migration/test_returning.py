"""A version-1 file that comes back over what was made of it brings nothing back by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from deermem import MemoryRepository, MigrationError
from tests.migration.v1 import FACT, OTHER, agent_document, backup_of, document, put
from tests.support.stores import ALICE, CODER, draft, manifest, tree


def migrated(root: Path) -> tuple[Path, bytes, MemoryRepository]:
    """Makes a migrated store of which a fact was deleted; returns its source and what that was."""
    source = put(root, document(FACT, OTHER))
    original = source.read_bytes()
    store = MemoryRepository(root)
    store.migrate("alice")
    store.delete_fact(ALICE, "fact_b")
    store.upsert_fact(ALICE, draft("new"))
    return source, original, store


@pytest.mark.parametrize("is_warm", [True, False])
@pytest.mark.parametrize("is_cleared", [True, False])
def test_it_is_refused_and_nothing_is_changed(tmp_path: Path, is_warm: bool, is_cleared: bool) -> None:
    source, original, store = migrated(tmp_path)
    if is_cleared:
        store.clear_all("alice")
    source.write_bytes(original)
    before = tree(tmp_path)
    reader = store if is_warm else MemoryRepository(tmp_path)
    for access in (
        lambda: reader.snapshot(ALICE),
        lambda: reader.upsert_fact(ALICE, draft("late")),
        lambda: reader.migrate("alice"),
        lambda: reader.plan_migration("alice"),
    ):
        with pytest.raises(MigrationError, match="was migrated before and came back"):
            access()
    assert tree(tmp_path) == before


def test_an_agents_file_that_comes_back_stops_that_agent_alone(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    source = put(tmp_path, agent_document(OTHER), "coder")
    original = source.read_bytes()
    store = MemoryRepository(tmp_path)
    store.migrate("alice")
    store.delete_fact(CODER, "fact_b")
    source.write_bytes(original)
    with pytest.raises(MigrationError, match="came back"):
        store.snapshot(CODER)
    assert store.snapshot(ALICE).by_id.keys() == {"fact_a"}


def test_who_moves_the_backup_away_migrates_it_once_more_above_all_revisions(tmp_path: Path) -> None:
    source, original, store = migrated(tmp_path)
    seen = store.snapshot(ALICE).revision
    source.write_bytes(original)
    backup_of(source).unlink()
    assert store.snapshot(ALICE).by_id.keys() == {"fact_a", "fact_b", "new"}
    assert manifest(tmp_path)["revision"] > seen
    assert backup_of(source).read_bytes() == original


def test_a_clear_all_takes_it_with_it(tmp_path: Path) -> None:
    source, original, store = migrated(tmp_path)
    source.write_bytes(original)
    store.clear_all("alice")
    assert MemoryRepository(tmp_path).snapshot(ALICE).facts == ()
    assert backup_of(source).read_bytes() == original


def test_a_file_that_a_clear_all_took_is_refused_as_well_when_it_comes_back(tmp_path: Path) -> None:
    source = put(tmp_path, document(FACT))
    original = source.read_bytes()
    MemoryRepository(tmp_path).clear_all("alice")
    source.write_bytes(original)
    with pytest.raises(MigrationError, match="came back"):
        MemoryRepository(tmp_path).snapshot(ALICE)


def test_after_a_rollback_it_is_migrated_like_any_other(tmp_path: Path) -> None:
    source = put(tmp_path, document(FACT, OTHER))
    store, seen = MemoryRepository(tmp_path), 0
    for _ in range(3):
        store.migrate("alice")
        seen = manifest(tmp_path)["revision"]
        assert store.roll_migration_back("alice").revision == seen + 1
    assert store.snapshot(ALICE).by_id.keys() == {"fact_a", "fact_b"}
    assert manifest(tmp_path)["revision"] == seen + 2
    assert backup_of(source).exists()


def test_another_version_1_file_is_told_from_the_one_that_was_migrated(tmp_path: Path) -> None:
    source, _, store = migrated(tmp_path)
    put(tmp_path, document(FACT))
    with pytest.raises(MigrationError, match="differs from the file that it would back up"):
        MemoryRepository(tmp_path).snapshot(ALICE)
    backup_of(source).unlink()
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"fact_a", "new"}
    assert store.snapshot(ALICE).by_id.keys() == {"fact_a", "new"}
