"""DeerFlow itself over this storage: its factory, middleware, queue, extraction, tools and prompt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deermem.model.fact import FactDraft
from deermem.model.identity import Scope
from deermem.repository import MemoryRepository
from tests.integrations.deerflow import library
from tests.integrations.deerflow.library import fact, real_only

pytestmark = [
    real_only,
    pytest.mark.filterwarnings("ignore"),  # those of DeerFlow and of what it imports are not ours
]

WAYS: dict[str, dict[str, Any]] = {
    "storage class": {
        "manager_class": "deermem",
        "backend_config": {"storage_class": "deermem.integrations.deerflow.DeerMemStorage"},
    },
    "manager class": {"manager_class": "deermem.integrations.deerflow:DeerMemManager"},
}
RUNTIME = SimpleNamespace(context={"thread_id": "thread-1", "user_id": "alice", "agent_name": "writer"})


class Model:
    """Answers as a chat model does, always the same; `before` runs while it is asked."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {"user": {}, "history": {}, "newFacts": []}
        self.before: Callable[[], object] = lambda: None
        self.asked = 0

    def invoke(self, _prompt: Any, **_settings: Any) -> Any:
        self.asked += 1
        self.before()
        return SimpleNamespace(content=json.dumps(self.answer), usage_metadata=None)

    def extract(self, *contents: str, work: str = "") -> None:
        gate = {"scope": "user", "durability": "durable", "authority": "descriptive"}
        self.answer["user"] = {"workContext": {"summary": work, "shouldUpdate": bool(work), **gate}}
        self.answer["newFacts"] = [
            {"content": content, "category": "preference", "confidence": 0.9, **gate} for content in contents
        ]


class Hosted:
    """Is DeerFlow as it is configured for one test."""

    def __init__(self, root: Path, way: str) -> None:
        self.root = root
        self.model = Model()
        backend = {
            "storage_path": str(root),
            "host_llm": self.model,
            "token_counting": "char",
            **WAYS[way].get("backend_config", {}),
        }
        self.settings: dict[str, Any] = {**WAYS[way], "backend_config": backend}

    def start(self) -> Any:
        """Returns the memory manager, a new one each time, as after a restart."""
        memory_config = library.module("deerflow.config.memory_config")
        memory_config.set_memory_config(memory_config.MemoryConfig(**self.settings))
        memory = library.module("deerflow.agents.memory")
        memory.reset_memory_manager()
        return memory.get_memory_manager()

    def facts(self, user: str = "alice", agent: str = "writer") -> list[str]:
        """Returns what a store of its own reads from the disk."""
        with MemoryRepository(self.root) as repository:
            return [each.content for each in repository.snapshot(Scope.of(user, agent)).facts]


@pytest.fixture(params=list(WAYS))
def hosted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hosted]:
    memory_config = library.module("deerflow.config.memory_config")
    before = memory_config.get_memory_config()
    yield Hosted(tmp_path, request.param)
    memory_config.set_memory_config(before)
    library.module("deerflow.agents.memory").reset_memory_manager()


def conversation(text: str = "I always drink green tea, remember that") -> list[Any]:
    messages = library.module("langchain_core.messages")
    return [messages.HumanMessage(text, id="m1"), messages.AIMessage("I will remember it.", id="m2")]


def test_a_conversation_becomes_a_fact_on_disk_and_a_line_of_the_prompt(hosted: Hosted) -> None:
    manager = hosted.start()
    hosted.model.extract("Drinks green tea", work="Bakes bread")
    middleware = library.module("deerflow.agents.middlewares.memory_middleware").MemoryMiddleware("writer")
    assert middleware.after_agent({"messages": conversation()}, RUNTIME) is None
    assert hosted.facts() == []
    assert manager.shutdown_flush(30)
    assert hosted.model.asked == 1
    assert hosted.facts() == ["Drinks green tea"]
    (file,) = hosted.root.glob("users/alice/agents/writer/facts/*/*.md")
    assert "threadId: thread-1" in file.read_text("utf-8")
    prompt = library.module("deerflow.agents.lead_agent.prompt")
    for _ in range(2):  # before and after a restart
        context = prompt._get_memory_context("writer", user_id="alice")
        assert "Drinks green tea" in context
        assert "Bakes bread" in context
        manager.close()
        manager = hosted.start()
    assert prompt._get_memory_context("writer", user_id="bob") == ""
    assert type(manager._storage) is library.front_door.DeerMemStorage


