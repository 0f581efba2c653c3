"""What a repair decides: revisions, summaries, fences, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deermem import Corruption, InvalidInputError, ManifestConflict, MemoryRepository, Scope
from deermem.maintenance.check import check_store, check_user
from deermem.maintenance.repair import Repaired, repair_user
from deermem.maintenance.repair_plan import LEAP, salvaged
from deermem.maintenance.undo import undo_repair
from deermem.model.identity import FactId, UserId
from tests.maintenance.check.faults import (
    broken_journal,
    conflict,
    duplicate,
    fact,
    hot_journal,
    misplaced,
    write_old,
)
from tests.support.stores import ALICE, CODER, bucket_path, draft, manifest, tree
from tests.support.systems import needs_modes

USER = UserId.parse("alice")
SOUND_REVISION = 7


def repair(root: Path, *kinds: str) -> Repaired:
    """Repairs the findings of some kinds, or all."""
    store = MemoryRepository(root)
    findings = check_user(store, "alice").findings
    return repair_user(store, USER, [each for each in findings if not kinds or each.kind in kinds])


def set_aside(root: Path, done: Repaired) -> dict[str, bytes]:
    """Returns what a repair keeps, by the path where it lay."""
    place = root / done.set_aside
    record = json.loads((place / "record.json").read_bytes())
    return {each["path"]: (place / each["kept"]).read_bytes() for each in record["entries"]}


def test_a_repair_touches_only_what_was_agreed_to(root: Path) -> None:
    conflict(root)
    write_old(fact(root, "b"), b"broken")
    repair(root, "fact-conflict-markers")
    assert [each.kind for each in check_user(MemoryRepository(root), "alice").findings] == [
        "fact-corrupt",
        "quarantine",
    ]


def test_what_is_set_aside_is_kept_with_its_bytes(root: Path) -> None:
    write_old(fact(root, "a"), b"\0\xff broken")
    path = fact(root, "a").relative_to(bucket_path(root)).as_posix()
    done = repair(root)
    assert set_aside(root, done) == {path: b"\0\xff broken"}


@needs_modes
def test_what_is_set_aside_is_read_by_its_owner_alone(root: Path) -> None:
    write_old(fact(root, "a"), b"\0\xff broken")
    done = repair(root)
    assert {each.stat().st_mode & 0o077 for each in (root / done.set_aside).iterdir()} == {0}


def test_a_lost_manifest_comes_back_far_beyond_every_revision_that_was_found(root: Path) -> None:
    write_old(fact(root, "a"), fact(root, "a").read_bytes().replace(b"revision: 1", b"revision: 400"))
    (bucket_path(root) / "memory.json").unlink()
    repair(root)
    assert manifest(root)["revision"] > LEAP + 400


def test_a_broken_manifest_that_names_its_revision_goes_on_from_there(root: Path) -> None:
    path = bucket_path(root) / "memory.json"
    write_old(path, path.read_bytes()[:-20])
    repair(root)
    assert manifest(root)["revision"] == SOUND_REVISION + 1


def test_a_number_in_a_broken_manifest_that_nobody_counts_to_is_not_believed(root: Path) -> None:
    write_old(bucket_path(root) / "memory.json", b'{"revision": 9000000000000000, ')
    repair(root)
    assert manifest(root)["revision"] < 2 * LEAP
    MemoryRepository(root).upsert_fact(ALICE, draft("next"))


def test_the_summaries_of_a_broken_manifest_that_are_well_formed_are_kept(root: Path) -> None:
    path = bucket_path(root) / "memory.json"
    document = json.loads(path.read_bytes())
    document["user"]["workContext"] = {"summary": 7}
    document["mine"] = {"kept": True}
    write_old(path, json.dumps(document).encode())
    repair(root)
    after = manifest(root)
    assert after["user"]["topOfMind"]["summary"] == "Builds a store."
    assert after["user"]["workContext"]["summary"] == ""
    assert after["mine"] == {"kept": True}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"user": 1, "history": [], "extra": "\\ud800"}'])
def test_of_bytes_that_are_no_document_nothing_is_kept(data: bytes) -> None:
    assert salvaged(data, "2026-01-01T00:00:00Z", 5).revision == 5


def test_new_fences_refuse_whoever_read_before_the_repair(root: Path) -> None:
    store = MemoryRepository(root)
    base = store.get_manifest("alice").revision
    write_old(bucket_path(root) / ".memory.fences.json", b"[")
    repair(root)
    late = draft("late")
    with pytest.raises(ManifestConflict):
        store.upsert_fact(Scope.of("alice", "cleared"), late, expected_manifest_revision=base)


def test_a_fact_that_lies_elsewhere_replaces_a_broken_one_in_its_place(root: Path) -> None:
    duplicate(root)
    write_old(fact(root, "a"), b"broken")
    done = repair(root)
    assert MemoryRepository(root).snapshot(ALICE).by_id[FactId("a")].content == "text of a"
    assert b"broken" in set_aside(root, done).values()
    undo_repair(MemoryRepository(root), USER)
    assert fact(root, "a").read_bytes() == b"broken"


def test_an_undo_leaves_everything_as_it_is_where_something_else_lies(root: Path) -> None:
    misplaced(root)
    conflict_path = fact(root, "b")
    write_old(conflict_path, b"broken")
    repair(root)
    MemoryRepository(root).upsert_fact(ALICE, draft("b"))
    before = tree(root)
    undone = undo_repair(MemoryRepository(root), USER)
    assert undone.refused == (conflict_path.relative_to(root).as_posix(),)
    assert tree(root) == before


def test_an_undo_leaves_a_manifest_that_went_on(root: Path) -> None:
    write_old(bucket_path(root) / "memory.json", b"{")
    write_old(fact(root, "a"), b"broken")
    repair(root)
    MemoryRepository(root).upsert_fact(ALICE, draft("next"))
    undone = undo_repair(MemoryRepository(root), USER)
    assert undone.left == ("users/alice/memory.json",)
    assert fact(root, "a").read_bytes() == b"broken"
    assert MemoryRepository(root).snapshot(CODER).facts


def test_an_undo_needs_the_copy_that_was_set_aside(root: Path) -> None:
    write_old(fact(root, "a"), b"broken")
    place = root / repair(root).set_aside
    (place / "0").write_bytes(b"other")
    assert undo_repair(MemoryRepository(root), USER).refused == (f"{place.relative_to(root).as_posix()}/0",)
    assert not fact(root, "a").exists()


def test_repairs_are_undone_one_after_the_other_the_last_first(root: Path) -> None:
    write_old(fact(root, "a"), b"first")
    first = repair(root).set_aside
    write_old(fact(root, "b"), b"second")
    second = repair(root).set_aside
    store = MemoryRepository(root)
    assert [undo_repair(store, USER).place for _ in range(2)] == [second, first]
    with pytest.raises(InvalidInputError):
        undo_repair(store, USER)
    assert (fact(root, "a").read_bytes(), fact(root, "b").read_bytes()) == (b"first", b"second")


def test_a_broken_journal_is_set_aside_with_the_images_that_it_staged(root: Path) -> None:
    broken_journal(root)
    kept = set_aside(root, repair(root))
    assert ".memory.journal.json" in kept
    assert any(b"text of new" in data for path, data in kept.items() if path.startswith(".recovery/"))


def test_under_a_journal_that_stays_nothing_is_mended_that_readers_see(root: Path) -> None:
    broken_journal(root)
    write_old(fact(root, "a"), b"broken")
    before = tree(root)
    repair(root, "fact-corrupt")
    assert fact(root, "a").read_bytes() == b"broken"
    assert tree(root).keys() == before.keys()


def test_a_hot_journal_is_completed_before_anything_is_mended(root: Path) -> None:
    hot_journal(root)
    write_old(fact(root, "a"), b"broken")
    repair(root, "fact-corrupt")
    assert MemoryRepository(root).snapshot(ALICE).by_id.keys() == {"b", "spare", "new"}


def test_a_link_in_place_of_the_quarantine_is_not_followed(root: Path, tmp_path: Path) -> None:
    (bucket_path(root) / ".quarantine").symlink_to(tmp_path)
    write_old(fact(root, "a"), b"broken")
    before = set(tmp_path.iterdir())
    with pytest.raises(Corruption):
        repair(root)
    assert fact(root, "a").read_bytes() == b"broken"
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("path", ["../bob/memory.json", "/etc/x", "agents//x", ".", ""])
def test_a_record_cannot_lead_out_of_the_bucket(root: Path, path: str) -> None:
    write_old(fact(root, "a"), b"broken")
    record = root / repair(root).set_aside / "record.json"
    document = json.loads(record.read_bytes())
    document["entries"][0]["path"] = path
    write_old(record, json.dumps(document).encode())
    with pytest.raises(Corruption):
        undo_repair(MemoryRepository(root), USER, record.parent.name)
    assert "quarantine-unreadable" in {each.kind for each in check_store(MemoryRepository(root)).findings}
