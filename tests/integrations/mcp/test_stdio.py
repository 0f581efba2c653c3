"""Over stdio: nothing but the protocol on standard output, and an end in order, however it comes."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from deermem import DeerMem
from deermem.model.identity import Scope
from tests.integrations.mcp.doors import PATIENCE, Door, answer, command, environment, run
from tests.integrations.mcp.lines import Lines, speaking


def contents(manager: DeerMem) -> set[str]:
    return {fact["content"] for fact in manager.reload_memory(user_id="alice")["facts"]}


def assert_healthy(root: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "deermem", "check", "--storage-path", str(root)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_at_the_end_of_the_input_what_was_asked_is_answered(root: Path, other: DeerMem) -> None:
    with speaking(root) as lines:
        asked = {lines.call("memory_add", content=f"number {number}") for number in range(8)}
        code, said = lines.end()
        assert code == 0, lines.log
        answers = [json.loads(line) for line in said.splitlines()]
        assert {message["id"] for message in answers} == asked
        assert {message["result"]["structuredContent"]["outcome"] for message in answers} == {"added"}
    assert contents(other) == {f"number {number}" for number in range(8)}


@pytest.mark.skipif(os.name == "nt", reason="Windows kills")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_it_after_what_has_begun(root: Path, other: DeerMem, name: str) -> None:
    other.create_fact("first", user_id="alice")
    with speaking(root) as lines:
        with other.repository.engine.maintenance(Scope.of("alice").user):
            adding = lines.call("memory_add", content="second")
            assert lines.answered(lines.call("memory_status"))["facts"] == 1  # so the other call has begun
            lines.process.send_signal(getattr(signal, name))
        assert lines.answered(adding)["outcome"] == "added"
        assert lines.process.wait(PATIENCE) == 0, lines.log
        assert "Traceback" not in lines.log
    assert contents(other) == {"first", "second"}


@pytest.mark.skipif(os.name == "nt", reason="Windows kills")
def test_a_signal_ends_it_while_the_client_says_nothing(root: Path) -> None:
    with speaking(root, greeted=False) as lines:
        lines.greet()
        lines.process.terminate()
        assert lines.process.wait(PATIENCE) == 0
        assert "Traceback" not in lines.log


@pytest.mark.skipif(os.name == "nt", reason="Windows kills")
def test_a_signal_ends_it_while_the_client_takes_nothing(root: Path, other: DeerMem) -> None:
    for number in range(20):
        other.create_fact(f"{number} " + "x" * 900, user_id="alice")
    with speaking(root) as lines:
        for _ in range(60):  # more than a pipe holds
            lines.call("memory_list", limit=50)
        lines.process.terminate()
        lines.process.terminate()
        # The second may come when the server is through, and then it is the system's to answer.
        assert lines.process.wait(PATIENCE) in (0, -signal.SIGTERM)
        assert "Traceback" not in lines.log


def test_a_client_that_goes_away_without_reading_leaves_a_server_that_ends(root: Path) -> None:
    with speaking(root) as lines:
        assert lines.process.stdout
        lines.process.stdout.close()
        lines.call("memory_add", content="more")
        assert lines.process.stdin
        lines.process.stdin.close()
        assert lines.process.wait(PATIENCE) == 0
        assert "Traceback" not in lines.log


def test_what_anything_prints_goes_to_standard_error(root: Path) -> None:
    program = """
import os, subprocess, sys
from deermem import DeerMem
from deermem.integrations.mcp import create_server, fixed_scope
from deermem.integrations.mcp.stdio import serve_stdio
from deermem.model.identity import Scope

def loud(context):
    print("a word on standard output", flush=True)
    os.write(1, b"bytes on standard output\\n")
    subprocess.run([sys.executable, "-c", "print('of a child', input() if False else '')"], check=True)
    assert sys.stdin.read() == ""
    return Scope.of("alice")

with DeerMem() as manager:
    serve_stdio(create_server(manager, loud))
