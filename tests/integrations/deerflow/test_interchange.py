"""DeerFlow's own storage and this one on one directory, in turns and at once."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.deerflow import double, library
from tests.integrations.deerflow.library import fact, real_only, storage_module

pytestmark = real_only

AGENT = "writer"
WHO = {"user_id": "alice", "agent_name": AGENT}
ROUNDS = 15
# Without what is of one program alone: order, and how a moment is written.
MEANING = (
    "id",
    "content",
    "title",
    "category",
    "categoryExtension",
    "confidence",
    "source",
    "revision",
    "topics",
)

CONTENTS = {
    "plain": "likes tea",
    "lines": "first line\nsecond line\n\nfourth line",
    "heading": "# looks like a heading\n\nand a text",
    "rule": "before\n---\nafter",
    "front_matter": "---\nid: other\n---\n\n# x\n\ny",
    "yaml": "key: [value, 'no', 0123, 1e3]  # no comment",
    "languages": "用户喜欢茶 · يحب الشاي · 🍵",
    "quotes": "\"quoted\" and 'single' \\ backslash",
}


def theirs(tmp_path: Path) -> Any:
    return storage_module.FileMemoryStorage(library.config(tmp_path))


def ours(tmp_path: Path) -> Any:
    return library.front_door.DeerMemStorage(library.config(tmp_path))


def facts(storage: Any, **who: Any) -> dict[str, dict[str, Any]]:
    read = storage.reload(AGENT, **(who or {"user_id": "alice"}))["facts"]
    return {each["id"]: {key: each.get(key) for key in MEANING} for each in read}


@pytest.mark.parametrize("writer", [theirs, ours], ids=["by DeerFlow", "by DeerMem"])
def test_what_one_writes_both_read_alike(tmp_path: Path, writer: Any) -> None:
    storage = writer(tmp_path)
    made = [
        fact(f"fact_{name}", content, category="project" if name == "yaml" else "goal", topics=["1e3", "no"])
        for name, content in CONTENTS.items()
    ]
    made.append(fact("fact_manual", source="manual", expected_valid_days=30, sourceError="was wrong"))
    storage.apply_changes(
        {"upserts": made, "summaries": {"user": {"workContext": {"summary": "bäckt\nBrot"}}}}, **WHO
    )
    assert facts(ours(tmp_path)) == facts(theirs(tmp_path))
    assert {key: each["content"] for key, each in facts(ours(tmp_path)).items() if key != "fact_manual"} == {
        f"fact_{name}": content for name, content in CONTENTS.items()
    }
    for reader in (ours(tmp_path), theirs(tmp_path)):
        read = reader.load(AGENT, user_id="alice")
        assert (read["version"], read["revision"]) == ("2.0", 1)
        assert read["user"]["workContext"]["summary"] == "bäckt\nBrot"


def test_a_first_line_with_tabs_goes_over_and_back(tmp_path: Path) -> None:
    """DeerFlow repeats it as the heading, which is no title here: a title has no control characters."""
    content = "a\tb\tc\nand more"
    theirs(tmp_path).upsert_fact(fact("fact_1", content), **WHO)
    read = ours(tmp_path).get_fact("fact_1", **WHO)
    assert (read["content"], read["title"]) == (content, "a b c")
    ours(tmp_path).upsert_fact({**read, "confidence": 0.9}, **WHO, expected_fact_revision=1)
    assert theirs(tmp_path).get_fact("fact_1", **WHO)["content"] == content


@pytest.mark.parametrize("user", ["alice", "a@b.c", None])
def test_in_turns_each_goes_on_from_what_the_other_wrote(tmp_path: Path, user: str | None) -> None:
    first, second = theirs(tmp_path), ours(tmp_path)
    who = {"user_id": user, "agent_name": "__default__"}
    for turn in range(6):
        writer, reader = (first, second) if turn % 2 == 0 else (second, first)
        before = writer.load("__default__", user_id=user)
        assert before["revision"] == 2 * turn
        writer.apply_changes(
            {"upserts": [fact(f"fact_{turn}", "new")], "upsertRevisions": {f"fact_{turn}": None}},
            **who,
            expected_manifest_revision=2 * turn,
        )
        (made,) = [
            each for each in reader.load("__default__", user_id=user)["facts"] if each["content"] == "new"
        ]
        reader.apply_changes(
            {"upserts": [{**made, "content": f"changed in turn {turn}"}]},
            **who,
            expected_manifest_revision=2 * turn + 1,
        )
    read = [storage.load("__default__", user_id=user) for storage in (first, second)]
    assert [[each["content"] for each in one["facts"]] for one in read] == [
        [f"changed in turn {turn}" for turn in range(6)]
    ] * 2
    assert {each["revision"] for each in read[0]["facts"]} == {2}


def test_each_sees_the_others_conflicts(tmp_path: Path) -> None:
    first, second = theirs(tmp_path), ours(tmp_path)
    first.upsert_fact(fact("fact_1"), **WHO)
    stale = first.get_fact("fact_1", **WHO)
    second.upsert_fact({**stale, "content": "changed"}, **WHO, expected_fact_revision=1)
    with pytest.raises(storage_module.MemoryFactRevisionConflict):
        first.upsert_fact({**stale, "content": "late"}, **WHO, expected_fact_revision=1)
    with pytest.raises(storage_module.MemoryManifestRevisionConflict):
        first.save({"facts": []}, AGENT, user_id="alice", expected_revision=1)


@pytest.mark.parametrize("writer", [theirs, ours], ids=["by DeerFlow", "by DeerMem"])
def test_side_files_of_one_are_read_and_continued_by_the_other(tmp_path: Path, writer: Any) -> None:
    eviction = library.module(double.EVICTION)
    evicted = [eviction.EvictedFact(each, "goal", 0.5, {"confidence": 0.5}) for each in ("gone_1", "gone_2")]
    decision = eviction.FactEvictionDecision([], evicted, {}, "confidence", 1)
    one = writer(tmp_path)
    other = (ours if writer is theirs else theirs)(tmp_path)
    one.apply_changes({"upserts": [fact("fact_1"), fact("fact_2")]}, **WHO)
    one.record_fact_accesses(["fact_1"], **WHO)
    one.record_capacity_eviction(decision, max_facts=10, **WHO, shadow_decision=decision)
    assert one.get_fact_usage(**WHO) == other.get_fact_usage(**WHO)
    other.record_fact_accesses(["fact_1", "fact_2"], **WHO)
    other.record_capacity_eviction(decision, max_facts=11, **WHO)
    usage = one.get_fact_usage(**WHO)
    assert [usage[each]["accessCount"] for each in ("fact_1", "fact_2")] == [2, 1]
    place = tmp_path / "users" / "alice" / "agents" / AGENT / ".metadata"
    events = json.loads((place / "eviction-audit.json").read_text("utf-8"))
    same = [
        {key: each for key, each in event.items() if key not in ("occurredAt", "maxFacts", "shadow")}
        for event in events
    ]
    assert same[0] == same[1]
    one.clear_fact_metadata(**WHO, fact_ids=["gone_1", "fact_1"])
    assert set(other.get_fact_usage(**WHO)) == {"fact_2"}
    other.clear_all(user_id="alice")
    assert not place.exists()


def write_facts(root: str, kind: str, name: str) -> None:
    storage = (theirs if kind == "theirs" else ours)(Path(root))
    for number in range(ROUNDS):
        storage.upsert_fact(fact(f"fact_{name}_{number}"), **WHO)


def test_two_processes_of_each_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=write_facts, args=(str(tmp_path), kind, f"{kind}{number}"))
        for kind in ("theirs", "ours")
        for number in range(2)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    expected = {
        f"fact_{kind}{n}_{each}" for kind in ("theirs", "ours") for n in range(2) for each in range(ROUNDS)
    }
    for reader in (ours(tmp_path), theirs(tmp_path)):
        read = reader.load(AGENT, user_id="alice")
        assert {each["id"] for each in read["facts"]} == expected
        assert read["revision"] == 4 * ROUNDS


def test_version_1_that_one_migrated_the_other_reads(tmp_path: Path) -> None:
    for user in ("alice", "bob"):
        bucket = tmp_path / "users" / user
        bucket.mkdir(parents=True)
        old = {
            "version": "1.0",
            "lastUpdated": "2026-01-01T00:00:00Z",
            "user": {"workContext": {"summary": "bakes", "updatedAt": "2026-01-01T00:00:00Z"}},
            "history": {},
            "facts": [fact("fact_1"), fact("fact_2", "likes coffee", source="manual")],
        }
        (bucket / "memory.json").write_text(json.dumps(old), "utf-8")
    read = [
        storage.load("__default__", user_id=user)
        for storage, user in ((theirs(tmp_path), "alice"), (ours(tmp_path), "bob"))
    ]
    again = [
        storage.load("__default__", user_id=user)
        for storage, user in ((ours(tmp_path), "alice"), (theirs(tmp_path), "bob"))
    ]
    for document in (*read, *again):
        assert [each["content"] for each in document["facts"]] == ["likes tea", "likes coffee"]
        assert document["user"]["workContext"]["summary"] == "bakes"
