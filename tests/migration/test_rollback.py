"""A migration can be taken back for the application that reads version 1, as long as nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import ManifestConflict, MemoryRepository, MigrationError
from tests.migration.v1 import FACT, OTHER, agent_document, backup_of, document, put
from tests.support.stores import (
    ALICE,
    CODER,
    JOURNAL,
    bucket_path,
    draft,
    edit,
    fact_path,
    manifest,
    tree,
)
from tests.support.watched import Killed, WatchedFileSystem, call_of


def migrated(root: Path) -> tuple[list[Path], list[bytes]]:
    """Makes a store of version 1, migrates it, and returns what its files were."""
    sources = [put(root, document(FACT)), put(root, agent_document(OTHER), "coder")]
    originals = [source.read_bytes() for source in sources]
    MemoryRepository(root).migrate("alice")
    return sources, originals


def test_the_files_of_version_1_come_back_byte_for_byte(tmp_path: Path) -> None:
    sources, originals = migrated(tmp_path)
    done = MemoryRepository(tmp_path).roll_migration_back("alice")
    assert [source.read_bytes() for source in sources] == originals
    assert not any(backup_of(source).exists() for source in sources)
    assert not list(bucket_path(tmp_path).rglob("*.md"))
    assert done.restored == ("users/alice/memory.json", "users/alice/agents/coder/memory.json")


def test_a_later_migration_goes_on_above_the_revisions_that_were_seen(tmp_path: Path) -> None:
    migrated(tmp_path)
    seen = manifest(tmp_path)["revision"]
    back = MemoryRepository(tmp_path).roll_migration_back("alice")
    again = MemoryRepository(tmp_path).migrate("alice")
    assert seen < back.revision < again.revision == manifest(tmp_path)["revision"]
    store = MemoryRepository(tmp_path)
    assert store.snapshot(ALICE).by_id.keys() == {"fact_a"}
    assert store.snapshot(CODER).by_id.keys() == {"fact_b"}


def test_a_writer_from_before_the_rollback_conflicts_after_it(tmp_path: Path) -> None:
    migrated(tmp_path)
    base = manifest(tmp_path)["revision"]
    MemoryRepository(tmp_path).roll_migration_back("alice")
    store = MemoryRepository(tmp_path)
    store.migrate("alice")
    with pytest.raises(ManifestConflict):
        store.upsert_fact(ALICE, draft("late"), expected_manifest_revision=base)


CHANGES: dict[str, tuple[Callable[[MemoryRepository], object], str]] = {
    "created": (lambda store: store.upsert_fact(ALICE, draft("new")), "__default__/new"),
    "edited": (lambda store: store.edit_fact(ALICE, "fact_a", {"content": "New."}), "__default__/fact_a"),
    "deleted": (lambda store: store.delete_fact(CODER, "fact_b"), "coder/fact_b"),
    "created for another agent": (
        lambda store: store.upsert_fact(CODER, draft("new")),
        "coder/new",
    ),
    "summarised": (
        lambda store: store.update_summaries("alice", {"user": {"topOfMind": "t"}}),
        "user.topOfMind",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_rollback_is_refused_with_what_changed_since(tmp_path: Path, change: str) -> None:
    migrated(tmp_path)
    run, named = CHANGES[change]
    run(MemoryRepository(tmp_path))
    before = tree(tmp_path)
    with pytest.raises(MigrationError, match=f"changed since the migration: {named}"):
        MemoryRepository(tmp_path).roll_migration_back("alice")
    assert tree(tmp_path) == before


def test_an_edit_by_hand_is_a_change_also_for_a_process_that_has_not_seen_it(tmp_path: Path) -> None:
    migrated(tmp_path)
    store = MemoryRepository(tmp_path)
    store.snapshot(ALICE)
    edit(fact_path(tmp_path, ALICE, "fact_a"), "\n\nLikes tea.\n", "\n\nLikes coffee.\n")
    before = tree(tmp_path)
    with pytest.raises(MigrationError, match="changed since the migration: __default__/fact_a"):
        store.roll_migration_back("alice")
    assert tree(tmp_path) == before


def test_an_edit_that_was_taken_back_is_no_change(tmp_path: Path) -> None:
    migrated(tmp_path)
    store = MemoryRepository(tmp_path)
    store.edit_fact(ALICE, "fact_a", {"content": "New."})
    store.edit_fact(ALICE, "fact_a", {"content": FACT["content"]})
    assert store.roll_migration_back("alice").agents == ("__default__", "coder")


def test_without_a_backup_there_is_nothing_to_roll_back(tmp_path: Path) -> None:
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("x"))
    with pytest.raises(MigrationError, match="is not there"):
        MemoryRepository(tmp_path).roll_migration_back("alice")
    with pytest.raises(MigrationError, match="no such user"):
        MemoryRepository(tmp_path).roll_migration_back("bob")


def test_a_second_rollback_says_that_the_files_are_back_already(tmp_path: Path) -> None:
    migrated(tmp_path)
    MemoryRepository(tmp_path).roll_migration_back("alice")
    with pytest.raises(MigrationError, match="is of version 1"):
        MemoryRepository(tmp_path).roll_migration_back("alice")


def test_a_file_of_an_agent_that_nobody_migrated_stays_as_it_is(tmp_path: Path) -> None:
    source, other = put(tmp_path, document(FACT)), put(tmp_path, agent_document(OTHER), "coder")
    originals = [source.read_bytes(), other.read_bytes()]
    store = MemoryRepository(tmp_path)
    store.snapshot(ALICE)
    assert store.roll_migration_back("alice").agents == ("__default__",)
    assert [source.read_bytes(), other.read_bytes()] == originals


def test_a_backup_never_replaces_a_file_that_is_there(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    newer = put(tmp_path, agent_document(OTHER), "coder")
    backup_of(newer).write_text("{}")  # of a migration that was stopped before it wrote anything else
    original = newer.read_bytes()
    store = MemoryRepository(tmp_path)
    store.snapshot(ALICE)
    store.roll_migration_back("alice")
    assert newer.read_bytes() == original
    assert backup_of(newer).read_text() == "{}"


def test_what_the_old_application_wrote_meanwhile_is_migrated_as_well(tmp_path: Path) -> None:
    (source, _), _ = migrated(tmp_path)
    MemoryRepository(tmp_path).roll_migration_back("alice")
    put(tmp_path, document(FACT, {**OTHER, "id": "fact_c"}))
    changed = source.read_bytes()
    store = MemoryRepository(tmp_path)
    assert store.migrate("alice").migrated
    assert store.snapshot(ALICE).by_id.keys() == {"fact_a", "fact_c"}
    assert backup_of(source).read_bytes() == changed


def test_a_rollback_that_was_interrupted_loses_nothing_that_was_written_since(tmp_path: Path) -> None:
    (source, _), _ = migrated(tmp_path)
    disk = WatchedFileSystem(tmp_path)
    disk.die_at(call_of("unlink", JOURNAL))
    with pytest.raises(Killed):
        MemoryRepository(disk).roll_migration_back("alice")
    put(tmp_path, document(FACT, {**OTHER, "id": "fact_c"}))
    changed = source.read_bytes()
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"fact_a", "fact_c"}
    assert backup_of(source).read_bytes() == changed


def test_an_agents_file_alone_comes_back_beside_a_memory_of_version_2(tmp_path: Path) -> None:
    MemoryRepository(tmp_path).update_summaries("alice", {"user": {"topOfMind": "t"}})
    source = put(tmp_path, agent_document(OTHER), "coder")
    original = source.read_bytes()
    store = MemoryRepository(tmp_path)
    store.migrate("alice")
    store.roll_migration_back("alice")
    assert source.read_bytes() == original
    assert manifest(tmp_path)["version"] == "2.0"
    assert store.get_summaries("alice")["user", "topOfMind"].summary == "t"
