"""Importing a document: a replacement, checked as a whole before anything is written."""

from __future__ import annotations

import copy
import json
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deermem import DeerMem, Scope
from tests.manager.managers import contents, fact_of, manager_at, summary
from tests.support.stores import draft, manifest, store_with, tree

FACT = {"id": "a", "content": "imported", "confidence": 0.9}


def test_an_import_replaces_the_facts_of_the_agent(tmp_path: Path) -> None:
    store_with(tmp_path, "x", "y")
    store_with(tmp_path, "z", scope=Scope.of("alice", "coder"))
    document = manager_at(tmp_path).import_memory({"facts": [FACT]}, user_id="alice")
    assert contents(document) == ["imported"]
    assert contents(manager_at(tmp_path).get_memory(user_id="alice", agent_name="coder")) == ["text of z"]


def test_an_import_for_an_agent_leaves_the_default_agent_alone(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    document = manager_at(tmp_path).import_memory({"facts": [FACT]}, user_id="alice", agent_name="Coder")
    assert fact_of(document, "a")["scope"]["agentName"] == "coder"
    assert contents(manager_at(tmp_path).get_memory(user_id="alice")) == ["text of x"]


def test_an_import_replaces_all_summaries_also_those_that_it_does_not_have(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.repository.update_summaries(
        "alice", {"user": {"workContext": "old"}, "history": {"recentMonths": "old"}}
    )
    document = manager.import_memory(
        {"user": {"topOfMind": {"summary": "new", "updatedAt": "2026-01-01T00:00:00Z"}}}, user_id="alice"
    )
    assert summary(document, "user", "workContext") == ""
    assert summary(document, "history", "recentMonths") == ""
    assert document["user"]["topOfMind"] == {"summary": "new", "updatedAt": "2026-01-01T00:00:00Z"}


def test_a_fact_with_a_known_id_keeps_its_creation_time_and_gets_the_next_revision(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.repository.upsert_fact(Scope.of("alice"), draft("a", created_at="2020-01-01T00:00:00Z"))
    incoming = {**FACT, "createdAt": "2024-01-01T00:00:00Z", "revision": 17}
    fact = fact_of(manager.import_memory({"facts": [incoming]}, user_id="alice"), "a")
    assert (fact["createdAt"], fact["revision"]) == ("2020-01-01T00:00:00Z", 2)


def test_a_fact_with_an_unknown_id_brings_its_creation_time_and_starts_at_revision_1(tmp_path: Path) -> None:
    incoming = {**FACT, "createdAt": "2024-01-01T00:00:00Z", "revision": 17}
    fact = fact_of(manager_at(tmp_path).import_memory({"facts": [incoming]}, user_id="alice"), "a")
    assert (fact["createdAt"], fact["revision"]) == ("2024-01-01T00:00:00Z", 1)


def test_a_fact_without_an_id_gets_one(tmp_path: Path) -> None:
    document = manager_at(tmp_path).import_memory({"facts": [{"content": "x"}]}, user_id="alice")
    assert document["facts"][0]["id"].startswith("fact_")


def test_importing_an_export_changes_nothing(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.import_memory(WHOLE, user_id="alice")
    before = tree(tmp_path)
    exported = manager.export_memory(user_id="alice")
    assert manager.import_memory(exported, user_id="alice") == exported
    assert {name: entry for name, entry in tree(tmp_path).items() if not name.endswith(".lock")} == {
        name: entry for name, entry in before.items() if not name.endswith(".lock")
    }


WHOLE: dict[str, Any] = {
    "version": "2.0",
    "revision": 5,
    "lastUpdated": "2026-01-01T00:00:00Z",
    "user": {"workContext": {"summary": "w", "updatedAt": "2026-01-01T00:00:00Z", "mood": ["good"]}},
    "history": {"recentMonths": {"summary": "r", "updatedAt": ""}},
    "facts": [
        {
            "id": "fact_1",
            "title": "A title",
            "content": "two\nlines & <tags>",
            "category": "other",
            "categoryExtension": "recipe",
            "topics": ["a", "b"],
            "confidence": 0.75,
            "createdAt": "2026-01-01T00:00:00Z",
            "source": "thread_1",
            "sourceError": "wrong before",
            "status": "active",
            "schemaVersion": 2,
            "consolidatedFrom": ["x"],
            "consolidatedAt": "2026-01-02T00:00:00Z",
            "lastConfirmedAt": "2026-01-03T00:00:00Z",
            "confirmationCount": 3,
            "expected_valid_days": 30,
            "host-key": {"nested": [1, 2.5, None, True, "x"]},
        }
    ],
}


def test_everything_that_a_fact_says_is_imported(tmp_path: Path) -> None:
    document = manager_at(tmp_path).import_memory(WHOLE, user_id="alice")
    (given_fact,) = WHOLE["facts"]
    fact = fact_of(document, "fact_1")
    assert {key: fact[key] for key in given_fact} == given_fact
    assert document["user"]["workContext"] == WHOLE["user"]["workContext"]


def test_whose_the_memory_is_comes_from_the_call_and_never_from_the_document(tmp_path: Path) -> None:
    foreign = {
        **FACT,
        "scope": {"userId": "bob", "agentName": "coder"},
        "user_id": "bob",
        "agent_name": "coder",
        "userId": "bob",
    }
    document = manager_at(tmp_path).import_memory(
        {"facts": [foreign], "user_id": "bob", "scope": {"userId": "bob"}}, user_id="alice"
    )
    assert fact_of(document, "a")["scope"] == {"userId": "alice", "agentName": "__default__"}
    assert [path.name for path in (tmp_path / "users").iterdir()] == ["alice"]


def test_an_import_beyond_the_cap_keeps_the_best_and_logs_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facts = [{"id": f"f{n:02}", "content": f"c{n}", "confidence": 0.5} for n in range(20)]
    facts[17]["confidence"] = 0.9
    with caplog.at_level(logging.INFO, "deermem.manager"):
        document = manager_at(tmp_path, max_facts=10).import_memory({"facts": facts}, user_id="alice")
    assert [fact["id"] for fact in document["facts"]] == [*(f"f{n:02}" for n in range(9)), "f17"]
    assert "f09, f10" in caplog.text
    assert "more" not in caplog.text


def test_of_many_facts_that_an_import_leaves_out_a_few_are_logged_and_how_many_there_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facts = [{"id": f"f{n:05}", "content": f"c{n}"} for n in range(5_030)]
    with caplog.at_level(logging.INFO, "deermem.manager"):
        manager_at(tmp_path, max_facts=10).import_memory({"facts": facts}, user_id="alice")
    (line,) = [record.getMessage() for record in caplog.records if "evicted" in record.getMessage()]
    assert line.endswith("f00028, f00029 and 5,000 more")
    assert "f00030" not in line


def test_sections_and_facts_that_are_null_are_empty(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    nothing = {"version": None, "user": None, "history": {"recentMonths": None}, "facts": None}
    document = manager_at(tmp_path).import_memory(nothing, user_id="alice")
    assert document["facts"] == []


def deep(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def wide(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value] * 10
    return value


HOSTILE: dict[str, tuple[Any, str]] = {
    "no object": ([FACT], "memory_data"),
    "nothing": (None, "memory_data"),
    "a newer version": ({"version": "3.0"}, "version"),
    "a version that is no text": ({"version": ["2.0"]}, "version"),
    "facts that are no list": ({"facts": {"a": FACT}}, "facts"),
    "facts that are text": ({"facts": "x"}, "facts"),
    "a fact that is no object": ({"facts": [FACT, "x"]}, r"facts\[1\]"),
    "a fact without content": ({"facts": [FACT, {"id": "b"}]}, r"facts\[1\]\.content"),
    "an empty object": ({}, r"memory_data: must have at least one of version, user, history, facts"),
    "what is no document": ({"memory": {"facts": [FACT]}}, "memory_data"),
    "a document of nulls": ({"version": None, "user": None, "history": None, "facts": None}, "memory_data"),
    "empty content": ({"facts": [{"content": " \n"}]}, r"facts\[0\]\.content"),
    "content of another type": ({"facts": [{"content": ["x"]}]}, r"facts\[0\]\.content"),
    "a lone surrogate": ({"facts": [{"content": "\ud800"}]}, r"facts\[0\]\.content"),
    "an id that leads elsewhere": ({"facts": [{**FACT, "id": "../../x"}]}, r"facts\[0\]\.id"),
    "an id of another type": ({"facts": [{**FACT, "id": 5}]}, r"facts\[0\]\.id"),
    "one id twice": ({"facts": [FACT, {"content": "y"}, FACT]}, r"facts\[2\]\.id: is the id of facts\[0\]"),
    "NaN": ({"facts": [{**FACT, "confidence": float("nan")}]}, r"facts\[0\]\.confidence"),
    "infinity": ({"facts": [{**FACT, "confidence": float("inf")}]}, r"facts\[0\]\.confidence"),
    "a huge number": ({"facts": [{**FACT, "confidence": 10**5000}]}, r"facts\[0\]\.confidence"),
    "true for a number": ({"facts": [{**FACT, "confidence": True}]}, r"facts\[0\]\.confidence"),
    "topics that are text": ({"facts": [{**FACT, "topics": "x"}]}, r"facts\[0\]\.topics"),
    "topics that are an object": ({"facts": [{**FACT, "topics": {}}]}, r"facts\[0\]\.topics"),
    "topics of another type": ({"facts": [{**FACT, "topics": [1]}]}, r"facts\[0\]\.topics"),
    "a category of another type": ({"facts": [{**FACT, "category": {}}]}, r"facts\[0\]\.category"),
    "a time that is none": ({"facts": [{**FACT, "createdAt": "now"}]}, r"facts\[0\]\.createdAt"),
    "a status that is not active": ({"facts": [{**FACT, "status": "deleted"}]}, r"facts\[0\]\.status"),
    "a newer schema": ({"facts": [{**FACT, "schemaVersion": 3}]}, r"facts\[0\]\.schemaVersion"),
    "a source of another type": ({"facts": [{**FACT, "source": [1]}]}, r"facts\[0\]\.source"),
    "a source with a thread of another type": (
        {"facts": [{**FACT, "source": {"type": "conversation", "threadId": 5}}]},
        r"facts\[0\]\.source\.threadId",
    ),
    "an unknown key that is too deep": ({"facts": [{**FACT, "k": deep(100_000)}]}, r"facts\[0\]\.k"),
    "an unknown key that is too wide": ({"facts": [{**FACT, "k": wide(30)}]}, r"facts\[0\]\.k"),
    "an unknown key with NaN": ({"facts": [{**FACT, "k": {"x": [float("nan")]}}]}, r"facts\[0\]\.k"),
    "an unknown key with what JSON has not": ({"facts": [{**FACT, "k": b"x"}]}, r"facts\[0\]\.k"),
    "an unknown key with a lone surrogate": ({"facts": [{**FACT, "k": {"\udfff": 1}}]}, r"facts\[0\]\.k"),
    "an unknown key that is none": ({"facts": [{**FACT, 5: "x"}]}, r"facts\[0\]"),
    "a lone surrogate for a key": ({"facts": [{**FACT, "\ud800": "x"}]}, r"facts\[0\]"),
    "an unknown key that is too large": ({"facts": [{**FACT, "k": "x" * 3_000_000}]}, r"facts\[0\]"),
    "a group that is no object": ({"user": ["x"]}, "user"),
    "a section that is no object": ({"history": {"recentMonths": [1]}}, r"history\.recentMonths"),
    "a summary of another type": ({"user": {"topOfMind": {"summary": 5}}}, r"user\.topOfMind\.summary"),
    "a summary that is too long": ({"user": {"topOfMind": "x" * 100_001}}, r"user\.topOfMind\.summary"),
    "a section's time that is none": (
        {"user": {"topOfMind": {"summary": "x", "updatedAt": "x"}}},
        r"user\.topOfMind\.updatedAt",
    ),
    "a section that is too deep": ({"user": {"topOfMind": {"k": deep(100_000)}}}, r"user\.topOfMind"),
    "a section with too much beside": ({"user": {"topOfMind": {"k": "x" * 100_001}}}, r"user\.topOfMind"),
}


@pytest.mark.parametrize(("document", "named"), HOSTILE.values(), ids=HOSTILE)
def test_a_document_that_breaks_a_rule_is_refused_as_a_whole(
    tmp_path: Path, document: Any, named: str
) -> None:
    store_with(tmp_path, "x")
    before = tree(tmp_path)
    with pytest.raises(ValueError, match=named):
        manager_at(tmp_path).import_memory(document, user_id="alice")
    assert tree(tmp_path) == before


def test_a_document_of_100_000_levels_beside_what_is_read_does_no_harm(tmp_path: Path) -> None:
    document = {"facts": [{**FACT, "scope": deep(100_000)}], "unknown": deep(100_000)}
    assert contents(manager_at(tmp_path).import_memory(document, user_id="alice")) == ["imported"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [*WHOLE["facts"][0], "scope", "user_id", "updatedAt", "revision", "x", "", "---", "a: b"]
)
FACTS = st.dictionaries(KEYS, JSON, max_size=6) | st.fixed_dictionaries(
    {"content": st.text(min_size=1)}, optional={"k": JSON, "topics": JSON, "a: b\n---": JSON}
)
DOCUMENTS = st.fixed_dictionaries(
    {}, optional={"version": JSON, "user": JSON, "history": JSON, "facts": st.lists(FACTS, max_size=3)}
)


@settings(max_examples=60)
@given(DOCUMENTS | JSON)
def test_any_document_is_imported_and_readable_or_a_value_error(document: Any) -> None:
    with TemporaryDirectory() as folder:
        manager = manager_at(Path(folder))
        untouched = copy.deepcopy(document)
        try:
            imported = manager.import_memory(document, user_id="alice")
        except ValueError:
            assert list(Path(folder).iterdir()) == []
        else:
            assert len(imported["facts"]) == len(document.get("facts") or [])
            assert DeerMem({"storage_path": folder}).get_memory(user_id="alice") == imported
            json.dumps(imported, allow_nan=False).encode()
        assert repr(document) == repr(untouched)


def test_an_import_is_one_commit(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    assert manager_at(tmp_path).import_memory(WHOLE, user_id="alice")["revision"] == 2
    assert manifest(tmp_path)["revision"] == 2
