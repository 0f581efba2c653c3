"""Every tool does what it says, over both transports."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from deermem import DeerMem
from tests.integrations.mcp.doors import Door, answer, refusal, serving

READING = {"memory_search", "memory_list", "memory_get", "memory_context", "memory_status"}
WRITING = {"memory_add", "memory_update", "memory_delete"}


async def declared(client: Client) -> dict[str, Any]:
    return {tool.name: tool for tool in (await client.list_tools()).tools}


def test_a_fact_lives_through_every_tool(every_door: Door) -> None:
    async def live(client: Client) -> None:
        added = await answer(
            client, "memory_add", content="  Likes tea ", category="preference", confidence=0.9
        )
        assert added["outcome"] == "added"
        fact = added["fact"]
        assert (fact["content"], fact["category"], fact["confidence"]) == ("Likes tea", "preference", 0.9)
        assert (await answer(client, "memory_search", query="TEA"))["facts"] == [fact]
        assert (await answer(client, "memory_list"))["facts"] == [fact]
        assert (await answer(client, "memory_get", id=fact["id"]))["fact"] == fact
        assert "Likes tea" in (await answer(client, "memory_context"))["text"]
        changed = await answer(
            client, "memory_update", id=fact["id"], content="Likes green tea", expected_revision=1
        )
        assert (changed["outcome"], changed["fact"]["revision"]) == ("updated", 2)
        assert changed["fact"]["category"] == "preference"
        status = await answer(client, "memory_status")
        assert (status["facts"], status["categories"]) == (1, {"preference": 1})
        assert (status["user"], status["agent"], status["read_only"]) == ("alice", "__default__", False)
        gone = await answer(client, "memory_delete", id=fact["id"])
        assert (gone["outcome"], gone["fact"]["content"]) == ("deleted", "Likes green tea")
        assert (await answer(client, "memory_list"))["facts"] == []

    every_door.use(live)


def test_tools_are_declared_with_schemas_and_hints(every_door: Door) -> None:
    tools = every_door.use(declared)
    assert set(tools) == READING | WRITING
    for name, tool in tools.items():
        hints = tool.annotations
        assert hints.read_only_hint is (name in READING)
        assert hints.destructive_hint is (name in WRITING)
        assert hints.idempotent_hint is True
        assert hints.open_world_hint is False
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"
        assert tool.title
        assert tool.description
        assert not {"user", "user_id", "agent", "agent_name"} & set(tool.input_schema["properties"])


def test_a_read_only_server_has_the_reading_tools_alone(root: Any, transport: str, other: DeerMem) -> None:
    other.create_fact("Likes tea", user_id="alice")

    async def look(client: Client) -> None:
        assert set(await declared(client)) == READING
        assert (await answer(client, "memory_status"))["read_only"] is True
        assert len((await answer(client, "memory_list"))["facts"]) == 1
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("memory_add", {"content": "more"})

    if transport == "stdio":
        Door(root, options=("--read-only",)).use(look)
    else:
        with serving(other, read_only=True) as url:
            Door(root, url=url).use(look)
    assert len(other.get_memory(user_id="alice")["facts"]) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("memory_add", {}, "content: Field required"),
        ("memory_add", {"content": ""}, "content: String should have at least 1 character"),
        ("memory_add", {"content": " \n"}, "content must not be empty"),
        ("memory_add", {"content": 7}, "content: Input should be a valid string"),
        ("memory_add", {"content": "x", "confidence": 1.5}, "confidence: Input should be less than"),
        ("memory_add", {"content": "x", "confidence": True}, "confidence: Input should be a valid number"),
        ("memory_add", {"content": "x", "confidence": "0.9"}, "confidence: Input should be a valid number"),
        ("memory_add", {"content": "x", "category": " "}, "category must be a non-empty string"),
        ("memory_add", {"content": "x", "user_id": "bob"}, "user_id: is no argument of this tool"),
        ("memory_add", {"content": "x", "agent": "coder"}, "agent: is no argument of this tool"),
        ("memory_search", {"query": "x", "limit": 0}, "limit: Input should be greater than"),
        ("memory_search", {"query": "x", "limit": 51}, "limit: Input should be less than"),
        ("memory_list", {"cursor": "../x"}, "cursor: String should match pattern"),
        ("memory_get", {"id": "../../etc/passwd"}, "id: String should match pattern"),
        ("memory_get", {"id": "a" * 129}, "id: String should match pattern"),
        ("memory_get", {"id": "fact_1\n"}, "id: String should match pattern"),
        ("memory_update", {"id": "fact_1"}, "one of content, category and confidence must be given"),
        ("memory_update", {"id": "f", "content": "x", "expected_revision": 0}, "expected_revision: Input"),
        ("memory_status", {"verbose": True}, "verbose: is no argument of this tool"),
    ],
)
def test_wrong_arguments_are_told_to_the_model(
    web: Door, name: str, arguments: dict[str, Any], told: str
) -> None:
    text = web.use(lambda client: refusal(client, name, **arguments))
    assert told in text
    assert text.startswith("Nothing was done: ")


def test_an_unknown_tool_is_an_error_of_the_protocol(every_door: Door) -> None:
    async def ask(client: Client) -> None:
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("memory_clear_everything", {})
        assert (await answer(client, "memory_status"))["facts"] == 0

    every_door.use(ask)


def test_a_list_comes_in_parts_that_make_a_whole(door: Door, other: DeerMem) -> None:
    for number in range(7):
        other.create_fact(f"fact number {number}", "goal" if number % 2 else "context", user_id="alice")
    everything = {fact["id"] for fact in other.get_memory(user_id="alice")["facts"]}

    async def collect(client: Client) -> None:
        parts = [await answer(client, "memory_list", limit=3)]
        while "next_cursor" in parts[-1]:
            parts.append(await answer(client, "memory_list", limit=3, cursor=parts[-1]["next_cursor"]))
        assert [len(part["facts"]) for part in parts] == [3, 3, 1]
        assert {fact["id"] for part in parts for fact in part["facts"]} == everything
        goals = await answer(client, "memory_list", category="goal")
        assert len(goals["facts"]) == 3

    door.use(collect)


def test_long_texts_are_cut_in_lists_and_whole_by_themselves(web: Door) -> None:
    content = "tea " + "x" * 15_000

    async def look(client: Client) -> None:
        added = (await answer(client, "memory_add", content=content))["fact"]
        (listed,) = (await answer(client, "memory_list"))["facts"]
        (found,) = (await answer(client, "memory_search", query="tea"))["facts"]
        assert listed == found
        assert (listed["truncated"], listed["content"]) == (True, content[:1_000])
        got = (await answer(client, "memory_get", id=added["id"]))["fact"]
        assert (got["truncated"], got["content"]) == (False, content)

    web.use(look)


def test_an_agent_has_facts_of_its_own(root: Any, other: DeerMem) -> None:
    other.create_fact("of the default agent", user_id="alice")
    coder = Door(root, options=("--agent", "Coder"))
    assert coder.call("memory_list")["facts"] == []
    assert coder.call("memory_add", content="of the coder")["fact"]["content"] == "of the coder"
    assert coder.call("memory_status")["agent"] == "coder"
    assert len(other.get_memory(user_id="alice", agent_name="coder")["facts"]) == 1
    assert len(other.get_memory(user_id="alice")["facts"]) == 1


def test_the_user_is_the_one_of_the_configuration(root: Any, other: DeerMem) -> None:
    Door(root, options=("--user-id", "a@b.c")).call("memory_add", content="of a@b.c")
    Door(root, variables={"DEERMEM_USER_ID": "bob"}).call("memory_add", content="of bob")
    Door(root, options=("--no-user",)).call("memory_add", content="of nobody")
    for user in ("a@b.c", "bob", None):
        (fact,) = other.get_memory(user_id=user)["facts"]
        assert fact["content"] == f"of {user or 'nobody'}"
