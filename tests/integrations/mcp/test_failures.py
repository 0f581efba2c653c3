"""What goes wrong is told in one sentence, and what the sentence keeps back is in the log."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from deermem import DeerMem
from deermem.errors import CommitInDoubt, InvalidInputError, MemoryConflictError, MemoryManagerClosed
from deermem.integrations.mcp import failures
from deermem.model.identity import Scope
from tests.integrations.mcp.doors import Door, answer, refusal, serving
from tests.support.stores import fact_path

CALLS = {
    "memory_search": {"query": "tea"},
    "memory_add": {"content": "more"},
    "memory_update": {"id": "fact_1", "content": "more"},
    "memory_delete": {"id": "fact_1"},
    "memory_list": {},
    "memory_get": {"id": "fact_1"},
    "memory_context": {},
    "memory_status": {},
}


def test_a_damaged_fact_is_told_with_what_an_operator_must_do(door: Door, other: DeerMem) -> None:
    _, fact_id = other.create_fact("Likes tea", user_id="alice")
    assert fact_id
    fact_path(door.root, Scope.of("alice"), fact_id).write_text("broken", "utf-8")
    calls = {**CALLS, "memory_get": {"id": fact_id}, "memory_delete": {"id": fact_id}}
    calls["memory_update"] = {"id": fact_id, "content": "more"}

    async def call_all(client: Client) -> None:
        for name, arguments in calls.items():
            text = await refusal(client, name, **arguments)
            assert text == failures.DAMAGED
            assert "deermem check" in text
        for asking in (client.list_resources(), client.read_resource(f"memory://__default__/{fact_id}")):
            with pytest.raises(MCPError) as caught:
                await asking
            assert (caught.value.code, caught.value.message) == (-32603, failures.DAMAGED)

    door.use(call_all)


@pytest.fixture
def impatient(root: Path) -> Iterator[DeerMem]:
    with DeerMem({"storage_path": str(root), "file_lock_timeout_seconds": 1}) as manager:
        yield manager


def test_a_lock_that_is_held_too_long_says_to_try_again(
    root: Path, impatient: DeerMem, other: DeerMem
) -> None:
    other.create_fact("Likes tea", user_id="alice")

    async def wait(client: Client) -> None:
        assert await refusal(client, "memory_add", content="more") == failures.BUSY
        assert len((await answer(client, "memory_list"))["facts"]) == 1

    with serving(impatient) as url, other.repository.engine.maintenance(Scope.of("alice").user):
        Door(root, url=url).use(wait)


def test_a_storage_that_is_no_longer_there_is_told_without_its_path(web: Door, root: Path) -> None:
    root.write_text("a file", "utf-8")

    async def look(client: Client) -> None:
        for name in ("memory_add", "memory_list"):
            assert await refusal(client, name, **CALLS[name]) == failures.DISK

    web.use(look)


def test_every_error_has_its_sentence() -> None:
    def told(error: Exception) -> str:
        return failures.told_of(error)

    assert told(OSError(errno.ENOSPC, "No space", "/secret/path")) == failures.FULL_DISK
    assert told(OSError(errno.EIO, "I/O error", "/secret/path")) == failures.DISK
    assert told(CommitInDoubt(3, "I/O error")) == failures.IN_DOUBT
    assert told(MemoryConflictError("memory.json is at 4")) == failures.CONFLICT
    assert told(MemoryManagerClosed()) == failures.ENDING
    assert told(InvalidInputError("content", "must not be empty")).endswith("content must not be empty.")


def test_a_bug_is_told_without_a_word_of_it_and_logged_with_all(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert failures.told_of(RuntimeError("/secret/path")) == failures.BUG
    assert "/secret/path" in caplog.text


def test_a_bug_in_a_handler_reaches_no_client(
    root: Path, other: DeerMem, caplog: pytest.LogCaptureFixture
) -> None:
    async def look(client: Client) -> None:
        assert await refusal(client, "memory_status") == failures.BUG
        with pytest.raises(MCPError) as caught:
            await client.list_resources()
        assert caught.value.message == failures.BUG

    with serving(other) as url:
        other.repository.snapshot = other.repository.list_facts = None  # type: ignore[assignment,method-assign]
        for era in ("legacy", "auto"):
            Door(root, era, url).use(look)
    assert "not callable" in caplog.text
