"""`HEAD` tells what `GET` would, and does what it may."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import SECRET
from tests.gateway.servers import Client, Running, request, status_of, talk

PATHS = [
    "/api/memory",
    "/api/memory/export",
    "/api/memory/config",
    "/api/memory/status",
    "/api/memory/facts",
    "/api/memory/facts/nobody",
    "/api/memory?agent=no+name",
    "/api/agents",
    "/api/nothing",
    "/docs",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/readyz",
]


@pytest.mark.parametrize("path", PATHS)
def test_head_is_answered_as_get_is_without_a_body(client: Client, path: str) -> None:
    client.create("a fact")
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    del got.headers["date"], head.headers["date"]
    if path == "/metrics":  # they count each other
        del got.headers["content-length"], head.headers["content-length"]
    assert head.headers == got.headers


def test_head_knows_what_the_client_has(client: Client) -> None:
    etag = client.head("/api/memory").headers["etag"]
    assert client.head("/api/memory", headers={"If-None-Match": etag}).status_code == 304


def test_head_is_refused_where_there_is_no_get(untouched: Running) -> None:
    with untouched.client() as client:
        head = client.head("/api/memory/import")
        assert (head.status_code, head.headers["allow"]) == (405, "POST")


def test_head_needs_credentials_as_get_does(shared: Running) -> None:
    with shared.client() as client:
        assert client.head("/api/memory").status_code == 401


def test_no_byte_of_a_body_is_sent_to_head(shared: Running) -> None:
    sent = request("HEAD", "/api/memory", "X-Forwarded-User: somebody", f"X-DeerMem-Proxy-Secret: {SECRET}")
    answer = talk(shared.address, sent)
    assert status_of(answer) == 200
    assert answer.endswith(b"\r\n\r\n")