print("after the end")
"""
    with speaking(root, program=program) as lines:
        assert lines.answered(lines.call("memory_status"))["facts"] == 0
        code, said = lines.end()
        assert (code, said) == (0, b"after the end\n"), lines.log
        for words in ("a word on standard output", "bytes on standard output", "of a child"):
            assert words in lines.log


def test_two_processes_on_one_store_lose_nothing(root: Path, other: DeerMem) -> None:
    async def add(client: Client, name: str) -> None:
        for number in range(10):
            assert (await answer(client, "memory_add", content=f"{name} {number}"))["outcome"] == "added"

    async def both() -> None:
        door = Door(root)
        async with door.client() as first, door.client() as second:
            await asyncio.gather(add(first, "first"), add(second, "second"))
            mine = await answer(first, "memory_list", limit=50)
            assert mine == await answer(second, "memory_list", limit=50)
            assert len(mine["facts"]) == 20

    run(both())
    assert contents(other) == {f"{name} {number}" for name in ("first", "second") for number in range(10)}


@pytest.mark.parametrize("round_", range(3))
def test_a_server_killed_while_it_writes_has_kept_what_it_told(root: Path, round_: int) -> None:
    with speaking(root) as lines:
        for number in range(40):
            lines.call("memory_add", content=f"number {number}", confidence=0.5)
        told = {lines.hear()["result"]["structuredContent"]["fact"]["content"] for _ in range(4 * round_ + 2)}
        lines.process.kill()
    again = Door(root)

    async def look(client: Client) -> set[str]:
        await answer(client, "memory_add", content="after the kill")
        return {fact["content"] for fact in (await answer(client, "memory_list", limit=50))["facts"]}

    found = again.use(look)
    assert told <= found
    assert found <= {f"number {number}" for number in range(40)} | {"after the kill"}
    assert_healthy(root)


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_call_that_is_cancelled_ends_and_the_others_go_on(root: Path, other: DeerMem, era: str) -> None:
    other.create_fact("first", user_id="alice")

    async def cancel(client: Client) -> None:
        with other.repository.engine.maintenance(Scope.of("alice").user):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer_or_not, client)
                while not client_waits:
                    await anyio.lowlevel.checkpoint()
                assert (await answer(client, "memory_status"))["facts"] == 1
                tasks.cancel_scope.cancel()
            assert (await answer(client, "memory_status"))["facts"] == 1
        # What had begun comes to its end, once.
        assert (await answer(client, "memory_add", content="third"))["outcome"] == "added"
        assert {fact["content"] for fact in (await answer(client, "memory_list"))["facts"]} >= {
            "first",
            "third",
        }

    client_waits: list[bool] = []

    async def answer_or_not(client: Client) -> None:
        client_waits.append(True)
        await client.call_tool("memory_add", {"content": "second"})

    Door(root, era).use(cancel)
    assert contents(other) in ({"first", "third"}, {"first", "second", "third"})


def test_a_cancelled_request_is_not_waited_for_at_the_end(root: Path, other: DeerMem) -> None:
    other.create_fact("first", user_id="alice")
    with speaking(root) as lines, other.repository.engine.maintenance(Scope.of("alice").user):
        adding = lines.call("memory_add", content="second")
        lines.tell("notifications/cancelled", requestId=adding)
        lines.answered(lines.call("memory_status"))


def refused(lines: Lines) -> tuple[Any, int]:
    message = lines.hear()
    return message["id"], message["error"]["code"]


def test_lines_that_are_no_messages_are_answered_and_the_next_is_served(root: Path) -> None:
    with speaking(root) as lines:
        lines.send(b"garbage")
        assert refused(lines) == (None, -32700)
        lines.send(b"\xff\xfe\x00")
        assert refused(lines) == (None, -32700)
        lines.send(b"[" * 100_000)
        assert refused(lines) == (None, -32700)
        lines.send(b"")
        lines.send(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}')
        assert refused(lines) == (None, -32700)
        lines.send(
            b'{"jsonrpc":"2.0","id":77,"method":"tools/call",'
            b'"params":{"name":"memory_add","arguments":{"content":"\\ud800"}}}'
        )
        assert refused(lines) == (77, -32600)
        lines.send(b'{"jsonrpc":"2.0","id":78,"method":"x","params":"' + b"x" * 5_000_000 + b'"}')
        assert refused(lines) == (None, -32600)
        lines.send(b'{"jsonrpc":"2.0","id":79,"method":"memory/none"}')
        assert refused(lines) == (79, -32601)
        assert lines.answered(lines.call("memory_status"))["facts"] == 0


@pytest.mark.parametrize("request_id", [b"null", b"1.5", b"true", b"[1]", b'{"a":1}'])
def test_a_request_whose_id_is_none_is_answered(root: Path, request_id: bytes) -> None:
    with speaking(root) as lines:
        lines.send(b'{"jsonrpc":"2.0","id":' + request_id + b',"method":"ping"}')
        assert refused(lines) in ((None, -32600), (None, -32700))
        for strange in (b"null", b"[1]", b'{"a":1}'):
            lines.send(
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":'
                + strange
                + b"}}"
            )
        assert lines.answered(lines.call("memory_status"))["facts"] == 0
        assert lines.end() == (0, b"")


@pytest.mark.parametrize("ids", [(91, "91"), (92, 92)])
def test_requests_with_nearly_the_same_id_are_all_answered_at_the_end(
    root: Path, other: DeerMem, ids: tuple[object, object]
) -> None:
    other.create_fact("first", user_id="alice")
    with speaking(root) as lines:
        with other.repository.engine.maintenance(Scope.of("alice").user):
            for number, request_id in enumerate(ids):
                call = {"name": "memory_add", "arguments": {"content": f"call {number}"}}
                asked = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": call}
                lines.send(json.dumps(asked).encode())
            assert lines.answered(lines.call("memory_status"))["facts"] == 1
            assert lines.process.stdin
            lines.process.stdin.close()
        told = [lines.hear() for _ in ids]
        assert [each["result"]["structuredContent"]["outcome"] for each in told] == ["added"] * 2
        assert lines.process.wait(PATIENCE) == 0


@pytest.mark.skipif(os.name == "nt", reason="asks a POSIX shell")
def test_standard_error_may_be_closed(root: Path) -> None:
    asked = b'{"jsonrpc":"2.0","id":1,"method":"server/none"}\n'
    ended = subprocess.run(
        ["bash", "-c", f"{shlex.join(command())} 2>&-"],
        check=True,
        input=asked,
        capture_output=True,
        env=environment(root),
    )
    assert json.loads(ended.stdout)["error"]["code"] == -32601


@pytest.mark.skipif(os.name == "nt", reason="asks a POSIX shell")
def test_without_standard_input_it_says_so(root: Path) -> None:
    ended = subprocess.run(
        ["bash", "-c", f"{shlex.join(command())} <&-"],
        check=False,
        capture_output=True,
        env=environment(root),
    )
    assert ended.returncode == 1
    assert ended.stdout == b""
    assert b"\nError: " in ended.stderr


@pytest.mark.parametrize("exists", [True, False])
def test_whose_memory_is_served_is_told_where_no_protocol_is(root: Path, exists: bool) -> None:
    place = root if exists else root / "typo"
    place.parent.mkdir(exist_ok=True, parents=True)
    root.mkdir(exist_ok=True)
    ended = subprocess.run(
        command("--storage-path", str(place)),
        check=False,
        capture_output=True,
        text=True,
        env=environment(root),
        stdin=subprocess.DEVNULL,
    )
    made = "" if exists else ", which the first write makes"
    assert (ended.returncode, ended.stdout) == (0, "")
    assert f"alice/__default__ in {os.path.realpath(place)}{made}\n" in ended.stderr


def test_options_of_http_are_refused(root: Path) -> None:
    for option in (["--host", "127.0.0.1"], ["--port", "8000"], ["--allow-origin", "https://x"], ["--json"]):
        ended = subprocess.run(
            command(*option),
            check=False,
            env=environment(root),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert ended.returncode == 2
        assert f"{option[0]} goes with --transport http only" in ended.stdout + ended.stderr


def test_a_bad_user_or_agent_is_told_before_the_protocol_begins(root: Path) -> None:
    for option in (["--agent", "../x"], ["--user-id", ""]):
        ended = subprocess.run(
            command(*option),
            check=False,
            env=environment(root),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "Traceback" not in ended.stderr
