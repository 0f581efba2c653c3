"""Usage and eviction hints: side files that are never canonical."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deermem.errors import InvalidInputError
from deermem.integrations.deerflow import side_json
from deermem.model.identity import DEFAULT_AGENT, UserId
from deermem.repository import MemoryRepository
from deermem.storage.side_files import side_files
from tests.integrations.deerflow import double, library
from tests.integrations.deerflow.library import fact

AGENT = "writer"
WHO = {"user_id": "alice", "agent_name": AGENT}
NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)


def place(tmp_path: Path, agent: str = AGENT) -> Path:
    return tmp_path / "users" / "alice" / "agents" / agent / ".metadata"


def create(storage: Any, *fact_ids: str, agent: str = AGENT) -> None:
    changes = {"upserts": [fact(fact_id, fact_id) for fact_id in fact_ids]}
    storage.apply_changes(changes, user_id="alice", agent_name=agent)


def decision(*fact_ids: str, policy: str = "confidence") -> Any:
    eviction = library.module(double.EVICTION)
    evicted = [eviction.EvictedFact(each, "goal", 0.5, {"confidence": 0.5}) for each in fact_ids]
    return eviction.FactEvictionDecision(kept=[], evicted=evicted, scores={}, policy=policy)


def audit(tmp_path: Path) -> Any:
    return json.loads((place(tmp_path) / "eviction-audit.json").read_text("utf-8"))


def test_heat_halves_with_time_and_each_access_adds_one(storage: Any) -> None:
    create(storage, "fact_1", "fact_2")
    storage.record_fact_accesses(["fact_1", "fact_1", "fact_9", ""], **WHO, accessed_at=NOON)
    storage.record_fact_accesses(["fact_1"], **WHO, accessed_at=NOON + timedelta(days=30))
    usage = storage.get_fact_usage(**WHO)
    assert usage == {
        "fact_1": {"accessHeat": 1.5, "accessCount": 2, "lastAccessedAt": "2026-08-31T12:00:00Z"}
    }


def test_nobody_who_looks_for_hints_makes_any(storage: Any, tmp_path: Path) -> None:
    create(storage, "fact_1")
    assert storage.get_fact_usage(**WHO) == {}
    storage.record_fact_accesses([], **WHO)
    storage.record_fact_accesses(["fact_9"], **WHO)
    assert not place(tmp_path).exists()
    storage.clear_fact_metadata(**WHO)
    storage.clear_fact_metadata(**WHO, fact_ids=["fact_1"])
    assert not place(tmp_path).exists()
    storage.record_fact_accesses(["fact_1"], user_id="bob", agent_name=AGENT)
    assert not (tmp_path / "users" / "bob").exists()


@pytest.mark.parametrize("damage", [b"{", b"[]", b"\xff\xfe", b"", b'{"fact_1": 3}', b"[" * 100_000])
def test_a_damaged_side_file_counts_as_empty_and_is_replaced(
    storage: Any, tmp_path: Path, damage: bytes
) -> None:
    create(storage, "fact_1")
    place(tmp_path).mkdir()
    (place(tmp_path) / "fact-usage.json").write_bytes(damage)
    (place(tmp_path) / "eviction-audit.json").write_bytes(damage)
    assert storage.get_fact_usage(**WHO) == {}
    storage.record_fact_accesses(["fact_1"], **WHO)
    storage.record_capacity_eviction(decision("fact_7"), max_facts=10, **WHO)
    assert storage.get_fact_usage(**WHO)["fact_1"]["accessCount"] == 1
    assert [event["evicted"][0]["factId"] for event in audit(tmp_path)] == ["fact_7"]


def test_a_wrong_entry_counts_as_none(storage: Any, tmp_path: Path) -> None:
    create(storage, "fact_1", "fact_2")
    place(tmp_path).mkdir()
    wrong = {"accessHeat": "hot", "accessCount": -1, "lastAccessedAt": "then"}
    (place(tmp_path) / "fact-usage.json").write_text(json.dumps({"fact_1": wrong, "fact_2": []}), "utf-8")
    storage.record_fact_accesses(["fact_1", "fact_2"], **WHO, accessed_at=NOON)
    assert {entry["accessHeat"] for entry in storage.get_fact_usage(**WHO).values()} == {1.0}


@pytest.mark.skipif(os.name == "nt", reason="makes symbolic links")
def test_a_link_in_place_of_a_side_file_is_not_followed(storage: Any, tmp_path: Path) -> None:
    create(storage, "fact_1")
    place(tmp_path).mkdir()
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps({"fact_1": {"accessCount": 41}}), "utf-8")
    (place(tmp_path) / "fact-usage.json").symlink_to(elsewhere)
    assert storage.get_fact_usage(**WHO) == {}
    storage.record_fact_accesses(["fact_1"], **WHO)
    assert json.loads(elsewhere.read_text("utf-8")) == {"fact_1": {"accessCount": 41}}
    assert storage.get_fact_usage(**WHO)["fact_1"]["accessCount"] == 1


def test_the_memory_does_not_notice_a_damaged_side_file(storage: Any, tmp_path: Path) -> None:
    create(storage, "fact_1", "fact_2")
    place(tmp_path).mkdir()
    (place(tmp_path) / "fact-usage.json").mkdir()
    storage.delete_fact("fact_1", **WHO)
    assert storage.clear_all(user_id="alice")["facts"] == []
    assert storage.load(AGENT, user_id="alice")["facts"] == []


def test_hints_go_with_their_facts(storage: Any, tmp_path: Path) -> None:
    create(storage, "fact_1", "fact_2", "fact_3")
    storage.record_fact_accesses(["fact_1", "fact_2", "fact_3"], **WHO)
    storage.record_capacity_eviction(decision("fact_1", "fact_9"), max_facts=10, **WHO)
    storage.delete_fact("fact_1", **WHO)
    assert set(storage.get_fact_usage(**WHO)) == {"fact_2", "fact_3"}
    assert [item["factId"] for item in audit(tmp_path)[0]["evicted"]] == ["fact_9"]
    read = storage.load(AGENT, user_id="alice")
    read["facts"] = [each for each in read["facts"] if each["id"] == "fact_3"]
    assert storage.save(read, AGENT, user_id="alice")
    assert set(storage.get_fact_usage(**WHO)) == {"fact_3"}
    revision = storage.load(AGENT, user_id="alice")["revision"]
    storage.apply_changes({"deletes": ["fact_3"]}, **WHO, expected_manifest_revision=revision)
    assert not place(tmp_path).exists()


def test_a_clear_of_everything_takes_the_hints_of_every_agent(storage: Any, tmp_path: Path) -> None:
    for agent in (AGENT, "__default__"):
        create(storage, "fact_1", agent=agent)
        storage.record_fact_accesses(["fact_1"], user_id="alice", agent_name=agent)
    assert place(tmp_path, "__default__").exists()
    storage.clear_all(user_id="alice")
    assert not place(tmp_path).exists()
    assert not place(tmp_path, "__default__").exists()


def test_usage_of_facts_that_others_deleted_goes_with_the_next_access(storage: Any, tmp_path: Path) -> None:
    create(storage, "fact_1", "fact_2")
    storage.record_fact_accesses(["fact_1", "fact_2"], **WHO)
    with MemoryRepository(tmp_path) as other:
        from deermem.model.identity import Scope

        other.delete_fact(Scope.of("alice", AGENT), "fact_1")
    storage.record_fact_accesses(["fact_2"], **WHO)
    assert set(storage.get_fact_usage(**WHO)) == {"fact_2"}


def test_the_audit_tells_what_was_evicted_and_keeps_the_newest(tmp_path: Path) -> None:
    storage = library.front_door.DeerMemStorage(library.config(tmp_path, eviction_audit_max_entries=2))
    create(storage, "fact_1")
    for number in range(3):
        storage.record_capacity_eviction(
            decision(f"gone_{number}"), max_facts=10 + number, **WHO, occurred_at=NOON
        )
    storage.record_capacity_eviction(decision(), max_facts=99, **WHO)
    assert [event["maxFacts"] for event in audit(tmp_path)] == [11, 12]
    assert audit(tmp_path)[0] == {
        "occurredAt": "2026-08-01T12:00:00Z",
        "reason": "capacity",
        "policyVersion": "confidence",
        "maxFacts": 11,
        "reservedCorrectionSlots": 0,
        "evicted": [
            {"factId": "gone_1", "category": "goal", "score": 0.5, "components": {"confidence": 0.5}}
        ],
    }
    storage.close()


def test_the_audit_compares_with_the_other_policy_anew_when_facts_go(storage: Any, tmp_path: Path) -> None:
    create(storage, "fact_1")
    actual, shadow = decision("gone_1", "gone_2"), decision("gone_1", "gone_3", policy="hybrid-v1")
    storage.record_capacity_eviction(actual, max_facts=10, **WHO, shadow_decision=shadow)
    assert audit(tmp_path)[0]["shadow"] == {
        "policyVersion": "hybrid-v1",
        "wouldEvict": ["gone_1", "gone_3"],
        "disagrees": True,
    }
    storage.clear_fact_metadata(**WHO, fact_ids=["gone_2", "gone_3"])
    assert audit(tmp_path)[0]["shadow"]["disagrees"] is False


def test_an_audit_of_no_entries_is_not_kept(tmp_path: Path) -> None:
    storage = library.front_door.DeerMemStorage(library.config(tmp_path, eviction_audit_max_entries=0))
    create(storage, "fact_1")
    storage.record_capacity_eviction(decision("gone_1"), max_facts=10, **WHO)
    assert not place(tmp_path).exists()
    storage.close()


def test_a_late_hint_brings_no_deleted_agent_back(storage: Any, tmp_path: Path) -> None:
    create(storage, "fact_1")
    storage.record_capacity_eviction(decision("gone_1"), max_facts=10, user_id="alice", agent_name="gone")
    assert not (tmp_path / "users" / "alice" / "agents" / "gone").exists()


def test_hints_are_written_under_the_users_lock(tmp_path: Path) -> None:
    storage = library.front_door.DeerMemStorage(library.config(tmp_path, file_lock_timeout_seconds=1))
    create(storage, "fact_1")
    storage.record_fact_accesses(["fact_1"], **WHO)
    held, done = threading.Event(), threading.Event()
    with MemoryRepository(tmp_path) as other:

        def hold() -> None:
            with other.engine.maintenance(UserId.parse("alice")):
                held.set()
                done.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(30)
        try:
            with pytest.raises(TimeoutError):
                storage.record_fact_accesses(["fact_1"], **WHO)
            with pytest.raises(TimeoutError):
                storage.get_fact_usage(**WHO)
            storage.clear_fact_metadata(**WHO)  # the facts are gone already: a warning is all
        finally:
            done.set()
            thread.join()
    assert storage.get_fact_usage(**WHO)["fact_1"]["accessCount"] == 1
    storage.close()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../up"])
def test_a_side_file_lies_in_its_own_directory(tmp_path: Path, name: str) -> None:
    storage = library.front_door.DeerMemStorage(library.config(tmp_path))
    create(storage, "fact_1", agent="__default__")
    with side_files(storage._repository.engine, UserId.parse("alice"), DEFAULT_AGENT) as files:
        assert files is not None
        with pytest.raises(InvalidInputError):
            files.write(name, b"{}")
    storage.close()


def test_text_that_no_file_can_hold_is_replaced() -> None:
    assert json.loads(side_json.encode({"\ud800": {"accessCount": 1}})) == {"?": {"accessCount": 1}}
