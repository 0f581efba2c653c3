"""Over HTTP each request is for the user that it was identified as, whatever session it belongs to."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from deermem import DeerMem
from deermem.integrations.mcp.http import _names_of
from tests.integrations.mcp.doors import PATIENCE, USER_HEADER, Door, answer, run, serving

HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "connection": "close",
}
VERSION = "2025-11-25"


def message(method: str, request_id: int | None = 1, **parameters: Any) -> dict[str, Any]:
    sent: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": parameters}
    return sent if request_id is None else {**sent, "id": request_id}


OPENING = message(
    "initialize", protocolVersion=VERSION, capabilities={}, clientInfo={"name": "test", "version": "1"}
)


class Raw:
    """Sends requests as they are."""

    def __init__(self, url: str, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.client = httpx2.Client(
            base_url=url,
            headers={**HEADERS, USER_HEADER: "alice", **named},
            timeout=PATIENCE,
            trust_env=False,
        )
        self.url = url

    def post(self, body: Any, **headers: str) -> httpx2.Response:
        """Sends a message, or bytes as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(
            self.url, content=data, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )

    def session(self) -> str:
        """Opens a session and returns its id."""
        answer = self.post(OPENING)
        assert answer.status_code == 200, answer.text
        return str(answer.headers["mcp-session-id"])


def test_two_clients_of_different_users_are_never_mixed(web: Door, other: DeerMem, era: str) -> None:
    door = Door(web.root, era, web.url)

    async def fill(client: Client, user: str) -> None:
        for number in range(8):
            await answer(client, "memory_add", content=f"{user} {number}")
            mine = (await answer(client, "memory_list"))["facts"]
            assert {fact["content"].split()[0] for fact in mine} == {user}
            assert (await answer(client, "memory_status"))["user"] == user
            resources = (await client.list_resources()).resources
            assert all((resource.title or "").startswith(user) for resource in resources)

    async def both() -> None:
        async with door.client("alice") as alice, door.client("bob") as bob, door.client("a@b.c") as third:
            await asyncio.gather(fill(alice, "alice"), fill(bob, "bob"), fill(third, "a@b.c"))
            (fact, *_) = (await answer(bob, "memory_list"))["facts"]
            assert (await answer(alice, "memory_get", id=fact["id"]))["outcome"] == "not_found"
            assert (await answer(alice, "memory_delete", id=fact["id"]))["outcome"] == "not_found"

    run(both())
    for user in ("alice", "bob", "a@b.c"):
        assert len(other.get_memory(user_id=user)["facts"]) == 8


def test_a_session_of_one_user_does_not_exist_for_another(web: Door, other: DeerMem) -> None:
    other.create_fact("Likes tea", user_id="alice")
    alice = Raw(web.url)
    session = alice.session()
    asked = message("tools/call", name="memory_list", arguments={})
    assert "Likes tea" in alice.post(asked, mcp_session_id=session).text
    bob = Raw(web.url, **{USER_HEADER: "bob"})
    for stolen in (asked, OPENING, message("ping")):
        refused = bob.post(stolen, mcp_session_id=session)
        assert refused.status_code == 404
        assert "Likes tea" not in refused.text
    assert bob.client.delete(web.url, headers={"mcp-session-id": session}).status_code == 404
    assert "Likes tea" in alice.post(asked, mcp_session_id=session).text
    assert alice.post(asked, mcp_session_id="0" * 32).status_code == 404


def test_a_session_does_not_outlive_its_credentials(web: Door) -> None:
    raw = Raw(web.url)
    session = raw.session()
    refused = raw.post(message("ping"), mcp_session_id=session, **{USER_HEADER: ""})
    assert (refused.status_code, refused.json()) == (401, {"detail": "Authentication is needed."})
    assert refused.headers["www-authenticate"] == "Bearer"


def test_nothing_of_a_request_is_read_before_its_caller_is_known(web: Door) -> None:
    refused = Raw(web.url).post(b"garbage" * 1_000_000, **{USER_HEADER: ""})
    assert refused.status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:8432"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"host": "localhost.evil.example:{port}"}, 421),
        ({"host": "127.0.0.1:{port}@evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "https://127.0.0.1:{port}"}, 403),
        ({"host": "evil.example", "origin": "http://evil.example"}, 421),
        ({"content-type": "text/plain"}, 400),
        ({"origin": "http://127.0.0.1:{port}"}, 200),
        ({"origin": "https://chat.example"}, 200),
        ({"host": "localhost:{port}"}, 200),
    ],
)
def test_pages_of_other_sites_are_kept_out(other: DeerMem, headers: dict[str, str], status: int) -> None:
    with serving(other, origins=("https://chat.example",)) as url:
        port = str(httpx2.URL(url).port)
        named = {name: value.replace("{port}", port) for name, value in headers.items()}
        assert Raw(url).post(OPENING, **named).status_code == status


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the loopback interface has one address")
@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_another_address_of_the_loopback_interface_is_its_own_name(
    root: Path, other: DeerMem, host: str
) -> None:
    with serving(other, host=host) as url:
        assert Door(root, url=url).call("memory_status")["facts"] == 0


