"""What a clear, an import or a restore replaces is kept aside in the same transaction, for some days."""

from __future__ import annotations

import json
import logging
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from deermem import FactDraft, InvalidInputError, MemoryRepository, Scope, Summaries
from deermem.maintenance.restore import OnConflict
from deermem.model.manifest import NO_MANIFEST
from deermem.storage import safety
from tests.maintenance.backup.archives import restored, saved
from tests.support.stores import ALICE, CODER, Clock, bucket_path, draft, fact_path, store_with
from tests.support.systems import needs_modes
from tests.support.watched import WatchedFileSystem

NO_SUMMARIES = NO_MANIFEST.summaries


def copies(root: Path) -> list[str]:
    folder = bucket_path(root) / ".safety"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def copy(root: Path, name: str) -> dict[str, Any]:
    document = json.loads(bucket_path(root).joinpath(".safety", name).read_bytes())
    assert isinstance(document, dict)
    return document


@pytest.fixture
def store(tmp_path: Path) -> MemoryRepository:
    store = store_with(tmp_path, "a", "b")
    store.upsert_fact(CODER, draft("c"))
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Much."}}})
    return store


def test_a_clear_keeps_the_files_of_its_facts(store: MemoryRepository, tmp_path: Path) -> None:
    before = {name: fact_path(tmp_path, ALICE, name).read_text("utf-8") for name in "ab"}
    store.clear(ALICE)
    assert copies(tmp_path) == ["5-clear.json"]
    document = copy(tmp_path, "5-clear.json")
    assert {Path(file["path"]).stem: file["text"] for file in document["kept"]} == before
    assert document["written"] == []


def test_clear_all_keeps_the_facts_of_every_agent_and_the_summaries(
    store: MemoryRepository, tmp_path: Path
) -> None:
    store.clear_all("alice")
    document = copy(tmp_path, copies(tmp_path)[0])
    assert sorted(Path(file["path"]).stem for file in document["kept"]) == ["a", "b", "c"]
    assert json.loads(document["before"])["user"]["topOfMind"]["summary"] == "Much."


def test_an_import_keeps_what_it_replaces_and_what_it_writes(store: MemoryRepository, tmp_path: Path) -> None:
    store.replace_all(ALICE, [draft("a", "changed"), draft("b"), draft("new")], NO_SUMMARIES)
    document = copy(tmp_path, copies(tmp_path)[0])
    assert [Path(file["path"]).stem for file in document["kept"]] == ["a"]
    assert sorted(Path(file["path"]).stem for file in document["written"]) == ["a", "new"]


def test_a_restore_over_a_memory_keeps_what_it_replaces(store: MemoryRepository, tmp_path: Path) -> None:
    archive = saved(store)
    store.delete_fact(ALICE, "a")
    store.upsert_fact(ALICE, draft("late"))
    restored(store, archive, OnConflict.OVERWRITE)
    (name,) = copies(tmp_path)
    assert name.endswith("-restore.json")
    assert [Path(file["path"]).stem for file in copy(tmp_path, name)["kept"]] == ["late"]


@needs_modes
def test_a_safety_copy_is_read_by_its_owner_alone(store: MemoryRepository, tmp_path: Path) -> None:
    store.clear(ALICE)
    folder = bucket_path(tmp_path) / ".safety"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.clear_all("nobody"),
        lambda store: store.clear(Scope.of("alice", "empty")),
        lambda store: store.upsert_fact(ALICE, draft("d")),
        lambda store: store.delete_fact(ALICE, "a"),
        lambda store: store.trim(ALICE, 1),
        lambda store: store.edit_fact(ALICE, "a", {"content": "x"}),
    ],
    ids=["clear all of nobody", "clear of nothing", "create", "delete", "trim", "edit"],
)
def test_what_takes_nothing_away_that_an_undo_could_bring_keeps_nothing(
    store: MemoryRepository, tmp_path: Path, change: Any
) -> None:
    change(store)
    assert copies(tmp_path) == []
    assert not bucket_path(tmp_path, "nobody").exists()


