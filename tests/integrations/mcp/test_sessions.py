"""No caller takes all sessions from the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from starlette.types import Message, Receive, Scope, Send

from deermem.integrations.mcp import Identity
from deermem.integrations.mcp.identity import KnownUser
from deermem.integrations.mcp.sessions import MOST_SESSIONS, TOO_MANY, SessionLimit
from tests.integrations.mcp.doors import USER_HEADER, Door
from tests.integrations.mcp.test_http import OPENING, Raw, hostile, message

IDLE = 60.0


class Opening:
    """Opens a session for each request without one, and ends those that are deleted."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.count = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        await self.gate.wait()
        headers = dict(scope["headers"])
        named = headers.get(b"mcp-session-id", b"").decode()
        status = 200
        answered = []
        if not named:
            self.count += 1
            named = f"session-{self.count}"
            self.open.add(named)
            answered = [(b"mcp-session-id", named.encode())]
        elif named not in self.open:
            status = 404
        elif scope["method"] == "DELETE":
            self.open.discard(named)
        await send({"type": "http.response.start", "status": status, "headers": answered})


class Asking:
    """Sends requests to a limited application, at a time of the test's choice."""

    def __init__(self, most: int) -> None:
        self.now = 0.0
        self.app = Opening()
        self.limit = SessionLimit(self.app, idle_seconds=IDLE, most=most, clock=lambda: self.now)

    async def ask(self, user: str, method: str = "POST", **headers: str) -> int:
        """Returns the status of a request."""
        said: list[Message] = []

        async def send(message: Message) -> None:
            said.append(message)

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        scope = {
            "type": "http",
            "method": method,
            "user": KnownUser(Identity(user, user)),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }
        await self.limit(scope, receive, send)
        return int(said[0]["status"])

    async def all_of(self, users: Iterable[str]) -> list[int]:
        """Returns the statuses of requests that come at once."""
        return list(await asyncio.gather(*map(self.ask, users)))


def test_one_too_many_is_refused_and_only_to_its_caller() -> None:
    async def work() -> None:
        asking = Asking(2)
        assert await asking.all_of(["alice", "alice"]) == [200, 200]
        assert await asking.ask("alice") == 429
        assert await asking.ask("alice", mcp_protocol_version="2025-11-25") == 429
        assert await asking.ask("alice", mcp_protocol_version="2026-07-28") == 200  # has no sessions
        assert await asking.ask("bob") == 200

    asyncio.run(work())


def test_those_that_are_being_opened_count() -> None:
    async def work() -> None:
        asking = Asking(2)
        asking.app.gate.clear()
        asked = asyncio.ensure_future(asking.all_of(["alice"] * 2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await asking.ask("alice") == 429
        asking.app.gate.set()
        assert await asked == [200, 200]

    asyncio.run(work())


@pytest.mark.parametrize("how", ["deleted", "gone", "idle"])
def test_one_that_is_over_makes_room(how: str) -> None:
    async def work() -> None:
        asking = Asking(2)
        await asking.all_of(["alice", "alice"])
        asking.now = IDLE / 2
        assert await asking.ask("alice", mcp_session_id="session-2") == 200
        assert await asking.ask("bob", "DELETE", mcp_session_id="session-9") == 404
        assert await asking.ask("alice") == 429
        if how == "deleted":
            assert await asking.ask("alice", "DELETE", mcp_session_id="session-1") == 200
        elif how == "gone":
            asking.app.open.discard("session-1")
            assert await asking.ask("alice", mcp_session_id="session-1") == 404
        else:
            asking.now = IDLE + 1  # session 2 was used since
        assert await asking.ask("alice") == 200
        assert await asking.ask("alice") == 429

    asyncio.run(work())


def test_nothing_is_kept_of_those_who_are_gone() -> None:
    async def work() -> None:
        asking = Asking(2)
        await asking.ask("alice")
        await asking.ask("alice", "DELETE", mcp_session_id="session-1")
        await asking.ask("alice", mcp_session_id="made-up")
        assert (asking.limit._used, asking.limit._opening) == ({}, {})

    asyncio.run(work())


def test_a_server_keeps_the_limit(web: Door) -> None:
    alice = Raw(web.url)
    sessions = [alice.session() for _ in range(MOST_SESSIONS)]
    refused = alice.post(OPENING)
    assert (refused.status_code, refused.json()) == (429, {"detail": TOO_MANY})
    assert alice.post(message("ping"), mcp_session_id=sessions[0]).status_code == 200
    body, headers = hostile(b'{"content":"x"}', "2026-07-28")
    assert alice.post(body, **headers).status_code == 200
    assert Raw(web.url, **{USER_HEADER: "bob"}).post(OPENING).status_code == 200
    assert alice.client.delete(web.url, headers={"mcp-session-id": sessions[0]}).status_code == 200
    assert alice.post(OPENING).status_code == 200
