"""`check` finds each of the faults that are planted, and nothing where there is none."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from deermem import ChangeSet, FactDraft, MemoryRepository, Scope, Upsert
from deermem.maintenance.check import check_store, check_user
from deermem.maintenance.findings import KINDS, Severity
from deermem.model.identity import DEFAULT_AGENT, FactId
from tests.maintenance.check.faults import FAULTS, PLANTABLE, Fault
from tests.support.stores import tree
from tests.support.watched import WatchedFileSystem, call_of

CHECKED_SECONDS = 8


@pytest.mark.parametrize("fault", PLANTABLE, ids=lambda fault: fault.id)
def test_a_planted_fault_is_found_by_its_kind(root: Path, fault: Fault) -> None:
    assert check_store(MemoryRepository(root)).findings == ()
    fault.plant(root)
    found = check_store(MemoryRepository(root)).findings
    assert {each.kind for each in found} == {fault.kind, *fault.also}, found
    assert any(each.path.startswith(fault.where) for each in found if each.kind == fault.kind), found
    assert all(each.message and each.severity == KINDS[each.kind] for each in found)


@pytest.mark.parametrize("fault", PLANTABLE, ids=lambda fault: fault.id)
def test_a_check_changes_nothing(root: Path, fault: Fault) -> None:
    (root / "users" / "alice" / ".memory.lock").unlink()
    fault.plant(root)
    before = tree(root)
    store = MemoryRepository(root)
    check_store(store)
    check_user(store, "alice")
    assert tree(root) == before


def test_every_kind_of_finding_but_unreadable_has_a_planted_fault() -> None:
    assert KINDS.keys() - {fault.kind for fault in FAULTS} == {"unreadable"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_what_the_system_refuses_to_read_is_an_error_and_not_nothing(root: Path) -> None:
    store = MemoryRepository(root)
    (root / "users" / "alice" / "memory.json").chmod(0)
    (found,) = check_user(store, "alice").findings
    assert (found.kind, found.severity) == ("unreadable", Severity.ERROR)


@pytest.mark.parametrize(("call", "path"), [("child", "users/alice"), ("read", "users/alice/memory.json")])
def test_what_the_disk_refuses_is_an_error_of_that_user_alone(root: Path, call: str, path: str) -> None:
    MemoryRepository(root).upsert_fact(Scope.of("bob"), FactDraft("x"))
    disk = WatchedFileSystem(root)
    disk.fail(call_of(call, path), errno.EACCES)
    report = check_store(MemoryRepository(disk))
    assert [(each.kind, each.path) for each in report.findings] == [("unreadable", path)]
    assert [each.facts for each in report.users if each.user.bucket == "bob"] == [1]


def test_a_store_that_is_not_there_has_no_findings_and_is_not_made(tmp_path: Path) -> None:
    report = check_store(MemoryRepository(tmp_path / "store"))
    assert (report.users, report.findings) == ((), ())
    assert check_user(MemoryRepository(tmp_path / "store"), "alice").users[0].revision == 0
    assert not (tmp_path / "store").exists()


def test_directories_of_the_host_are_nobodys_business(root: Path) -> None:
    bucket = root / "users" / "alice"
    for name in ("threads/t1/notes.tmp", "skills/x.sync-conflict-1.md", "agents/coder/config.yaml"):
        path = bucket / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", "utf-8")
    (bucket / "threads" / "link").symlink_to("/")
    assert check_store(MemoryRepository(root)).findings == ()


def test_the_memory_without_a_user_is_checked_with_all_users(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.create_fact(Scope.of(None), FactDraft("x"))
    assert [(each.user.raw, each.facts) for each in check_store(store).users] == [(None, 1)]
    next(tmp_path.glob("agents/*/facts/*/*.md")).write_bytes(b"")
    assert [each.kind for each in check_store(store).findings] == ["fact-corrupt"]


def test_a_copied_store_is_told_of_in_one_finding(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    upserts = tuple(Upsert(DEFAULT_AGENT, FactDraft(f"{n}", id=FactId(f"f{n}"))) for n in range(30))
    store.apply_changes("alice", ChangeSet(upserts=upserts))
    manifest = tmp_path / "users" / "alice" / "memory.json"
    os.utime(manifest, ns=(0, 0))
    (found,) = check_user(store, "alice").findings
    assert (found.kind, found.severity) == ("fact-edited", Severity.NOTE)
    assert "30 facts" in found.message


def test_a_healthy_store_of_10000_facts_has_no_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the disk is not what is tested
    upserts = tuple(Upsert(DEFAULT_AGENT, FactDraft(f"text {n}", id=FactId(f"f{n}"))) for n in range(10_000))
    MemoryRepository(tmp_path).apply_changes("alice", ChangeSet(upserts=upserts))
    start = time.monotonic()
    report = check_store(MemoryRepository(tmp_path))
    assert time.monotonic() - start < CHECKED_SECONDS
    assert (report.findings, report.users[0].facts) == ((), 10_000)
