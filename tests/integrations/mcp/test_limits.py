"""The limits of the gateway hold for MCP over HTTP, with the same settings and the same meaning."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2
import pytest
from mcp import Client

from deermem import DeerMem
from deermem.asgi.limits import TOO_MANY, TOO_SLOW, TOO_SLOW_BODY, LimitSettings
from deermem.gateway.settings import GatewaySettings
from deermem.integrations.mcp import wire
from deermem.model.identity import Scope
from tests.integrations.mcp.doors import PATIENCE, USER_HEADER, Door, answer, serving
from tests.integrations.mcp.test_command import deermem, refused, served
from tests.integrations.mcp.test_http import OPENING, Raw, hostile, message

ERAS = ["2025-11-25", "2026-07-28"]
KNOWN_BY = (USER_HEADER,)


def adding(raw: Raw, content: str, version: str) -> httpx2.Response:
    """Asks for a fact to be added."""
    body, headers = hostile(json.dumps({"content": content}).encode(), version)
    if version == ERAS[0]:
        headers["mcp-session-id"] = raw.session()
    return raw.post(body, **headers)


@pytest.mark.parametrize("version", ERAS)
def test_a_caller_that_asks_too_often_waits_and_nobody_else(other: DeerMem, version: str) -> None:
    limits = LimitSettings(requests_per_minute=1, burst=3)
    with serving(other, identifying_headers=KNOWN_BY, limits=limits) as url:
        alice, bob = Raw(url), Raw(url, **{USER_HEADER: "bob"})
        body, headers = hostile(b'{"content":"x"}', version)
        answers = [alice.post(body, **headers) for _ in range(5)]
        assert [each.status_code == 429 for each in answers] == [False] * 3 + [True] * 2
        assert answers[-1].json() == {"detail": TOO_MANY}
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert alice.client.delete(url).status_code == 429
        assert bob.post(OPENING).status_code == 200


def test_requests_of_nobody_are_not_counted(other: DeerMem) -> None:
    with serving(other, identifying_headers=KNOWN_BY, limits=LimitSettings(burst=1)) as url:
        assert [Raw(url).post(OPENING, **{USER_HEADER: ""}).status_code for _ in range(3)] == [401] * 3
        assert Raw(url).post(OPENING).status_code == 200


def test_where_everybody_is_the_same_user_nobody_is_counted(other: DeerMem) -> None:
    with serving(other, limits=LimitSettings(requests_per_minute=1, burst=1)) as url:
        assert [Raw(url).post(OPENING).status_code for _ in range(5)] == [200] * 5


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_may_be_as_large_as_the_setting_says(other: DeerMem, version: str, chunked: bool) -> None:
    with serving(other, limits=LimitSettings(body_bytes=2_000)) as url:
        raw = Raw(url)
        session = raw.session()
        for size, is_large in ((1_000, False), (2_000, True)):
            body, headers = hostile(b'{"content":"' + b"x" * size + b'"}', version)
            if version == ERAS[0]:
                headers["mcp-session-id"] = session
            content = iter([body[:500], body[500:]]) if chunked else body
            told = raw.client.post(url, content=content, headers=headers)
            assert (told.status_code == 413) == is_large
            if is_large:
                assert told.json() == {"detail": "The body is larger than 2000 bytes."}


def test_no_message_may_be_larger_than_over_stdio_whatever_the_setting_says(other: DeerMem) -> None:
    with serving(other, limits=LimitSettings(body_bytes=100_000_000)) as url:
        for size in (wire.MAX_LINE, wire.MAX_LINE + 1):
            body = json.dumps(OPENING).encode()
            told = Raw(url).post(body + b" " * (size - len(body)))
            assert told.status_code == (200 if size == wire.MAX_LINE else 413)


@pytest.mark.parametrize("version", ERAS)
def test_a_call_that_takes_too_long_is_answered_and_what_has_begun_is_done(
    other: DeerMem, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    other.create_fact("first", user_id="alice")
    with serving(other, limits=LimitSettings(request_seconds=1)) as url:
        raw = Raw(url)
        with other.repository.engine.maintenance(Scope.of("alice").user):
            told = adding(raw, "second", version)
            assert (told.status_code, told.json()) == (504, {"detail": TOO_SLOW})
        deadline = time.monotonic() + PATIENCE
        while len(other.reload_memory(user_id="alice")["facts"]) != 2:
            assert time.monotonic() < deadline
        assert adding(raw, "second", version).json()["result"]["structuredContent"]["outcome"] == "duplicate"
    assert "Traceback" not in caplog.text


def sent(url: str, body: bytes, length: int) -> bytes:
    """Returns a request that announces so many bytes, and has these."""
    parts = httpx2.URL(url)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{parts.port}\r\n{USER_HEADER}: alice\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {length}\r\n\r\n"
    )
    return head.encode() + body


def connected(url: str, stack: ExitStack) -> socket.socket:
    """Connects, until the stack is left."""
    parts = httpx2.URL(url)
    return stack.enter_context(closing(socket.create_connection((parts.host, parts.port or 0), PATIENCE)))


@pytest.mark.parametrize("version", ["", "MCP-Protocol-Version: 2026-07-28\r\n"])
def test_a_body_that_comes_slowly_is_cut_off(
    other: DeerMem, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(other, limits=LimitSettings(request_seconds=1)) as url, ExitStack() as stack:
        connection = connected(url, stack)
        request = sent(url, b'{"jsonrpc', 1_000)
        connection.sendall(request.replace(b"Content-Type", version.encode() + b"Content-Type", 1))
        told = connection.recv(65_536)
        assert b" 408 " in told.split(b"\r\n")[0]
        assert TOO_SLOW_BODY.encode() in told
    assert caplog.text == ""


@pytest.fixture(params=["httptools", "h11"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns each parser of requests in turn; one of them is hidden for the other."""
    if request.param == "h11":
        for name in ("deermem.asgi.connections", "uvicorn.protocols.http.httptools_impl"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, "httptools", None)
    return str(request.param)


