"""What the predecessor left half-way is finished or rolled back first (contract section 4)."""

from __future__ import annotations

import errno
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from deermem import CommitInDoubt, Corruption, MemoryRepository
from deermem.model.identity import FactId
from tests.migration.v1 import FACT, OTHER, backup_of, document, put
from tests.support.stores import (
    ALICE,
    CODER,
    JOURNAL,
    bucket_path,
    edit,
    fact_path,
    manifest,
    store_with,
    tree,
)
from tests.support.watched import Killed, WatchedFileSystem, call_of

OPERATION = "0123456789abcdef0123456789abcdef"


def interrupt(
    root: Path,
    *,
    state: str = "prepared",
    expected: int = 1,
    fact_ids: tuple[str, ...] = (),
    kept: dict[str, bytes] | None = None,
    kept_manifest: bytes | None = None,
    agent: str | None = "__default__",
) -> Path:
    """Leaves the journal of the predecessor, and what it kept aside, as its writer would have."""
    bucket = bucket_path(root)
    aside = bucket / ".recovery" / OPERATION
    aside.mkdir(parents=True, exist_ok=True)
    old: dict[str, Any] = {}
    for fact_id, data in (kept or {}).items():
        (aside / f"{fact_id}.md").write_bytes(data)
        path = fact_path(root, ALICE, fact_id).relative_to(bucket).as_posix()
        old[fact_id] = {"path": path}
    if kept_manifest is not None:
        (aside / "memory.json").write_bytes(kept_manifest)
    journal = {
        "operationId": OPERATION,
        "state": state,
        "agentName": agent,
        "expectedRevision": expected,
        "nextRevision": expected + 1,
        "factIds": [*fact_ids, *old],
        "oldEntries": old,
    }
    (bucket / JOURNAL).write_text(json.dumps(journal, indent=2))
    return aside


def half_done(root: Path) -> bytes:
    """Makes a store in which the predecessor updated `a`, created `n`, and died before it wrote the rest."""
    store = store_with(root, "a", "b")
    before = fact_path(root, ALICE, "a").read_bytes()
    kept = (bucket_path(root) / "memory.json").read_bytes()
    store.edit_fact(ALICE, "a", {"content": "half"})
    store_with(root, "n")
    (bucket_path(root) / "memory.json").write_bytes(kept)
    interrupt(root, expected=2, fact_ids=("n",), kept={"a": before}, kept_manifest=kept)
    return before


def test_a_prepared_transaction_is_rolled_back(tmp_path: Path) -> None:
    before = half_done(tmp_path)
    snapshot = MemoryRepository(tmp_path).snapshot(ALICE)
    assert {fact.id: fact.content for fact in snapshot.facts} == {"a": "text of a", "b": "text of b"}
    assert fact_path(tmp_path, ALICE, "a").read_bytes() == before
    assert not (bucket_path(tmp_path) / JOURNAL).exists()
    assert not list((bucket_path(tmp_path) / ".recovery").iterdir())


def test_the_revision_that_was_rolled_back_does_not_come_again(tmp_path: Path) -> None:
    half_done(tmp_path)
    assert MemoryRepository(tmp_path).snapshot(ALICE).revision > 3


def test_a_rollback_is_a_transaction_that_recovery_can_complete(tmp_path: Path) -> None:
    half_done(tmp_path)
    disk = WatchedFileSystem(tmp_path)
    disk.die_at(call_of("rename", "memory.json"))
    with pytest.raises(Killed):
        MemoryRepository(disk).snapshot(ALICE)
    assert json.loads((bucket_path(tmp_path) / JOURNAL).read_text())["format"] == 2
    snapshot = MemoryRepository(tmp_path).snapshot(ALICE)
    assert {fact.id: fact.content for fact in snapshot.facts} == {"a": "text of a", "b": "text of b"}


