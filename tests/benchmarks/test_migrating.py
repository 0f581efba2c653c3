"""What is migrated for P10 becomes exactly the files that its floor writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.floors import DurableFiles
from benchmarks.rows.at_the_cap import FullScope
from benchmarks.rows.documents import copies
from benchmarks.rows.migrating import migrate, resident_while_migrating
from benchmarks.samples_v1 import build_version_1, files_of, scope_of
from deermem import MemoryRepository
from deermem.format.fact_markdown import decode_fact
from deermem.model.identity import FactId
from tests.support.stores import files

USERS = range(3, 5)
FACTS = 4


def test_a_migrated_store_has_the_facts_that_the_floor_writes(tmp_path: Path) -> None:
    build_version_1(tmp_path, USERS, FACTS)
    migrate(tmp_path, 1)
    with MemoryRepository(tmp_path) as repository:
        for user in USERS:
            scope = scope_of(user)
            facts = repository.snapshot(scope).facts
            wanted = [
                decode_fact(data, path="", scope=scope, fact_id=FactId(path.stem))
                for path, data in files_of(user, FACTS).items()
                if path.suffix == ".md"
            ]
            assert len(facts) == FACTS
            for fact, floor in zip(facts, sorted(wanted, key=lambda each: each.id), strict=True):
                assert fact.same_meaning(floor)


def test_the_floor_of_the_migration_writes_each_file_once(tmp_path: Path) -> None:
    wanted = {path.as_posix(): data for user in USERS for path, data in files_of(user, FACTS).items()}
    DurableFiles(tmp_path, [files_of(user, FACTS) for user in USERS])()
    assert files(tmp_path) == wanted.keys()
    assert all((tmp_path / path).read_bytes() == data for path, data in wanted.items())


def test_a_migration_that_leaves_a_user_out_is_no_figure(tmp_path: Path) -> None:
    build_version_1(tmp_path, USERS, FACTS)
    next(tmp_path.rglob("memory.json")).write_text("{")
    with pytest.raises(AssertionError, match="was not migrated"):
        migrate(tmp_path, 1)


def test_the_memory_of_a_migration_is_looked_at_twice(tmp_path: Path) -> None:
    early, late = resident_while_migrating(tmp_path, 8, 1)
    assert min(early, late) > 0
    with MemoryRepository(tmp_path) as repository:
        assert len(repository.list_users()) == 8


def test_each_create_at_the_cap_writes_a_fact_and_evicts_one(tmp_path: Path) -> None:
    full = FullScope(tmp_path, 10)
    for _ in range(12):
        full.create()
    document = full.manager.get_memory(user_id="alice", agent_name="assistant")
    full.manager.close()
    assert len(document["facts"]) == 10
    assert {fact["revision"] for fact in document["facts"]} == {1}
    assert all(fact["confidence"] > 0.99 for fact in document["facts"])


def test_a_copied_document_shares_no_container_with_the_first() -> None:
    fact = {"id": "x", "topics": ["a"], "scope": {"agentName": "b"}, "consolidatedFrom": []}
    copy = copies([fact])[0]
    assert copy == fact
    assert all(copy[key] is not fact[key] for key in ("topics", "scope", "consolidatedFrom"))
