"""A client that cancels a call over HTTP, or goes away, leaves a whole change or none, and nobody waiting."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send

from deermem import DeerMem
from deermem.integrations.mcp.layers import Departure
from deermem.integrations.mcp.turns import WRITERS
from deermem.model.identity import Scope as Memory
from tests.integrations.mcp.doors import PATIENCE, USER_HEADER, Door
from tests.integrations.mcp.test_http import HEADERS, Raw, hostile, message

OLDER, NEWEST = "2025-11-25", "2026-07-28"


class Calling:
    """Sends calls on connections of their own, which can be closed."""

    def __init__(self, url: str, version: str, stack: ExitStack) -> None:
        self.raw = Raw(url)
        self.version = version
        self.session = self.raw.session()
        self._stack = stack
        self._url = httpx2.URL(url)

    def add(self, content: str, request_id: int) -> socket.socket:
        """Sends a call, and returns once the server has it."""
        body, headers = hostile(json.dumps({"content": content}).encode(), self.version)
        body = body.replace(b'"id":5,', b'"id":%d,' % request_id)
        named = {**HEADERS, **headers, USER_HEADER: "alice", "host": f"127.0.0.1:{self._url.port}"}
        if self.version == OLDER:
            named["mcp-session-id"] = self.session
        named["content-length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        connection = self._stack.enter_context(
            closing(socket.create_connection((self._url.host, self._url.port or 0), PATIENCE))
        )
        connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        self.let_the_server_look()
        return connection

    def let_the_server_look(self) -> None:
        """Returns after the server has seen what was sent, or closed, before."""
        for _ in range(10):
            assert self.raw.post(message("ping"), mcp_session_id=self.session).status_code == 200


@contextmanager
def held_up(web: Door, other: DeerMem, version: str) -> Iterator[tuple[Calling, list[socket.socket]]]:
    """Gives calls that have begun and wait for the lock, and one more that waits for its turn."""
    other.create_fact("first", user_id="alice")
    with ExitStack() as stack:
        calling = Calling(web.url, version, stack)
        with other.repository.engine.maintenance(Memory.of("alice").user):
            yield calling, [calling.add(f"call {number}", 100 + number) for number in range(WRITERS + 1)]


def contents_after(web: Door, other: DeerMem, expected: Callable[[set[str]], bool]) -> set[str]:
    """Returns what is stored once it is as expected and two more calls have had their turn."""
    deadline = time.monotonic() + PATIENCE
    facts: set[str] = set()
    while not expected(facts):
        assert time.monotonic() < deadline, facts
        facts = {fact["content"] for fact in other.reload_memory(user_id="alice")["facts"]}
    for number in range(2):
        assert web.call("memory_add", content=f"later {number}")["outcome"] == "added"
    return {fact["content"] for fact in other.reload_memory(user_id="alice")["facts"]} - {"first"}


BEGUN = {f"call {number}" for number in range(WRITERS)}
LATER = {"later 0", "later 1"}


@pytest.mark.parametrize(
    ("version", "stored"), [(OLDER, BEGUN | {f"call {WRITERS}"}), (NEWEST, BEGUN)], ids=[OLDER, NEWEST]
)
def test_what_has_begun_is_done_and_what_waits_only_where_going_away_is_no_cancellation(
    web: Door, other: DeerMem, version: str, stored: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    with held_up(web, other, version) as (calling, connections):
        for connection in connections:
            connection.close()
        calling.let_the_server_look()
    assert contents_after(web, other, lambda facts: stored <= facts) == stored | LATER
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_calls_that_are_cancelled_are_answered_at_once_and_not_begun_if_they_wait(
    web: Door, other: DeerMem, caplog: pytest.LogCaptureFixture
) -> None:
    with held_up(web, other, OLDER) as (calling, connections):
        for number in range(WRITERS + 1):
            told = calling.raw.post(
                message("notifications/cancelled", None, requestId=100 + number),
                mcp_session_id=calling.session,
            )
            assert told.status_code == 202
        for connection in connections:
            assert b'"error":{"code":-32800' in connection.recv(65_536)
    assert contents_after(web, other, lambda facts: facts >= BEGUN) == BEGUN | LATER
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_nobody_cancels_the_calls_of_others(web: Door, other: DeerMem) -> None:
    with held_up(web, other, OLDER) as (calling, _):
        bob = Raw(web.url, **{USER_HEADER: "bob"})
        for thief, session in (
            (bob, calling.session),
            (bob, bob.session()),
            (calling.raw, Raw(web.url).session()),
        ):
            thief.post(message("notifications/cancelled", None, requestId=100), mcp_session_id=session)
        calling.let_the_server_look()
    assert contents_after(web, other, lambda facts: "call 2" in facts) == BEGUN | LATER | {f"call {WRITERS}"}


def test_a_session_that_is_ended_completes_what_has_begun(
    web: Door, other: DeerMem, caplog: pytest.LogCaptureFixture
) -> None:
    with held_up(web, other, OLDER) as (calling, connections):
        ended = calling.raw.client.delete(web.url, headers={"mcp-session-id": calling.session})
        assert ended.status_code == 200
        for connection in connections:
            assert b"Session terminated" in connection.recv(65_536)
    assert contents_after(web, other, lambda facts: facts >= BEGUN) == BEGUN | LATER
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def settle() -> None:
    """Lets everything that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


def asked(app: Departure, parts: list[Message], headers: tuple[tuple[bytes, bytes], ...]) -> list[Message]:
    """Returns what one request is answered."""
    said: list[Message] = []
    left = iter(parts)

    async def receive() -> Message:
        await asyncio.sleep(0)
        for each in left:
            return each
        await asyncio.Event().wait()
        raise AssertionError

    async def send(each: Message) -> None:
        said.append(each)

    async def work() -> None:
        scope: Scope = {"type": "http", "headers": list(headers)}
        await asyncio.wait_for(app(scope, receive, send), PATIENCE)

    asyncio.run(work())
    return said


START: Message = {"type": "http.response.start", "status": 200, "headers": []}
WHOLE: list[Message] = [{"type": "http.request", "body": b"x"}]
GONE: Message = {"type": "http.disconnect"}
VERSION = ((b"mcp-protocol-version", NEWEST.encode()),)


def test_only_a_client_that_has_gone_is_given_up() -> None:
    async def wait(_: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await settle()
        await send(START)

    part: Message = {"type": "http.request", "body": b"x", "more_body": True}
    assert asked(Departure(wait), [part, *WHOLE, GONE], VERSION) == []
    assert asked(Departure(wait), [part, *WHOLE], VERSION) == [START]
    assert asked(Departure(wait), [part, *WHOLE, GONE], ()) == [START]


def test_an_answer_that_has_begun_is_ended() -> None:
    end: Message = {"type": "http.response.body", "body": b"x"}

    async def answer(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(START)
        await settle()
        await send(end)

    assert asked(Departure(answer), [*WHOLE, GONE], VERSION) == [START, end]


def test_an_error_of_the_application_stays_one() -> None:
    async def fail(_: Scope, receive: Receive, __: Send) -> None:
        await receive()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - it has no words
        asked(Departure(fail), WHOLE, VERSION)
