"""Whole documents: load, reload, save, summaries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.deerflow import library
from tests.integrations.deerflow.library import fact, storage_module

AGENT = "writer"


def document(*facts: dict[str, Any], work: str = "") -> dict[str, Any]:
    return {"user": {"workContext": {"summary": work, "updatedAt": ""}}, "history": {}, "facts": list(facts)}


def manifest(tmp_path: Path, user: str = "alice") -> Path:
    return tmp_path / "users" / user / "memory.json"


def test_an_unknown_user_reads_as_an_empty_document_and_nothing_is_written(
    storage: Any, tmp_path: Path
) -> None:
    read = storage.load(AGENT, user_id="alice")
    assert (read["version"], read["revision"], read["facts"]) == ("2.0", 0, [])
    assert read["user"]["workContext"] == {"summary": "", "updatedAt": ""}
    assert list(tmp_path.iterdir()) == []


def test_without_an_agent_the_document_has_the_summaries_and_no_facts(storage: Any) -> None:
    assert storage.save(document(fact("fact_1")), AGENT, user_id="alice")
    assert storage.save(document(work="bakes"), user_id="alice")
    read = storage.load(user_id="alice")
    assert read["user"]["workContext"]["summary"] == "bakes"
    assert read["facts"] == []
    assert [each["id"] for each in storage.load(AGENT, user_id="alice")["facts"]] == ["fact_1"]


def test_a_fact_is_handed_out_as_deerflow_knows_it(storage: Any) -> None:
    assert storage.save(document(fact("fact_1", mood="good")), "Writer", user_id="alice")
    (read,) = storage.load(AGENT, user_id="alice")["facts"]
    assert read["source"] == {"type": "conversation", "threadId": "thread-1"}
    assert read["scope"] == {"userId": "alice", "agentName": AGENT}
    assert (read["revision"], read["status"], read["schemaVersion"], read["mood"]) == (1, "active", 2, "good")


def test_deerflows_name_of_the_default_agent_means_the_default_agent(storage: Any, tmp_path: Path) -> None:
    assert storage.save(document(fact("fact_1")), "__default__", user_id="alice")
    assert list(manifest(tmp_path).parent.glob("agents/__default__/facts/*/fact_1.md"))
    with pytest.raises(ValueError, match="agent_name"):
        storage.load("__other__", user_id="alice")


def test_what_a_caller_does_to_a_document_changes_no_later_one(storage: Any) -> None:
    assert storage.save(document(fact("fact_1", topics=["a"])), AGENT, user_id="alice")
    first = storage.load(AGENT, user_id="alice")
    first["facts"][0]["topics"].append("b")
    first["user"]["workContext"]["summary"] = "changed"
    again = storage.load(AGENT, user_id="alice")
    assert (again["facts"][0]["topics"], again["user"]["workContext"]["summary"]) == (["a"], "")


def test_a_save_deletes_what_the_document_leaves_out(storage: Any) -> None:
    assert storage.save(document(fact("fact_1"), fact("fact_2")), AGENT, user_id="alice")
    read = storage.load(AGENT, user_id="alice")
    read["facts"] = read["facts"][1:]
    assert storage.save(read, AGENT, user_id="alice", expected_revision=1)
    assert [each["id"] for each in storage.load(AGENT, user_id="alice")["facts"]] == ["fact_2"]


def test_a_save_for_an_agent_leaves_the_summaries_alone(storage: Any) -> None:
    assert storage.save(document(work="bakes"), user_id="alice")
    assert storage.save(document(fact("fact_1"), work="sails"), AGENT, user_id="alice")
    assert storage.load(user_id="alice")["user"]["workContext"]["summary"] == "bakes"


@pytest.mark.parametrize(
    "bad",
    [
        "no object",
        {"user": {}},
        {"facts": "fact_1"},
        {"facts": [1]},
        {"facts": [fact("a/b")]},
        {"facts": [fact("fact_2", " ")]},
        {"facts": [fact("fact_2"), fact("fact_2")]},
        {"facts": [fact("fact_2", confidence=2)]},
    ],
    ids=repr,
)
def test_a_bad_document_is_not_saved_and_changes_nothing(storage: Any, bad: Any) -> None:
    assert storage.save(document(fact("fact_1")), AGENT, user_id="alice")
    before = storage.load(AGENT, user_id="alice")
    assert storage.save(bad, AGENT, user_id="alice") is False
    assert storage.reload(AGENT, user_id="alice") == before


def test_facts_without_an_agent_are_not_saved(storage: Any) -> None:
    assert storage.save(document(fact("fact_1")), user_id="alice") is False


def test_a_save_at_another_revision_is_a_conflict_of_the_manifest(storage: Any) -> None:
    assert storage.save(document(fact("fact_1")), AGENT, user_id="alice")
    with pytest.raises(storage_module.MemoryManifestRevisionConflict):
        storage.save(document(), AGENT, user_id="alice", expected_revision=0)
    assert len(storage.load(AGENT, user_id="alice")["facts"]) == 1


def test_a_save_over_a_newer_fact_is_a_conflict_of_the_fact(storage: Any) -> None:
    assert storage.save(document(fact("fact_1")), AGENT, user_id="alice")
    stale = storage.load(AGENT, user_id="alice")
    assert storage.save(document(fact("fact_1", "likes coffee", revision=1)), AGENT, user_id="alice")
    stale["facts"][0]["content"] = "likes milk"
    with pytest.raises(storage_module.MemoryFactRevisionConflict):
        storage.save(stale, AGENT, user_id="alice")


def test_corruption_is_deerflows_error_on_a_read_and_false_on_a_save(storage: Any, tmp_path: Path) -> None:
    assert storage.save(document(fact("fact_1")), AGENT, user_id="alice")
    manifest(tmp_path).write_text("{", "utf-8")
    with pytest.raises(storage_module.MemoryStorageCorruption):
        storage.reload(AGENT, user_id="alice")
    assert storage.save(document(fact("fact_2")), AGENT, user_id="alice") is False
    assert manifest(tmp_path).read_text("utf-8") == "{"


def test_a_disk_that_refuses_is_false_on_a_save(storage: Any, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("a file where a directory belongs", "utf-8")
    assert storage.save(document(fact("fact_1")), AGENT, user_id="alice") is False


def test_a_reload_sees_what_was_edited_by_hand(storage: Any, tmp_path: Path) -> None:
    assert storage.save(document(fact("fact_1")), AGENT, user_id="alice")
    assert storage.load(AGENT, user_id="alice")["facts"][0]["content"] == "likes tea"
    (file,) = tmp_path.rglob("fact_1.md")
    file.write_text(file.read_text("utf-8").replace("likes tea", "likes cocoa"), "utf-8")
    assert storage.reload(AGENT, user_id="alice")["facts"][0]["content"] == "likes cocoa"


def test_a_patch_of_the_summaries_leaves_the_others(storage: Any) -> None:
    storage.update_summaries({"user": {"workContext": {"summary": "bakes"}}}, user_id="alice")
    after = storage.update_summaries(
        {"history": {"recentMonths": {"summary": "moved", "updatedAt": "2026-08-01T00:00:00Z"}}},
        user_id="alice",
        expected_revision=1,
    )
    assert (after["user"]["workContext"]["summary"], after["revision"], after["facts"]) == ("bakes", 2, [])
    summaries = storage.get_summaries(user_id="alice", agent_name=AGENT)
    assert summaries["history"]["recentMonths"]["updatedAt"].startswith("2026-08-01T00:00:00")
    with pytest.raises(storage_module.MemoryManifestRevisionConflict):
        storage.update_summaries({"user": {}}, user_id="alice", expected_revision=1)


def test_sections_that_only_the_file_knows_do_not_stop_a_change_of_the_others(
    storage: Any, tmp_path: Path
) -> None:
    storage.update_summaries({"user": {"workContext": {"summary": "bakes"}}}, user_id="alice")
    stored = json.loads(manifest(tmp_path).read_text("utf-8"))
    stored["user"]["hobbies"] = {"summary": "chess", "updatedAt": ""}
    manifest(tmp_path).write_text(json.dumps(stored), "utf-8")
    given = storage.reload(user_id="alice")
    given["user"]["workContext"]["summary"] = "sails"
    given["user"]["unheard"] = {"summary": "of"}
    storage.apply_changes(
        {"summaries": {"user": given["user"], "history": given["history"]}}, user_id="alice"
    )
    user = json.loads(manifest(tmp_path).read_text("utf-8"))["user"]
    assert (user["workContext"]["summary"], user["hobbies"]["summary"]) == ("sails", "chess")
    assert "unheard" not in user


def test_a_time_stamp_that_is_none_becomes_the_time_of_the_commit(storage: Any) -> None:
    after = storage.update_summaries(
        {"user": {"workContext": {"summary": "bakes", "updatedAt": "yesterday"}}}, user_id="alice"
    )
    assert after["user"]["workContext"]["updatedAt"] == after["lastUpdated"]


def test_clear_all_leaves_no_fact_of_any_agent_and_no_summary(storage: Any) -> None:
    storage.update_summaries({"user": {"workContext": {"summary": "bakes"}}}, user_id="alice")
    for agent in (AGENT, "__default__"):
        assert storage.save(document(fact("fact_1")), agent, user_id="alice")
    cleared = storage.clear_all(user_id="alice")
    assert (cleared["facts"], cleared["user"]["workContext"]["summary"]) == ([], "")
    assert cleared["revision"] == 4
    assert storage.load(AGENT, user_id="alice")["facts"] == []


def test_version_1_is_migrated_by_a_read_and_by_migrate(storage: Any, tmp_path: Path) -> None:
    for user in ("alice", "bob"):
        manifest(tmp_path, user).parent.mkdir(parents=True)
        old = {"version": "1.0", "lastUpdated": "2026-01-01T00:00:00Z", "facts": [fact("fact_1")]}
        manifest(tmp_path, user).write_text(json.dumps(old), "utf-8")
    assert storage.load("__default__", user_id="alice")["facts"][0]["id"] == "fact_1"
    done = storage.migrate(user_id="bob", agent_name="__default__")
    assert (done["migrated"], done["fromVersion"], done["toVersion"]) == (True, "1.0", "2.0")
    again = storage.migrate(user_id="bob", agent_name="__default__")
    assert again == {
        "migrated": False,
        "fromVersion": "2.0",
        "toVersion": "2.0",
        "revision": done["revision"],
    }


@pytest.fixture
def rooted(tmp_path: Path) -> Iterator[Any]:
    made = library.front_door.DeerMemStorage(
        library.config(tmp_path, manifest_filename="summary.json", strict_user_scope=False)
    )
    yield made
    made.close()


def test_without_a_user_the_memory_lies_at_the_root(rooted: Any, tmp_path: Path) -> None:
    assert rooted.save(document(fact("fact_1")), AGENT)
    assert (tmp_path / "summary.json").is_file()
    assert rooted.load(AGENT)["facts"][0]["scope"] == {"userId": None, "agentName": AGENT}


def test_a_strict_storage_wants_a_user(tmp_path: Path) -> None:
    strict = library.front_door.DeerMemStorage(library.config(tmp_path, strict_user_scope=True))
    for call in (strict.load, strict.reload, strict.clear_all):
        with pytest.raises(ValueError, match="user_id"):
            call()
    assert strict.save(document(), AGENT) is False
    strict.close()


def test_users_are_not_mixed_and_an_encoded_id_is_the_same_user(storage: Any, tmp_path: Path) -> None:
    assert storage.save(document(fact("fact_1")), AGENT, user_id="a@b.c")
    assert storage.load(AGENT, user_id="a-b-c")["facts"] == []
    (bucket,) = (tmp_path / "users").iterdir()
    (read,) = storage.load(AGENT, user_id=bucket.name)["facts"]
    assert read["scope"]["userId"] == bucket.name
    read["content"] = "likes coffee"
    storage.apply_changes({"upserts": [read]}, user_id=bucket.name, agent_name=AGENT)
    (read,) = storage.load(AGENT, user_id="a@b.c")["facts"]
    assert (read["content"], read["revision"], read["scope"]["userId"]) == ("likes coffee", 2, "a@b.c")