@pytest.mark.usefixtures("parser")
def test_more_connections_than_allowed_are_told_to_retry_and_the_others_are_served(other: DeerMem) -> None:
    with serving(other, connections=GatewaySettings(connections=5)) as url, ExitStack() as stack:
        for _ in range(4):
            connected(url, stack)
        assert Raw(url).post(OPENING).status_code == 200
        with ExitStack() as last:
            connected(url, last)
            told = connected(url, last).recv(65_536)
            assert b" 503 " in told.split(b"\r\n")[0]
            assert b"retry-after: 1" in told


@pytest.mark.usefixtures("parser")
def test_a_client_that_does_not_send_a_head_is_cut_off_and_others_do_not_notice(other: DeerMem) -> None:
    with serving(other, connections=GatewaySettings(header_seconds=0.5)) as url, ExitStack() as stack:
        silent = [connected(url, stack) for _ in range(20)]
        for connection in silent[10:]:
            connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: loc")
        assert Raw(url).post(OPENING).status_code == 200
        for connection in silent:
            assert b" 408 " in connection.recv(1_000).split(b"\r\n")[0]


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("then", [b"\r\n", b"x"])
def test_a_client_that_sends_something_now_and_then_after_its_answer_is_cut_off(
    other: DeerMem, then: bytes
) -> None:
    settings = GatewaySettings(header_seconds=0.5, idle_seconds=1)
    with serving(other, connections=settings) as url, ExitStack() as stack:
        connection = connected(url, stack)
        body = json.dumps(OPENING).encode()
        whole = sent(url, body, len(body))
        unknown = sent(url, b"", 100_000).replace(f"{USER_HEADER}: alice\r\n".encode(), b"")
        connection.sendall(whole if then == b"\r\n" else unknown)
        assert connection.recv(65_536)
        deadline = time.monotonic() + PATIENCE
        connection.settimeout(0.1)
        while time.monotonic() < deadline:
            try:
                connection.sendall(then)
                if not connection.recv(65_536):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert time.monotonic() < deadline


@pytest.mark.usefixtures("parser")
def test_a_slow_call_is_not_taken_for_a_slow_head(other: DeerMem, root: Path) -> None:
    other.create_fact("first", user_id="alice")

    async def add(client: Client) -> None:
        with other.repository.engine.maintenance(Scope.of("alice").user):
            adding = asyncio.ensure_future(answer(client, "memory_add", content="second"))
            for _ in range(3):
                await asyncio.sleep(0.25)  # longer, all in all, than a head may take
                assert (await answer(client, "memory_status"))["facts"] == 1
        assert (await adding)["outcome"] == "added"

    with serving(other, connections=GatewaySettings(header_seconds=0.5)) as url:
        Door(root, url=url).use(add)


@pytest.mark.usefixtures("parser")
def test_a_head_that_does_not_end_is_refused(other: DeerMem) -> None:
    with serving(other) as url, ExitStack() as stack:
        connection = connected(url, stack)
        try:
            for _ in range(64):
                connection.sendall(b"POST /mcp HTTP/1.1\r\na: " + b"b" * 65_536)
            told = connection.recv(1_000)
        except ConnectionError:
            return
        assert not told or told.split()[1] in (b"400", b"431")


def test_the_command_takes_the_settings_of_the_gateway(root: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(
        "[limits]\nbody_bytes = 3_000\n\n[gateway]\nport = 1\nheader_seconds = 0.5\nconnections = 3\n",
        "utf-8",
    )
    with served(root, "--config", str(settings), DEERMEM_LIMIT_BODY_BYTES="2000") as server:
        assert Raw(server.url).post(OPENING).status_code == 200
        told = Raw(server.url).post(message("ping", padding="x" * 2_000))
        assert told.json() == {"detail": "The body is larger than 2000 bytes."}
        with ExitStack() as stack:
            silent = [connected(server.url, stack) for _ in range(4)]
            assert b" 503 " in silent[3].recv(1_000)
            assert b" 408 " in silent[0].recv(1_000)
        server.end()
    for variable in ("DEERMEM_LIMIT_BURST", "DEERMEM_LIMITS_BURST", "DEERMEM_GATEWAY_CONNECTIONS"):
        assert variable in refused(root, "--transport", "http", **{variable: "0"})


def test_the_command_counts_the_requests_of_a_token(root: Path) -> None:
    token = deermem(root, "token", "create", "--user-id", "alice")
    limit = {"DEERMEM_LIMIT_BURST": "2", "DEERMEM_LIMIT_REQUESTS_PER_MINUTE": "1"}
    with served(root, DEERMEM_AUTH_MODE="token", **limit) as server:
        known = Raw(server.url, authorization=f"Bearer {token}")
        assert [known.post(OPENING).status_code for _ in range(3)] == [200, 200, 429]
        server.end()