def test_the_asynchronous_middleware_stores_as_well(hosted: Hosted) -> None:
    manager = hosted.start()
    hosted.model.extract("Drinks green tea")
    middleware = library.module("deerflow.agents.middlewares.memory_middleware").MemoryMiddleware("writer")
    asyncio.run(middleware.aafter_agent({"messages": conversation()}, RUNTIME))
    assert manager.shutdown_flush(30)
    assert hosted.facts() == ["Drinks green tea"]
    manager.close()


def test_messages_that_are_about_to_go_are_stored_at_once(hosted: Hosted) -> None:
    manager = hosted.start()
    hosted.model.extract("Drinks green tea")
    manager.add_nowait("thread-1", conversation(), agent_name="writer", user_id="alice")
    # A flush that meets the queue's own thread at work tells so, and is asked again.
    assert any(manager.shutdown_flush(10) for _ in range(5))
    assert hosted.facts() == ["Drinks green tea"]
    manager.close()


def test_an_extraction_that_another_writer_overtakes_is_applied_to_what_is_there_then(
    hosted: Hosted,
) -> None:
    manager = hosted.start()
    hosted.model.extract("Drinks green tea")
    with MemoryRepository(hosted.root) as other:
        draft = FactDraft("Rides a bicycle", id="fact_other")
        hosted.model.before = lambda: other.upsert_fact(Scope.of("alice", "writer"), draft)
        manager.add("thread-1", conversation(), agent_name="writer", user_id="alice")
        assert manager.shutdown_flush(30)
    assert sorted(hosted.facts()) == ["Drinks green tea", "Rides a bicycle"]
    manager.close()


def test_the_tools_of_tool_mode_work_on_the_same_facts(hosted: Hosted) -> None:
    hosted.settings["mode"] = "tool"
    manager = hosted.start()
    tools = library.module("deerflow.agents.memory.tools")

    def call(name: str, **arguments: Any) -> Any:
        return json.loads(getattr(tools, f"memory_{name}_tool").func(runtime=RUNTIME, **arguments))

    added = call("add", content="Drinks green tea", category="preference", confidence=0.9)
    fact_id = added["fact_id"]
    call("add", content=" drinks GREEN tea ")
    assert hosted.facts() == ["Drinks green tea"]
    assert call("search", query="green")["results"][0]["id"] == fact_id
    call("update", fact_id=fact_id, content="Drinks black tea")
    assert hosted.facts() == ["Drinks black tea"]
    assert "black tea" not in manager.get_context("alice", agent_name="writer")
    call("delete", fact_id=fact_id)
    assert hosted.facts() == []
    manager.close()


def test_what_the_gateway_calls_works_and_its_errors_are_deerflows(hosted: Hosted) -> None:
    manager = hosted.start()
    errors = library.module("deerflow.agents.memory")
    who = {"user_id": "a@b.c", "agent_name": "Writer"}
    document, fact_id = manager.create_fact("Drinks tea", "preference", 0.9, **who)
    assert [each["source"] for each in document["facts"]] == ["manual"]
    with pytest.raises(ValueError, match="Duplicate fact"):
        manager.create_fact("drinks TEA", **who)
    with pytest.raises(KeyError):
        manager.update_fact("fact_none", "x", **who)
    assert manager.update_fact(fact_id, "Drinks cocoa", **who)["facts"][0]["revision"] == 2
    exported = manager.get_memory(**who)
    assert manager.clear_memory(**who)["facts"] == []
    imported = manager.import_memory(exported, **who)
    assert [each["content"] for each in imported["facts"]] == ["Drinks cocoa"]
    assert manager.delete_fact(imported["facts"][0]["id"], **who)["facts"] == []
    manager.create_fact("Drinks tea", user_id="a@b.c")
    assert manager.clear_memory(user_id="a@b.c")["facts"] == []
    (bucket,) = (hosted.root / "users").iterdir()
    (bucket / "memory.json").write_text("{", "utf-8")
    with pytest.raises(errors.MemoryCorruptionError):
        manager.reload_memory(**who)
    manager.close()