def test_at_the_usual_port_its_name_needs_none() -> None:
    assert "127.0.0.1" in _names_of("127.0.0.1", 80)
    assert "127.0.0.1" not in _names_of("127.0.0.1", 8432)


def test_a_server_for_authenticated_callers_may_have_any_name(other: DeerMem) -> None:
    with serving(other, only_loopback=False) as url:
        assert Raw(url).post(OPENING, host="memory.example").status_code == 200
        assert (
            Raw(url).post(OPENING, host="memory.example", origin="http://memory.example").status_code == 200
        )
        assert Raw(url).post(OPENING, host="memory.example", origin="http://evil.example").status_code == 403


def test_answers_are_private(web: Door) -> None:
    answered = Raw(web.url).post(OPENING)
    assert "no-store" in answered.headers["cache-control"] or "no-cache" in answered.headers["cache-control"]
    assert answered.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS"])
def test_there_is_no_stream_to_keep_open(web: Door, method: str) -> None:
    assert Raw(web.url).client.request(method, web.url).status_code == 405


@pytest.mark.parametrize("path", ["/mcp/", "//mcp", "/mcp/x", "/mcp%2f", "/", ""])
def test_no_path_leads_elsewhere(web: Door, path: str) -> None:
    told = Raw(web.url).client.post(
        web.url.removesuffix("/mcp") + path, headers={"host": "evil.example"}, follow_redirects=False
    )
    assert (told.status_code, told.headers.get("location")) == (404, None)


def test_other_paths_are_nothing(web: Door) -> None:
    assert Raw(web.url).client.get(web.url.removesuffix("/mcp") + "/api/memory").status_code == 404


def test_a_body_that_is_too_large_is_refused(web: Door) -> None:
    content = "x" * (5 * 1_024 * 1_024)
    body = message("tools/call", name="memory_add", arguments={"content": content})
    assert Raw(web.url).post(body).status_code == 413


def hostile(content: bytes, version: str) -> tuple[bytes, dict[str, str]]:
    meta = (
        b',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},'
        b'"io.modelcontextprotocol/clientCapabilities":{}}'
        if version == "2026-07-28"
        else b""
    )
    body = (
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"memory_add","arguments":'
        + content
        + meta
        + b"}}"
    )
    headers = {"mcp-protocol-version": version}
    if version == "2026-07-28":
        headers |= {"mcp-method": "tools/call", "mcp-name": "memory_add"}
    return body, headers


@pytest.mark.parametrize("version", [VERSION, "2026-07-28"])
@pytest.mark.parametrize(
    "arguments",
    [
        b'{"content":"\\ud800"}',
        b'{"\\ud800":"x","content":"y"}',
        b'{"content":"x","confidence":NaN}',
        b'{"content":"x","confidence":1e999}',
        b'{"content":"x","confidence":-0.1}',
        b'{"content":["x"]}',
        b'{"content":"' + b"x" * 20_001 + b'"}',
        b'{"content":"x","category":"' + b"c" * 65 + b'"}',
        b'["content"]',
        b"[" * 5_000,
        b"9" * 6_000,
    ],
    ids=lambda value: value[:36].decode(),
)
def test_hostile_arguments_are_refused_and_change_nothing(
    web: Door, other: DeerMem, arguments: bytes, version: str
) -> None:
    raw = Raw(web.url)
    body, headers = hostile(arguments, version)
    if version == VERSION:
        headers["mcp-session-id"] = raw.session()
    answered = raw.post(body, **headers)
    assert answered.status_code < 500
    told = answered.json()
    assert "error" in told or told["result"]["isError"] is True, told
    for secret in ("Traceback", "pydantic", str(web.root), "input_value"):
        assert secret not in answered.text
    assert other.get_memory(user_id="alice")["facts"] == []


@pytest.mark.parametrize("version", [VERSION, "2026-07-28"])
def test_the_same_request_with_kind_arguments_is_served(web: Door, version: str) -> None:
    raw = Raw(web.url)
    body, headers = hostile(b'{"content":"x"}', version)
    if version == VERSION:
        headers["mcp-session-id"] = raw.session()
    assert raw.post(body, **headers).json()["result"]["structuredContent"]["outcome"] == "added"


@pytest.mark.parametrize(
    "content",
    [
        "NUL \0 inside",
        "\x1b[2J clears",
        "right \u202e left",
        "tag \U000e0041",
        "a\r\nb\u2028c\x85d",
        "---\nid: x\n---\n# no",
    ],
)
def test_every_other_text_is_kept_exactly_and_shown_so_that_nothing_hides(web: Door, content: str) -> None:
    async def keep(client: Client) -> None:
        fact = (await answer(client, "memory_add", content=content))["fact"]
        assert fact["content"] == content
        result = await client.call_tool("memory_get", {"id": fact["id"]})
        text: Any = result.content[0].text  # type: ignore[union-attr]
        hiding = set(content) & set("\0\x1b\u202e\U000e0041\u2028\x85")
        assert not hiding & set(text)
        assert json.loads(text)["fact"]["content"] == content
        told = await answer(client, "memory_update", id=fact["id"], confidence=1.0, expected_text=content)
        assert told["outcome"] == "updated"

    web.use(keep)
