"""Clearing a user's memory, or an agent's facts."""

from __future__ import annotations

from pathlib import Path

from deermem import Scope
from tests.manager.managers import contents, manager_at, summary
from tests.support.stores import bucket_path, fact_path, store_with


def filled(root: Path) -> None:
    store = store_with(root, "x")
    store_with(root, "y", scope=Scope.of("alice", "coder"))
    store_with(root, "z", scope=Scope.of("bob"))
    store.update_summaries("alice", {"user": {"topOfMind": "release"}})


def test_without_an_agent_all_agents_and_the_summaries_of_the_user_are_cleared(tmp_path: Path) -> None:
    filled(tmp_path)
    manager = manager_at(tmp_path)
    document = manager.clear_memory(user_id="alice")
    assert (contents(document), summary(document, "user", "topOfMind")) == ([], "")
    assert document["revision"] == 4
    assert contents(manager.get_memory(user_id="alice", agent_name="coder")) == []
    assert contents(manager.get_memory(user_id="bob")) == ["text of z"]


def test_with_an_agent_only_its_facts_are_cleared(tmp_path: Path) -> None:
    filled(tmp_path)
    manager = manager_at(tmp_path)
    document = manager.clear_memory(user_id="alice", agent_name="Coder")
    assert (contents(document), summary(document, "user", "topOfMind")) == ([], "release")
    assert contents(manager.get_memory(user_id="alice")) == ["text of x"]


def test_files_of_the_host_beside_the_facts_stay(tmp_path: Path) -> None:
    filled(tmp_path)
    agent = bucket_path(tmp_path) / "agents" / "coder"
    for name in ("config.yaml", "SOUL.md"):
        (agent / name).write_text(name, "utf-8")
    manager_at(tmp_path).clear_memory(user_id="alice")
    assert [(agent / name).read_text("utf-8") for name in ("config.yaml", "SOUL.md")] == [
        "config.yaml",
        "SOUL.md",
    ]


def test_a_memory_with_a_broken_fact_can_be_cleared(tmp_path: Path) -> None:
    filled(tmp_path)
    fact_path(tmp_path, Scope.of("alice"), "x").write_text("no fact", "utf-8")
    manager = manager_at(tmp_path)
    assert contents(manager.clear_memory(user_id="alice")) == []
    assert contents(manager.get_memory(user_id="alice")) == []


def test_deleting_a_memory_clears_it_without_a_result(tmp_path: Path) -> None:
    filled(tmp_path)
    manager = manager_at(tmp_path)
    manager.delete_memory(user_id="alice", agent_name="coder")
    assert contents(manager.get_memory(user_id="alice")) == ["text of x"]
    manager.delete_memory(user_id="alice")
    assert contents(manager.get_memory(user_id="alice")) == []
