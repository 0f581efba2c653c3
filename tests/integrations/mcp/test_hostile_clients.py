"""Clients over HTTP that send what no client should, without a name or in great number."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem
from deermem.integrations.mcp.sessions import MOST_SESSIONS
from tests.gateway_auth.signing import signed
from tests.integrations.mcp.doors import USER_HEADER, Door, signed_variables
from tests.integrations.mcp.test_command import Served, deermem, served
from tests.integrations.mcp.test_http import OPENING, VERSION, Raw, hostile, message

NEWEST = "2026-07-28"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def test_credentials_are_looked_at_before_the_method_the_path_and_the_session(root: Path) -> None:
    token = deermem(root, "token", "create", "--user-id", "alice")
    gone = deermem(root, "token", "create", "--user-id", "alice")
    deermem(root, "token", "revoke", gone.split("_")[1])
    with served(root, DEERMEM_AUTH_MODE="token") as server:
        known = Raw(server.url, authorization=f"Bearer {token}")
        session = known.session()
        refuse_all(server, session, ["", f"Bearer {gone}", f"Bearer {token}x", "Bearer", f"Basic {token}"])
        twice = [("authorization", f"Bearer {token}"), ("authorization", f"Bearer {gone}")]
        told = known.client.request("POST", server.url, headers=twice, json=OPENING)
        assert told.status_code in (400, 401)
        assert known.post(message("ping"), mcp_session_id=session).json()["result"] == {}
        server.end()


def test_signed_credentials_that_are_over_open_nothing(root: Path, tmp_path: Path) -> None:
    with served(root, **signed_variables(tmp_path), DEERMEM_AUTH_LEEWAY="0") as server:
        session = Raw(server.url, authorization=f"Bearer {signed('oct-1', 'HS512')}").session()
        over = signed("oct-1", "HS512", exp=int(time.time()) - 1)
        early = signed("oct-1", "HS512", nbf=int(time.time()) + 60)
        refuse_all(server, session, [f"Bearer {over}", f"Bearer {early}"])
        server.end()


def refuse_all(server: Served, session: str, credentials: list[str]) -> None:
    """Makes sure that nothing of a server can be had with these."""
    for each in credentials:
        raw = Raw(server.url, authorization=each, mcp_session_id=session)
        for method in METHODS:
            for path in ("/mcp", "/mcp/", "/other"):
                told = raw.client.request(
                    method, server.url.removesuffix("/mcp") + path, json=message("ping")
                )
                assert told.status_code == 401, (each, method, path)
                assert told.headers["www-authenticate"].startswith("Bearer")
        for body, headers in (hostile(b'{"content":"x"}', VERSION), hostile(b'{"content":"x"}', NEWEST)):
            assert raw.post(body, **headers).status_code == 401


@pytest.mark.parametrize("version", [VERSION, NEWEST])
@pytest.mark.parametrize(
    "body",
    [
        [],
        [message("ping"), message("ping", 2)],
        [OPENING],
        [[message("ping")]],
        None,
        1,
        "ping",
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
    ],
    ids=lambda body: json.dumps(body)[:40],
)
def test_batches_and_what_is_no_message_are_refused_and_open_no_session(
    web: Door, body: Any, version: str
) -> None:
    raw = Raw(web.url)
    session = {} if version == NEWEST else {"mcp_session_id": raw.session()}
    for more in (session, {}):
        told = raw.post(body, mcp_protocol_version=version, **more)
        assert told.status_code == 400
        assert "result" not in told.json()
        assert len(told.content) < 5_000
    for _ in range(MOST_SESSIONS - 1):  # else there would be no room for this many
        assert raw.post(body, mcp_protocol_version=VERSION).status_code == 400
    assert raw.post(OPENING).status_code == 200


@pytest.mark.parametrize("version", ["1999-01-01", "2099-01-01", "x" * 3_000, "", "DRAFT", "é"])
def test_a_version_that_nobody_knows_opens_nothing(web: Door, other: DeerMem, version: str) -> None:
    raw = Raw(web.url)
    session = raw.session()
    body, headers = hostile(b'{"content":"x"}', NEWEST)
    headers["mcp-protocol-version"] = version
    named = {**headers, "mcp-session-id": session}
    for each in (headers, named):
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in each.items()]
        told = raw.client.post(web.url, content=body.replace(NEWEST.encode(), b"2099-01-01"), headers=encoded)
        assert told.status_code == 400
        assert "error" in told.json()
    assert other.get_memory(user_id="alice")["facts"] == []
    offered = raw.post({**OPENING, "params": {**OPENING["params"], "protocolVersion": version}})
    assert offered.json()["result"]["protocolVersion"] == VERSION  # the client may take it or leave


@pytest.mark.parametrize("version", [VERSION, NEWEST])
def test_a_great_many_unknown_arguments_are_counted_and_not_described(web: Door, version: str) -> None:
    raw = Raw(web.url)
    session = raw.session()
    body, headers = hostile(json.dumps({f"k{number}": 1 for number in range(200_000)}).encode(), version)
    if version == VERSION:
        headers["mcp-session-id"] = session
    told = raw.post(body, **headers).json()["result"]
    assert told["isError"] is True
    text = told["content"][0]["text"]
    assert text.count("is no argument of this tool") == 5
    assert text.endswith("; and 199995 more.")


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files as Linux shows them")
def test_abandoned_sessions_take_no_files_and_no_threads_and_end(web: Door) -> None:
    def taken() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    users = [Raw(web.url, **{USER_HEADER: user}) for user in ("alice", "bob")]
    for user in users:
        user.client.delete(web.url, headers={"mcp-session-id": user.session()})
    before = taken()
    for _ in range(2):
        sessions = [(user, user.session()) for user in users for _ in range(MOST_SESSIONS)]
        assert [user.post(OPENING).status_code for user in users] == [429, 429]
        assert taken() == before
        for user, session in sessions:
            assert user.client.delete(web.url, headers={"mcp-session-id": session}).status_code == 200
