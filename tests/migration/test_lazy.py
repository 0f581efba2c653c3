"""The first access migrates what it needs, and loses nothing (plan section 10, contract section 4)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deermem import Corruption, InvalidInputError, MemoryRepository, MigrationError, RevisionConflict
from deermem.errors import LegacyFormat
from deermem.model.identity import FactId
from tests.migration.v1 import FACT, OTHER, WORK, agent_document, backup_of, document, put
from tests.support.stores import (
    ALICE,
    CODER,
    JOURNAL,
    bucket_path,
    draft,
    fact_path,
    manifest,
    store_with,
    tree,
)
from tests.support.watched import Killed, WatchedFileSystem, call_of

ACCESSES: dict[str, Callable[[MemoryRepository], object]] = {
    "snapshot": lambda store: store.snapshot(ALICE),
    "get_fact": lambda store: store.get_fact(ALICE, "fact_a"),
    "list_facts": lambda store: store.list_facts(ALICE),
    "list_facts of what can be read": lambda store: store.list_facts(ALICE, skip_corrupt=True),
    "get_manifest": lambda store: store.get_manifest("alice"),
    "list_agents": lambda store: store.list_agents("alice"),
    "search": lambda store: store.search_facts("tea", [ALICE]),
    "another agent": lambda store: store.snapshot(CODER),
    "create": lambda store: store.upsert_fact(ALICE, draft("new")),
    "edit": lambda store: store.edit_fact(ALICE, "fact_b", {"content": "two"}),
    "delete": lambda store: store.delete_fact(ALICE, "fact_b"),
    "summaries": lambda store: store.update_summaries("alice", {"user": {"topOfMind": "t"}}),
    "reload": lambda store: store.reload(ALICE),
    "cleared_at": lambda store: store.cleared_at(ALICE),
    "migrate": lambda store: store.migrate("alice"),
}


@pytest.mark.parametrize("access", ACCESSES)
def test_any_access_migrates_the_users_memory_json(tmp_path: Path, access: str) -> None:
    source = put(tmp_path, document(FACT, OTHER))
    original = source.read_bytes()
    ACCESSES[access](MemoryRepository(tmp_path))
    after = manifest(tmp_path)
    assert after["version"] == "2.0"
    assert "facts" not in after
    assert after["user"]["workContext"] == WORK["workContext"]
    assert backup_of(source).read_bytes() == original
    fact = MemoryRepository(tmp_path).get_fact(ALICE, "fact_a")
    assert fact is not None
    assert (fact.content, fact.category, fact.confidence) == ("Likes tea.", "preference", 0.9)
    assert (fact.created_at, str(fact.source), fact.revision) == ("2025-03-01T10:00:00Z", "thread_1", 1)


AGENT_ACCESSES: dict[str, Callable[[MemoryRepository], object]] = {
    "snapshot": lambda store: store.snapshot(CODER),
    "get_fact": lambda store: store.get_fact(CODER, "fact_c"),
    "list_facts of what can be read": lambda store: store.list_facts(CODER, skip_corrupt=True),
    "create": lambda store: store.upsert_fact(CODER, draft("new")),
    "delete": lambda store: store.delete_fact(CODER, "absent"),
    "entries": lambda store: store.agent_entries("alice"),
}


@pytest.mark.parametrize("access", AGENT_ACCESSES)
@pytest.mark.parametrize("beside", [None, document(FACT), "version 2"], ids=["alone", "v1", "v2"])
def test_an_access_to_an_agent_migrates_its_file(tmp_path: Path, access: str, beside: Any) -> None:
    if beside == "version 2":
        store_with(tmp_path, "x")
    elif beside is not None:
        put(tmp_path, beside)
    source = put(tmp_path, agent_document({**FACT, "id": "fact_c"}), "coder")
    original = source.read_bytes()
    AGENT_ACCESSES[access](MemoryRepository(tmp_path))
    assert not source.exists()
    assert backup_of(source).read_bytes() == original
    assert MemoryRepository(tmp_path).get_fact(CODER, "fact_c") is not None


def test_an_access_to_one_agent_leaves_the_file_of_another(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    other = put(tmp_path, agent_document(OTHER), "coder")
    assert [fact.id for fact in MemoryRepository(tmp_path).snapshot(ALICE).facts] == ["fact_a"]
    assert other.exists()
    assert MemoryRepository(tmp_path).list_agents("alice") == ("__default__", "coder")


def test_a_migration_is_one_transaction(tmp_path: Path) -> None:
    put(tmp_path, document(FACT, OTHER))
    put(tmp_path, agent_document(FACT), "coder")
    report = MemoryRepository(tmp_path).migrate("alice")
    assert report.migrated
    assert report.revision == manifest(tmp_path)["revision"] == 1
    assert report.delta is not None
    assert sorted(fact.id for fact in report.delta.written) == ["fact_a", "fact_a", "fact_b"]
    assert report.sources == ("users/alice/memory.json", "users/alice/agents/coder/memory.json")


def test_a_second_migration_finds_nothing_to_do(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    store = MemoryRepository(tmp_path)
    store.migrate("alice")
    before = tree(tmp_path)
    assert not store.migrate("alice").needed
    assert not MemoryRepository(tmp_path).migrate("alice").needed
    assert not store.migrate("nobody").needed
    assert tree(tmp_path) == before


def test_the_revision_goes_on_from_that_of_the_old_file(tmp_path: Path) -> None:
    put(tmp_path, document(FACT, revision=7))
    assert MemoryRepository(tmp_path).snapshot(ALICE).revision == 8


def test_a_migrated_store_costs_readers_no_write_and_no_lock(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    MemoryRepository(tmp_path).snapshot(ALICE)
    disk = WatchedFileSystem(tmp_path)
    MemoryRepository(disk).snapshot(ALICE)
    assert disk.count("create", "rename", "sync", "unlink", "lock_file", "make_child") == 0


def test_another_backup_stops_the_migration_and_nothing_is_changed(tmp_path: Path) -> None:
    source = put(tmp_path, document(FACT))
    backup_of(source).write_bytes(b"another")
    before = tree(tmp_path)
    for access in (ACCESSES["snapshot"], ACCESSES["create"], ACCESSES["migrate"]):
        with pytest.raises(MigrationError, match="differs from the file"):
            access(MemoryRepository(tmp_path))
    after = tree(tmp_path)
    after.pop("users/alice/.memory.lock", None)
    assert after == before


def test_an_equal_backup_of_an_interrupted_migration_is_used(tmp_path: Path) -> None:
    source = put(tmp_path, document(FACT))
    backup_of(source).write_bytes(source.read_bytes())
    assert MemoryRepository(tmp_path).snapshot(ALICE).revision == 1


@pytest.mark.parametrize("call", ["create", "rename", "sync"])
def test_a_backup_that_cannot_be_written_stops_the_migration(tmp_path: Path, call: str) -> None:
    source = put(tmp_path, document(FACT))
    original = source.read_bytes()
    disk = WatchedFileSystem(tmp_path)
    disk.fail(call_of(call), errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        MemoryRepository(disk).snapshot(ALICE)
    assert source.read_bytes() == original
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"fact_a"}


def test_a_fact_that_is_there_with_the_same_meaning_is_left_as_it_is(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    MemoryRepository(tmp_path).snapshot(ALICE)
    kept = fact_path(tmp_path, ALICE, "fact_a").read_bytes()
    source = put(tmp_path, document(FACT, OTHER))
    backup_of(source).unlink()
    report = MemoryRepository(tmp_path).migrate("alice")
    assert report.there_already == 1
    assert report.planned == (("__default__", "fact_b"),)
    assert fact_path(tmp_path, ALICE, "fact_a").read_bytes() == kept


def test_a_fact_that_says_something_else_stops_the_migration(tmp_path: Path) -> None:
    store_with(tmp_path, "fact_a", scope=CODER)
    source = put(tmp_path, agent_document(OTHER, FACT), "coder")
    before = tree(tmp_path)
    with pytest.raises(MigrationError, match=r"facts\[1\] says something else than the fact fact_a"):
        MemoryRepository(tmp_path).snapshot(CODER)
    assert tree(tmp_path) == before
    assert source.exists()
    assert MemoryRepository(tmp_path).snapshot(ALICE).facts == ()


def test_summaries_of_an_agent_fill_empty_ones_of_the_user(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    own = {"user": {**WORK, "topOfMind": {"summary": "Ships."}}}
    put(tmp_path, agent_document(**own), "coder")
    summaries = MemoryRepository(tmp_path).snapshot(CODER).summaries
    assert summaries["user", "topOfMind"].summary == "Ships."
    assert summaries["user", "workContext"].summary == "Builds compilers."


def test_summaries_that_contradict_stop_the_migration_of_that_agent_alone(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    source = put(tmp_path, agent_document(user={"workContext": {"summary": "Paints."}}), "coder")
    store = MemoryRepository(tmp_path)
    assert store.snapshot(ALICE).revision == 1
    before = tree(tmp_path)
    with pytest.raises(MigrationError, match=r"user\.workContext differs"):
        store.snapshot(CODER)
    assert tree(tmp_path) == before
    assert source.exists()


def test_a_fact_that_cannot_be_migrated_is_named_and_everything_stays(tmp_path: Path) -> None:
    source = put(tmp_path, document(FACT, {**OTHER, "content": "  "}))
    before = tree(tmp_path)
    with pytest.raises(MigrationError, match=r"facts\[1\].content"):
        MemoryRepository(tmp_path).snapshot(ALICE)
    after = tree(tmp_path)
    after.pop("users/alice/.memory.lock", None)
    assert after == before
    assert source.exists()


def test_what_cannot_be_migrated_is_kept_verbatim_if_that_is_wanted(tmp_path: Path) -> None:
    put(tmp_path, document(FACT, {**OTHER, "content": "  "}))
    report = MemoryRepository(tmp_path).migrate("alice", on_invalid="quarantine")
    assert report.quarantine is not None
    kept = (tmp_path / report.quarantine).read_text("utf-8")
    assert "compilers" not in kept
    assert "fact_b" in kept
    assert "facts[1]" in kept
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"fact_a"}


def test_a_plan_says_what_would_happen_and_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path, document(FACT, {**OTHER, "content": ""}))
    put(tmp_path, agent_document(FACT), "coder")
    before = tree(tmp_path)
    report = MemoryRepository(tmp_path).plan_migration("alice")
    assert report.needed
    assert not report.migrated
    assert sorted(report.planned) == [("__default__", "fact_a"), ("coder", "fact_a")]
    assert [(value.place, value.field) for value in report.refused] == [("facts[1]", "content")]
    assert tree(tmp_path) == before


def test_a_lead_agent_is_an_agent_like_any_other_until_it_is_adopted(tmp_path: Path) -> None:
    lead = bucket_path(tmp_path) / "agents" / "lead-agent"
    put(tmp_path, agent_document(FACT), "lead-agent")
    store = MemoryRepository(tmp_path)
    assert store.snapshot(ALICE).facts == ()
    assert (lead / "memory.json").exists()
    report = store.migrate("alice", adopt_lead_agent=True)
    assert report.adopted == ("fact_a",)
    fact = store.get_fact(ALICE, "fact_a")
    assert fact is not None
    assert fact.created_at == FACT["createdAt"]
    assert not list(lead.rglob("*.md"))


def test_a_lead_agent_with_a_config_is_never_adopted(tmp_path: Path) -> None:
    put(tmp_path, agent_document(FACT), "lead-agent")
    (bucket_path(tmp_path) / "agents/lead-agent/config.yaml").write_text("name: lead-agent")
    store = MemoryRepository(tmp_path)
    assert store.migrate("alice", adopt_lead_agent=True).adopted == ()
    assert store.snapshot(ALICE).facts == ()


def test_an_adoption_never_overwrites_a_fact(tmp_path: Path) -> None:
    store = store_with(tmp_path, "fact_a")
    put(tmp_path, agent_document(FACT), "lead-agent")
    with pytest.raises(MigrationError, match="fact_a"):
        store.migrate("alice", adopt_lead_agent=True)
    assert store.snapshot(ALICE).by_id[FactId("fact_a")].content == "text of fact_a"


def test_a_later_version_is_refused_and_kept(tmp_path: Path) -> None:
    put(tmp_path, document(FACT, version="3.0"))
    before = tree(tmp_path)
    with pytest.raises(Exception, match=r"3\.0") as refusal:
        MemoryRepository(tmp_path).migrate("alice")
    assert not isinstance(refusal.value, LegacyFormat)
    after = tree(tmp_path)
    after.pop("users/alice/.memory.lock", None)
    assert after == before


def test_preconditions_are_checked_against_the_migrated_facts(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    with pytest.raises(RevisionConflict):
        MemoryRepository(tmp_path).upsert_fact(ALICE, draft("fact_a"))
    put(tmp_path, document(FACT), user_id="bob")
    with pytest.raises(InvalidInputError):
        MemoryRepository(tmp_path).upsert_fact(ALICE, draft("x"), expected=0)


def half_migrated(root: Path) -> Path:
    """Leaves a migration that died right after its commit point; returns its source."""
    source = put(root, document(FACT, revision=3))
    disk = WatchedFileSystem(root)
    disk.die_at(call_of("rename", "fact_a.md"))
    with pytest.raises(Killed):
        MemoryRepository(disk).snapshot(ALICE)
    assert (bucket_path(root) / JOURNAL).exists()
    return source


def test_what_another_program_writes_into_a_migration_is_never_overwritten(tmp_path: Path) -> None:
    source = half_migrated(tmp_path)
    put(tmp_path, document(FACT, OTHER, revision=3))
    edited = source.read_bytes()
    for access in (ACCESSES["snapshot"], ACCESSES["create"], ACCESSES["migrate"]):
        with pytest.raises(Corruption, match="was written by another program"):
            access(MemoryRepository(tmp_path))
    assert source.read_bytes() == edited


def test_the_migration_is_completed_once_that_file_was_moved_away(tmp_path: Path) -> None:
    source = half_migrated(tmp_path)
    put(tmp_path, document(FACT, OTHER, revision=3))
    source.rename(source.with_name("aside.json"))
    store = MemoryRepository(tmp_path)
    assert store.snapshot(ALICE).by_id.keys() == {"fact_a"}
    assert store.snapshot(ALICE).revision == 4


def test_version_1_that_is_written_into_a_change_of_version_2_is_never_overwritten(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    disk = WatchedFileSystem(tmp_path)
    disk.die_at(call_of("rename", "y.md"))
    with pytest.raises(Killed):
        MemoryRepository(disk).upsert_fact(ALICE, draft("y"))
    source = put(tmp_path, document(FACT))
    edited = source.read_bytes()
    with pytest.raises(Corruption, match="was written by another program"):
        MemoryRepository(tmp_path).snapshot(ALICE)
    assert source.read_bytes() == edited


@pytest.mark.parametrize("agent", [None, "coder"])
def test_a_reader_that_may_not_write_is_told_what_is_to_be_done(tmp_path: Path, agent: str | None) -> None:
    store_with(tmp_path, "x")
    source = put(tmp_path, document(FACT), agent)
    disk = WatchedFileSystem(tmp_path)
    disk.fail(call_of("lock_file"), errno.EROFS)
    with pytest.raises(MigrationError, match="is of version 1 and cannot be migrated: Read-only file system"):
        MemoryRepository(disk).snapshot(ALICE if agent is None else CODER)
    assert source.exists()