def test_a_journal_that_replaced_the_other_is_never_taken_back(tmp_path: Path) -> None:
    half_done(tmp_path)
    disk = WatchedFileSystem(tmp_path)

    def fail_after_the_rename(call: Any) -> None:
        if call_of("rename", JOURNAL)(call):
            disk.fail(call_of("sync", "users/alice"), errno.EIO)

    disk.on_call = fail_after_the_rename
    with pytest.raises(CommitInDoubt):
        MemoryRepository(disk).snapshot(ALICE)
    assert (bucket_path(tmp_path) / JOURNAL).exists()
    snapshot = MemoryRepository(tmp_path).snapshot(ALICE)
    assert snapshot.by_id.keys() == {"a", "b"}


def test_a_committed_transaction_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store_with(tmp_path, "a", "b")
    kept = tree(tmp_path)
    interrupt(tmp_path, state="committed", kept={"a": b"old"}, kept_manifest=b"old")
    with caplog.at_level(logging.WARNING):
        snapshot = MemoryRepository(tmp_path).snapshot(ALICE)
    assert snapshot.by_id.keys() == {"a", "b"}
    assert snapshot.revision == 2
    assert tree(tmp_path) == kept
    assert "predecessor" in caplog.text


def test_a_missing_backup_of_a_fact_is_corruption_and_nothing_is_changed(tmp_path: Path) -> None:
    half_done(tmp_path)
    (bucket_path(tmp_path) / ".recovery" / OPERATION / "a.md").unlink()
    before = tree(tmp_path)
    with pytest.raises(Corruption, match="is missing") as refusal:
        MemoryRepository(tmp_path).snapshot(ALICE)
    assert refusal.value.path.endswith(f"{OPERATION}/a.md")
    assert tree(tmp_path) == before


def test_a_missing_backup_of_the_manifest_is_corruption_and_nothing_is_changed(tmp_path: Path) -> None:
    half_done(tmp_path)
    (bucket_path(tmp_path) / ".recovery" / OPERATION / "memory.json").unlink()
    before = tree(tmp_path)
    with pytest.raises(Corruption, match="is missing"):
        MemoryRepository(tmp_path).snapshot(ALICE)
    assert tree(tmp_path) == before


def test_an_expected_revision_of_0_never_deletes_a_manifest(tmp_path: Path) -> None:
    store_with(tmp_path, "n").update_summaries("alice", {"user": {"topOfMind": "t"}})
    interrupt(tmp_path, expected=0, fact_ids=("n",))
    store = MemoryRepository(tmp_path)
    assert store.snapshot(ALICE).facts == ()
    assert store.get_summaries("alice")["user", "topOfMind"].summary == "t"
    assert manifest(tmp_path)["revision"] > 2


def test_the_first_transaction_of_all_leaves_nothing_when_it_is_rolled_back(tmp_path: Path) -> None:
    store_with(tmp_path, "n")
    (bucket_path(tmp_path) / "memory.json").unlink()
    interrupt(tmp_path, expected=0, fact_ids=("n",))
    assert MemoryRepository(tmp_path).snapshot(ALICE).facts == ()
    assert MemoryRepository(tmp_path).snapshot(ALICE).revision == 2


def test_an_interrupted_migration_is_rolled_back_and_done_again(tmp_path: Path) -> None:
    source = put(tmp_path, document(FACT, OTHER))
    original = source.read_bytes()
    backup_of(source).write_bytes(original)
    MemoryRepository(tmp_path).snapshot(ALICE)  # what the predecessor would have written
    half = fact_path(tmp_path, ALICE, "fact_b")
    half.unlink()
    interrupt(tmp_path, expected=0, fact_ids=("fact_a", "fact_b"), kept_manifest=original)
    snapshot = MemoryRepository(tmp_path).snapshot(ALICE)
    assert snapshot.by_id.keys() == {"fact_a", "fact_b"}
    assert snapshot.revision > 1
    assert backup_of(source).read_bytes() == original


