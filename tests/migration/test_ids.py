"""Who migrates by directory names leaves what the application reads under the raw id (contract section 1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem, MemoryRepository, Scope
from deermem.migration import Status
from deermem.model.identity import FactId, safe_user_id
from tests.migration.runs import fact_files, facts, migrate_all
from tests.migration.v1 import FACT, OTHER, agent_document, document, put
from tests.support.stores import draft

RAW_IDS = (
    "alice@example.com",
    "王小明",
    "a b",
    "x" * 200 + "",
    "alice",
    "alice-example-com-0123456789abcdef",
)
LOOSE: dict[str, Any] = {"id": "note:7", "content": "Has an id with a colon."}


@pytest.fixture(params=RAW_IDS)
def user_id(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A raw id whose store of version 1 was migrated by the name of its directory."""
    user: str = request.param
    put(tmp_path, document(FACT, OTHER, LOOSE), user_id=user)
    put(tmp_path, agent_document({**FACT, "id": "fact_c"}), "coder", user_id=user)
    (outcome,) = migrate_all(tmp_path)
    assert (outcome.user.raw, outcome.status) == (safe_user_id(user), Status.MIGRATED)
    return user


def test_the_repository_reads_and_writes_it_under_the_raw_id(tmp_path: Path, user_id: str) -> None:
    store, scope = MemoryRepository(tmp_path), Scope.of(user_id)
    assert len(store.snapshot(scope).facts) == 3
    assert store.get_fact(Scope.of(user_id, "coder"), "fact_c") is not None
    store.upsert_fact(scope, draft("new"))
    store.edit_fact(scope, "fact_a", {"content": "Likes coffee."})
    store.delete_fact(scope, "fact_b")
    again = MemoryRepository(tmp_path).snapshot(scope)
    assert {"fact_a", "new"} < {fact.id for fact in again.facts}
    assert again.by_id[FactId("fact_a")].content == "Likes coffee."
    assert MemoryRepository(tmp_path).search_facts("colon", [scope])


def test_the_manager_reads_and_writes_it_under_the_raw_id(tmp_path: Path, user_id: str) -> None:
    manager = DeerMem({"storage_path": str(tmp_path)})
    document = manager.get_memory(user_id=user_id)
    assert [fact["content"] for fact in document["facts"] if fact["id"] == "fact_a"] == ["Likes tea."]
    assert {fact["scope"]["userId"] for fact in document["facts"]} <= {user_id, safe_user_id(user_id)}
    _, created = manager.create_fact("Sails.", user_id=user_id)
    manager.update_fact("fact_a", "Likes coffee.", user_id=user_id)
    manager.delete_fact("fact_b", user_id=user_id)
    after = DeerMem({"storage_path": str(tmp_path)}).get_memory(user_id=user_id)
    assert sorted(fact["content"] for fact in after["facts"]) == [
        "Has an id with a colon.",
        "Likes coffee.",
        "Sails.",
    ]
    assert created in {fact["id"] for fact in after["facts"]}
    assert fact_files(tmp_path, user_id).count(str(created)) == 1


def test_a_run_by_raw_id_and_one_by_directory_name_write_the_same_facts(tmp_path: Path) -> None:
    found = []
    for root, name in ((tmp_path / "raw", "a@b.c"), (tmp_path / "name", safe_user_id("a@b.c"))):
        put(root, document(*facts(3), LOOSE), user_id="a@b.c")
        MemoryRepository(root).migrate(name)
        found.append(fact_files(root, "a@b.c"))
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_a_user_that_the_application_migrated_is_current_for_a_run_over_all(tmp_path: Path) -> None:
    put(tmp_path, document(FACT), user_id="alice@example.com")
    DeerMem({"storage_path": str(tmp_path)}).get_memory(user_id="alice@example.com")
    (outcome,) = migrate_all(tmp_path)
    assert outcome.status is Status.CURRENT
