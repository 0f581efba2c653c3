"""The SDK's own client and tool runners use the tools, over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic

from deermem import DeerMem
from deermem.integrations.anthropic import AsyncDeerMemMemoryTool, DeerMemMemoryTool
from tests.integrations.anthropic.messages_api import Model, served

QUESTION: list[Any] = [{"role": "user", "content": "Remember that I drink tea."}]
SCRIPT: tuple[list[dict[str, Any]], ...] = (
    [{"command": "view", "path": "/memories"}],
    [{"command": "create", "path": "/memories/tea.md", "file_text": "Drinks coffee.\n"}],
    [
        {"command": "str_replace", "path": "/memories/tea.md", "old_str": "coffee", "new_str": "tea"},
        {"command": "insert", "path": "/memories/tea.md", "insert_line": 1, "insert_text": "Green.\n"},
        {"command": "view", "path": "/memories/tea.md", "view_range": None},
    ],
    [{"command": "rename", "old_path": "/memories/tea.md", "new_path": "/memories/drinks/tea.md"}],
    [
        {"command": "view", "path": "/memories/tea.md"},
        {"command": "create", "path": "/memories/../x", "file_text": "x"},
    ],
    [{"command": "create", "path": "/memories/old", "file_text": ""}],
    [{"command": "delete", "path": "/memories/old"}],
)
LISTING = (
    "Here're the files and directories up to 2 levels deep in /memories, "
    "excluding hidden items and node_modules:\n0B\t/memories"
)
SNIPPET = (
    "The memory file has been edited. "
    "Here is the snippet showing the change (with line numbers):\n     1\tDrinks tea.\n     2\t"
)
CONTENT = (
    "Here's the content of /memories/tea.md with line numbers:\n     1\tDrinks tea.\n     2\tGreen.\n     3\t"
)
RESULTS = [
    [(LISTING, False)],
    [("File created successfully at: /memories/tea.md", False)],
    [(SNIPPET, False), ("The file /memories/tea.md has been edited.", False), (CONTENT, False)],
    [("Successfully renamed /memories/tea.md to /memories/drinks/tea.md", False)],
    [
        ("The path /memories/tea.md does not exist. Please provide a valid path.", True),
        ("Error: Path '/memories/../x' would escape /memories directory", True),
    ],
    [("File created successfully at: /memories/old", False)],
    [("Successfully deleted /memories/old", False)],
]


def remembered(manager: DeerMem) -> list[str]:
    return [fact["content"] for fact in manager.get_memory(user_id="alice")["facts"]]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_the_runner_runs_every_command(tmp_path: Path) -> None:
    model = Model(*SCRIPT)
    with served(model) as url, DeerMem({"storage_path": str(tmp_path)}) as manager:
        tool = DeerMemMemoryTool(manager, user_id="alice", cache_control={"type": "ephemeral"})
        with Anthropic(api_key="none", base_url=url, max_retries=0) as client:
            runner = client.beta.messages.tool_runner(
                model="claude-test", max_tokens=100, messages=QUESTION, tools=[tool]
            )
            final = runner.until_done()
        assert final.content[0].type == "text"
        assert model.results == RESULTS
        assert remembered(manager) == ["Drinks tea.\nGreen."]
    assert model.requests[0]["tools"] == [
        {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
    ]


def test_the_asynchronous_runner_runs_every_command(tmp_path: Path) -> None:
    model = Model(*SCRIPT)

    async def run(url: str, manager: DeerMem) -> None:
        tool = AsyncDeerMemMemoryTool(manager, user_id="alice")
        async with AsyncAnthropic(api_key="none", base_url=url, max_retries=0) as client:
            runner = client.beta.messages.tool_runner(
                model="claude-test", max_tokens=100, messages=QUESTION, tools=[tool]
            )
            await runner.until_done()
        assert await tool.clear_all_memory() == "All memory cleared"

    with served(model) as url, DeerMem({"storage_path": str(tmp_path)}) as manager:
        asyncio.run(run(url, manager))
        assert remembered(manager) == []
    # Calls of one turn run at the same time, so what one of them shows may be before or after the others.
    assert [turn for number, turn in enumerate(model.results) if number != 2] == [
        turn for number, turn in enumerate(RESULTS) if number != 2
    ]


def test_a_conversation_of_another_day_finds_what_was_kept(tmp_path: Path) -> None:
    for script, wanted in (
        ([{"command": "create", "path": "/memories/a", "file_text": "x\n"}], "File created"),
        ([{"command": "view", "path": "/memories/a"}], "Here's the content of /memories/a"),
    ):
        model = Model(script)
        with served(model) as url, DeerMem({"storage_path": str(tmp_path)}) as manager:
            tool = DeerMemMemoryTool(manager, user_id="alice")
            with Anthropic(api_key="none", base_url=url, max_retries=0) as client:
                client.beta.messages.tool_runner(
                    model="claude-test", max_tokens=100, messages=QUESTION, tools=[tool]
                ).until_done()
        assert model.results[0][0][0].startswith(wanted)