def test_a_migration_that_wrote_facts_alone_is_rolled_back_however_often_it_is_interrupted(
    tmp_path: Path,
) -> None:
    source = put(tmp_path, document(FACT, OTHER))
    original = source.read_bytes()
    MemoryRepository(tmp_path).snapshot(ALICE)
    edit(fact_path(tmp_path, ALICE, "fact_b"), "\n\nWorks on compilers.\n", "\n\nHalf.\n")
    source.write_bytes(original)
    (bucket_path(tmp_path) / ".memory.fences.json").unlink()  # the predecessor had none
    interrupt(tmp_path, expected=0, fact_ids=("fact_a", "fact_b"), kept_manifest=original)
    disk = WatchedFileSystem(tmp_path)
    disk.die_at(call_of("unlink", "fact_b.md"))
    with pytest.raises(Killed):
        MemoryRepository(disk).snapshot(ALICE)
    contents = {fact.id: fact.content for fact in MemoryRepository(tmp_path).snapshot(ALICE).facts}
    assert contents == {"fact_a": "Likes tea.", "fact_b": "Works on compilers."}


@pytest.mark.parametrize(
    "torn", [b"", b'{"version": "2.0", "revi', b"\0" * 300], ids=["empty", "cut", "zeros"]
)
def test_a_memory_json_that_lost_power_tore_is_rolled_back(tmp_path: Path, torn: bytes) -> None:
    half_done(tmp_path)
    (bucket_path(tmp_path) / "memory.json").write_bytes(torn)
    disk = WatchedFileSystem(tmp_path)
    disk.die_at(call_of("rename", "memory.json"))
    with pytest.raises(Killed):
        MemoryRepository(disk).snapshot(ALICE)
    snapshot = MemoryRepository(tmp_path).snapshot(ALICE)
    assert {fact.id: fact.content for fact in snapshot.facts} == {"a": "text of a", "b": "text of b"}
    assert snapshot.revision > 3


@pytest.mark.parametrize("state", ["prepared", "committed"])
@pytest.mark.parametrize("operation", ["123e4567-e89b-12d3-a456-426614174000", "op_7"])
def test_what_was_kept_aside_goes_whatever_its_name_is(tmp_path: Path, state: str, operation: str) -> None:
    half_done(tmp_path)
    bucket = bucket_path(tmp_path)
    path = bucket / JOURNAL
    path.write_text(json.dumps({**json.loads(path.read_text()), "operationId": operation, "state": state}))
    (bucket / ".recovery" / OPERATION).rename(bucket / ".recovery" / operation)
    MemoryRepository(tmp_path).snapshot(ALICE)
    assert not list((bucket / ".recovery").iterdir())


def test_a_journal_of_very_many_facts_is_read(tmp_path: Path) -> None:
    half_done(tmp_path)
    path = bucket_path(tmp_path) / JOURNAL
    journal = json.loads(path.read_text())
    journal["factIds"] += [f"fact_{number:06}" for number in range(60_000)]
    path.write_text(json.dumps(journal, indent=2))
    assert path.stat().st_size > 1_000_000
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"a", "b"}


@pytest.mark.parametrize(
    "forged",
    [
        {"oldEntries": {"a": {"path": "../bob/memory.json"}}},
        {"oldEntries": {"a": {"path": "memory.json"}}},
        {"oldEntries": {"a": {"path": "/etc/passwd"}}},
        {"oldEntries": {"../a": {"path": "agents/__default__/facts/ca/a.md"}}},
        {"operationId": "../x"},
        {"operationId": ""},
        {"agentName": "../x"},
        {"factIds": ["../x"]},
        {"factIds": "x"},
    ],
    ids=str,
)
def test_a_forged_journal_is_corruption_and_nothing_is_changed(
    tmp_path: Path, forged: dict[str, Any]
) -> None:
    half_done(tmp_path)
    path = bucket_path(tmp_path) / JOURNAL
    path.write_text(json.dumps({**json.loads(path.read_text()), **forged}))
    before = tree(tmp_path)
    with pytest.raises(Corruption):
        MemoryRepository(tmp_path).snapshot(ALICE)
    assert tree(tmp_path) == before


def test_a_writer_and_a_reader_of_another_agent_end_it_as_well(tmp_path: Path) -> None:
    half_done(tmp_path)
    MemoryRepository(tmp_path).update_summaries("alice", {"user": {"topOfMind": "t"}})
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id[FactId("a")].content == "text of a"
    half_done_again = tmp_path / "again"
    half_done(half_done_again)
    assert MemoryRepository(half_done_again).snapshot(CODER).facts == ()
    assert not (bucket_path(half_done_again) / JOURNAL).exists()
