"""What reads return, and that they write nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deermem import FactDraft, InvalidInputError, MemoryRepository, Scope
from tests.manager.managers import contents, fact_of, manager_at
from tests.support.stores import edit, fact_path, tree

SECTION = {"summary": "", "updatedAt": ""}


def test_an_unknown_user_reads_as_revision_0_with_empty_sections_and_no_facts(tmp_path: Path) -> None:
    assert manager_at(tmp_path).get_memory(user_id="alice") == {
        "version": "2.0",
        "revision": 0,
        "lastUpdated": "",
        "user": dict.fromkeys(("workContext", "personalContext", "topOfMind"), SECTION),
        "history": dict.fromkeys(("recentMonths", "earlierContext", "longTermBackground"), SECTION),
        "facts": [],
    }


def test_reads_write_nothing(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.create_fact("x", user_id="alice")
    before = tree(tmp_path)
    for user_id in ("alice", "bob"):
        manager.get_memory(user_id=user_id)
        manager.get_memory(user_id=user_id, agent_name="coder")
        manager.export_memory(user_id=user_id)
        manager.reload_memory(user_id=user_id)
        manager.search("x", user_id=user_id)
        manager.get_context(user_id)
    manager.warm()
    assert tree(tmp_path) == before


def test_a_storage_root_that_is_not_there_is_not_made_by_reads(tmp_path: Path) -> None:
    manager = manager_at(tmp_path / "new")
    assert manager.warm() is True
    assert manager.get_memory(user_id="alice")["facts"] == []
    assert not (tmp_path / "new").exists()


def test_a_document_is_made_anew_for_each_caller(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.create_fact("x", user_id="alice")
    first = manager.get_memory(user_id="alice")
    first["facts"][0]["topics"].append("spoiled")
    first["facts"][0]["scope"]["userId"] = "spoiled"
    first["user"]["workContext"]["summary"] = "spoiled"
    assert "spoiled" not in json.dumps(manager.get_memory(user_id="alice"))


def test_an_omitted_agent_is_the_default_agent(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    document, fact_id = manager.create_fact("x", user_id="alice")
    assert fact_of(document, fact_id)["scope"] == {"userId": "alice", "agentName": "__default__"}
    assert fact_path(tmp_path, Scope.of("alice"), str(fact_id)).is_file()


def test_an_agent_name_is_the_same_in_any_case(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    document, fact_id = manager.create_fact("x", user_id="alice", agent_name="Research-Agent")
    assert fact_of(document, fact_id)["scope"]["agentName"] == "research-agent"
    assert contents(manager.get_memory(user_id="alice", agent_name="RESEARCH-AGENT")) == ["x"]
    assert contents(manager.get_memory(user_id="alice")) == []


@pytest.mark.parametrize("agent_name", ["__default__", "", "a/b", "..", "a\n", "x" * 65])
def test_an_agent_name_that_is_none_is_refused(tmp_path: Path, agent_name: str) -> None:
    with pytest.raises(InvalidInputError, match="agent_name"):
        manager_at(tmp_path).get_memory(user_id="alice", agent_name=agent_name)


def test_agents_and_users_do_not_see_each_other(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    for user_id, agent_name in (("alice", None), ("alice", "coder"), ("bob", None), (None, None)):
        manager.create_fact(f"of {user_id} {agent_name}", user_id=user_id, agent_name=agent_name)
    assert contents(manager.get_memory(user_id="alice")) == ["of alice None"]
    assert contents(manager.get_memory(user_id="alice", agent_name="coder")) == ["of alice coder"]
    assert contents(manager.get_memory(user_id="bob")) == ["of bob None"]
    assert contents(manager.get_memory()) == ["of None None"]


def test_no_user_is_refused_where_a_user_is_required(tmp_path: Path) -> None:
    manager = manager_at(tmp_path, strict_user_scope=True)
    with pytest.raises(ValueError, match="user_id"):
        manager.get_memory()
    with pytest.raises(ValueError, match="user_id"):
        manager.create_fact("x")


@pytest.mark.parametrize(
    ("source", "shown"), [("thread_123", "thread_123"), ("manual", "manual"), (None, "unknown")]
)
def test_the_source_of_a_fact_is_a_string(tmp_path: Path, source: str | None, shown: str) -> None:
    draft = FactDraft("x", source=source)  # type: ignore[arg-type]  # the historical string is accepted
    MemoryRepository(tmp_path).upsert_fact(Scope.of("alice"), draft)
    (fact,) = manager_at(tmp_path).get_memory(user_id="alice")["facts"]
    assert fact["source"] == shown


def test_an_edit_by_hand_is_seen_after_reload(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    _, fact_id = manager.create_fact("The old text.", user_id="alice")
    manager.get_memory(user_id="alice")
    edit(fact_path(tmp_path, Scope.of("alice"), str(fact_id)), "\n\nThe old text.\n", "\n\nThe new text.\n")
    assert contents(manager.get_memory(user_id="alice")) == ["The old text."]
    assert contents(manager.reload_memory(user_id="alice")) == ["The new text."]


def test_the_export_of_a_memory_is_its_document(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.create_fact("x", user_id="alice", agent_name="coder")
    exported = manager.export_memory(user_id="alice", agent_name="coder")
    assert exported == manager.get_memory(user_id="alice", agent_name="coder")
    assert contents(exported) == ["x"]


def test_a_search_returns_documents_with_the_best_confidence_first(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    for number, confidence in enumerate((0.2, 0.9, 0.5)):
        manager.create_fact(f"Python {number}", "goal", confidence, user_id="alice")
    manager.create_fact("Rust", user_id="alice")
    found = manager.search("pYTHON", 2, user_id="alice")
    assert [fact["content"] for fact in found] == ["Python 1", "Python 2"]
    assert found[0] == fact_of(manager.get_memory(user_id="alice"), found[0]["id"])


def test_a_search_applies_the_category_before_the_limit(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.create_fact("Python a", "goal", 0.9, user_id="alice")
    manager.create_fact("Python b", "decision", 0.1, user_id="alice")
    found = manager.search("python", 1, user_id="alice", category="decision")
    assert [fact["content"] for fact in found] == ["Python b"]


def test_a_search_looks_at_one_agent_of_one_user(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.create_fact("Python here", user_id="alice", agent_name="coder")
    assert manager.search("python", user_id="alice") == []
    assert manager.search("python", user_id="bob", agent_name="coder") == []
    assert len(manager.search("python", user_id="alice", agent_name="Coder")) == 1


@pytest.mark.parametrize(("query", "top_k"), [("", 5), ("  \n", 5), ("x", 0), ("x", -1)])
def test_a_search_for_nothing_finds_nothing(tmp_path: Path, query: str, top_k: int) -> None:
    manager = manager_at(tmp_path)
    manager.create_fact("x", user_id="alice")
    assert manager.search(query, top_k, user_id="alice") == []


@pytest.mark.parametrize(
    ("query", "top_k", "field"), [(5, 5, "query"), ("x", "5", "top_k"), ("x", 5_000, "top_k")]
)
def test_a_bad_search_names_what_is_wrong(tmp_path: Path, query: str, top_k: int, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        manager_at(tmp_path).search(query, top_k, user_id="alice")