def test_an_import_of_an_earlier_export_gives_the_next_revision(hosted: Hosted) -> None:
    manager = hosted.start()
    who = {"user_id": "alice", "agent_name": "writer"}
    _, fact_id = manager.create_fact("Drinks tea", **who)
    exported = manager.get_memory(**who)
    manager.update_fact(fact_id, "Drinks cocoa", **who)
    (imported,) = manager.import_memory(exported, **who)["facts"]
    assert (imported["content"], imported["revision"]) == ("Drinks tea", 3)
    manager.close()


def test_the_cap_evicts_as_deerflow_decides_and_the_audit_says_what(hosted: Hosted) -> None:
    hosted.settings["backend_config"].update(max_facts=10, fact_eviction_policy="hybrid-v1")
    manager = hosted.start()
    who = {"user_id": "alice", "agent_name": "writer"}
    for number in range(10):
        manager.create_fact(f"Likes number {number}", confidence=0.5 + number / 100, **who)
    assert manager.search("number 0", **who)[0]["content"] == "Likes number 0"
    document, fact_id = manager.create_fact("Likes number 10", confidence=0.9, **who)
    assert fact_id is not None
    contents = {each["content"] for each in document["facts"]}
    assert len(contents) == 10
    assert "Likes number 0" in contents, "what was searched for stays"
    place = hosted.root / "users" / "alice" / "agents" / "writer" / ".metadata"
    (event,) = json.loads((place / "eviction-audit.json").read_text("utf-8"))
    assert len(event["evicted"]) == 1
    manager.close()


def test_a_search_index_of_deerflows_is_made_only_beside_its_own_manager(hosted: Hosted) -> None:
    manager = hosted.start()
    manager.create_fact("Drinks green tea", user_id="alice")
    assert manager.warm_retrieval()
    assert [each["content"] for each in manager.search("GREEN", user_id="alice")] == ["Drinks green tea"]
    own = hosted.settings["manager_class"] != "deermem"
    assert (hosted.root / ".retrieval").exists() is not own
    manager.close()


def test_a_store_of_deerflows_goes_over_and_back(tmp_path: Path) -> None:
    way_back = Hosted(tmp_path, "manager class")
    plain = {**way_back.settings, "manager_class": "deermem"}
    here = dict(way_back.settings)
    for number, settings in enumerate((plain, here, plain, here)):
        way_back.settings = settings
        manager = way_back.start()
        manager.create_fact(f"Likes number {number}", agent_name="writer", user_id="alice")
        found = manager.get_memory(agent_name="writer", user_id="alice")["facts"]
        assert {each["content"] for each in found} == {f"Likes number {each}" for each in range(number + 1)}
        manager.close()
    library.module("deerflow.agents.memory").reset_memory_manager()


def test_facts_that_updates_of_the_model_change_keep_what_they_have(hosted: Hosted) -> None:
    hosted.settings["backend_config"]["fact_eviction_policy"] = (
        "hybrid-v1"  # the one that counts confirmations
    )
    manager = hosted.start()
    storage = manager._storage
    storage.upsert_fact(fact("fact_1", mood="good", topics=["tea"]), user_id="alice", agent_name="writer")
    gate = {"scope": "user", "reason": "said so again"}
    hosted.model.answer["factsToReinforce"] = [{"id": "fact_1", **gate}]
    manager.add(
        "thread-1", conversation("Yes, exactly right, I like tea"), agent_name="writer", user_id="alice"
    )
    assert manager.shutdown_flush(30)
    read = storage.get_fact("fact_1", user_id="alice", agent_name="writer")
    assert (read["confirmationCount"], read["revision"]) == (1, 2)
    assert (read["mood"], read["topics"], read["createdAt"][:10]) == ("good", ["tea"], "2026-08-01")
    manager.close()