def test_a_file_that_is_no_fact_is_kept_byte_for_byte(store: MemoryRepository, tmp_path: Path) -> None:
    fact_path(tmp_path, ALICE, "a").write_bytes(b"\xff\x00 no fact")
    store.clear(ALICE)
    kept = {Path(file["path"]).stem: file for file in copy(tmp_path, copies(tmp_path)[0])["kept"]}
    assert kept["a"]["base64"] == "/wAgbm8gZmFjdA=="


def test_expired_copies_go_with_the_next_operation_that_keeps_one(tmp_path: Path) -> None:
    clock = Clock()
    store = MemoryRepository(tmp_path, clock=clock, undo_days=3)
    for number in range(3):
        store.upsert_fact(ALICE, draft(f"f{number}"))
        store.clear(ALICE)
        clock.now += timedelta(days=2)
    assert copies(tmp_path) == ["4-clear.json", "6-clear.json"]
    clock.now += timedelta(days=30)
    store.upsert_fact(ALICE, draft("x"))
    assert len(copies(tmp_path)) == 2
    store.clear(CODER)
    assert copies(tmp_path) == []


def test_with_no_days_nothing_is_kept_and_what_was_goes(store: MemoryRepository, tmp_path: Path) -> None:
    store.clear(ALICE)
    assert len(copies(tmp_path)) == 1
    careless = MemoryRepository(tmp_path, undo_days=0)
    careless.clear(CODER)
    assert copies(tmp_path) == []


def test_no_more_than_some_copies_are_kept_however_young(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    for number in range(safety.MAX_COPIES + 3):
        store.replace_all(ALICE, [FactDraft(f"text {number}", id="a")], NO_SUMMARIES)
    assert len(copies(tmp_path)) == safety.MAX_COPIES
    newest = store.get_manifest("alice").revision
    assert f"{newest}-import.json" in copies(tmp_path)


def test_what_is_too_large_is_not_kept_and_that_is_logged(
    store: MemoryRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(safety, "MAX_KEPT_BYTES", 100)
    with caplog.at_level(logging.WARNING):
        store.clear_all("alice")
    assert copies(tmp_path) == []
    assert "no safety copy of revision" in caplog.text
    assert store.snapshot(ALICE).facts == ()


def test_what_becomes_too_large_by_escaping_is_not_kept_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = store_with(tmp_path)
    store.upsert_fact(ALICE, draft("a", f"a{1_000 * chr(1)}"))
    monkeypatch.setattr(safety, "MAX_KEPT_BYTES", 5_000)
    with caplog.at_level(logging.WARNING):
        store.clear(ALICE)
    assert copies(tmp_path) == []
    assert "no safety copy of revision 2" in caplog.text


def test_a_clear_takes_two_syncs_more_for_its_safety_copy(tmp_path: Path) -> None:
    """The copy, and its directory; the directory's own name is durable with the journal's."""
    counts = []
    for days in (0, 7):
        root = tmp_path / str(days)
        store_with(root, "x")
        disk = WatchedFileSystem(root)
        MemoryRepository(disk, undo_days=days).clear(ALICE)
        counts.append(disk.syncs())
    assert counts[1] == counts[0] + 2


@pytest.mark.parametrize("days", [-1, 3_651, True, 1.5, "7"])
def test_a_number_of_days_that_cannot_be_is_refused(tmp_path: Path, days: Any) -> None:
    with pytest.raises(InvalidInputError, match="undo_days"):
        MemoryRepository(tmp_path, undo_days=days)


def test_the_summaries_alone_are_worth_a_copy(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Much."}}})
    store.clear_all("alice")
    assert copies(tmp_path) == ["2-clear.json"]
    assert Summaries.of({}) == store.get_summaries("alice")
