"""Pages of other origins, and names that lead here from elsewhere, are kept away from a local gateway."""

from __future__ import annotations

import pytest

from deermem.gateway.browser import names_loopback, parse_origin
from tests.gateway.servers import (
    Client,
    Running,
    body_of,
    detail_of,
    manager_at,
    refused,
    request,
    running,
    status_of,
    talk,
)

MEMORY = "/api/memory"
FACTS = "/api/memory/facts"
FOREIGN = "Changes from pages of another origin are refused."
ELSEWHERE = "The Host header does not name this machine."
NO_JSON = "The body must be application/json."


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "LOCALHOST:80", "[::1]", "[::1]:8431", "127.8.8.8:1"]
)
def test_names_of_this_machine_are_taken(untouched: Running, host: str) -> None:
    assert status_of(talk(untouched.address, request("GET", MEMORY, host=host))) == 200


@pytest.mark.parametrize(
    "host",
    [
        "memory.example",
        "127.0.0.1.example",
        "localhost.example",
        "192.168.0.1",
        "0.0.0.0",  # noqa: S104 - what a page may send
        "127.0.0.1@memory.example",
        "memory.example#127.0.0.1",
        "127.0.0.1/x",
        "127.0.0.1:80:80",
        "127.0.0.1:port",
        "[::1",
        "",
    ],
)
def test_any_other_host_is_refused_in_mode_none(untouched: Running, host: str) -> None:
    answer = talk(untouched.address, request("GET", MEMORY, host=host))
    assert (status_of(answer), detail_of(answer)) == (403, ELSEWHERE)


def test_two_hosts_are_refused(untouched: Running) -> None:
    answer = talk(untouched.address, request("GET", MEMORY, "Host: localhost"))
    assert status_of(answer) == 400


def test_where_callers_are_known_any_host_is_taken(client: Client) -> None:
    assert client.get(MEMORY, headers={"Host": "memory.example"}).status_code == 200


CHANGES = [
    ("POST", FACTS, {"content": "x"}),
    ("POST", f"{FACTS}/batch", {"facts": [{"content": "x"}]}),
    ("POST", f"{FACTS}/batch-delete", {"ids": ["x"]}),
    ("POST", f"{MEMORY}/import", {}),
    ("POST", f"{MEMORY}/reload", None),
    ("PATCH", f"{MEMORY}/summaries", {}),
    ("PATCH", f"{FACTS}/x", {"content": "x"}),
    ("DELETE", f"{FACTS}/x", None),
    ("DELETE", MEMORY, None),
    ("DELETE", "/api/agents/coder", None),
]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "file://", "x", ""])
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_a_change_from_a_page_of_another_origin_is_refused(
    client: Client, method: str, path: str, body: object, origin: str
) -> None:
    refused(client.request(method, path, json=body, headers={"Origin": origin}), 403, FOREIGN)


def test_a_second_origin_does_not_hide_a_foreign_one(untouched: Running) -> None:
    own = f"Origin: {untouched.url}"
    host = untouched.url.removeprefix("http://")
    answer = talk(
        untouched.address, request("DELETE", MEMORY, own, "Origin: https://evil.example", host=host)
    )
    assert (status_of(answer), detail_of(answer)) == (403, FOREIGN)


def test_a_page_of_the_gateway_itself_may_change(local: Client, gateway: Running) -> None:
    answer = local.post(FACTS, json={"content": "x"}, headers={"Origin": gateway.url})
    assert answer.status_code == 200


def test_a_page_of_an_allowed_origin_may_change(tmp_path: object) -> None:
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    origin = "https://memory.example"
    with running(manager_at(tmp_path), allowed_origins=(origin,)) as gateway, gateway.client() as client:
        assert client.post(FACTS, json={"content": "x"}, headers={"Origin": origin}).status_code == 200
        for other in ("https://memory.example:444", "http://memory.example", "https://a.memory.example"):
            refused(client.post(FACTS, json={"content": "y"}, headers={"Origin": other}), 403, FOREIGN)


def test_a_foreign_page_cannot_read_what_its_request_comes_to(local: Client) -> None:
    answer = local.get(MEMORY, headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "text/plain; application/json",
        "application/json, text/plain",
        "",
    ],
)
def test_a_body_that_a_form_can_send_is_refused(client: Client, content_type: str) -> None:
    for method, path, _ in CHANGES:
        answer = client.request(
            method, path, content=b'{"content": "x"}', headers={"Content-Type": content_type}
        )
        refused(answer, 415, NO_JSON)


def test_a_body_without_a_type_is_refused(untouched: Running) -> None:
    for headers in ([], ["Content-Type: application/json", "Content-Type: text/plain"]):
        answer = talk(untouched.address, request("POST", FACTS, *headers, body=b'{"content": "x"}'))
        assert (status_of(answer), detail_of(answer)) == (415, NO_JSON)


def test_a_body_in_chunks_needs_its_type_too(untouched: Running) -> None:
    head = request("POST", FACTS, "Transfer-Encoding: chunked")
    answer = talk(untouched.address, head + b'10\r\n{"content": "x"}\r\n0\r\n\r\n')
    assert (status_of(answer), detail_of(answer)) == (415, NO_JSON)


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8"])
def test_json_is_taken(client: Client, content_type: str) -> None:
    answer = client.post(FACTS, content=b'{"content": "x"}', headers={"Content-Type": content_type})
    assert answer.status_code == 200


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 415), ("gzip, identity", 415), ("Identity", 200)])
def test_a_body_that_is_said_to_be_compressed_is_refused(client: Client, encoding: str, status: int) -> None:
    answer = client.post(FACTS, json={"content": "x"}, headers={"Content-Encoding": encoding})
    assert answer.status_code == status
    if status == 415:
        refused(answer, 415, "The body must not be compressed.")


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://a.example", ("https", "a.example", 443)),
        ("http://A.example:8080", ("http", "a.example", 8080)),
        ("http://[::1]:1", ("http", "::1", 1)),
        ("https://a.example/", None),
        ("https://u@a.example", None),
        ("ftp://a.example", None),
        ("https://a.example:x", None),
        ("//a.example", None),
        ("null", None),
    ],
)
def test_an_origin_is_scheme_host_and_port(text: str, origin: object) -> None:
    assert parse_origin(text) == origin


def test_an_address_that_only_looks_like_loopback_is_none() -> None:
    assert not names_loopback("127.0.0.1.")
    assert not names_loopback("2130706433")
    assert not names_loopback("0x7f.1")


def test_every_answer_is_private_and_depends_on_who_calls(client: Client, local: Client) -> None:
    for answer in (client.get(MEMORY), client.get("/api/nothing"), client.post(FACTS, json={})):
        assert answer.headers["cache-control"] == "private, no-cache"
        vary = answer.headers["vary"].lower().split(", ")
        assert {"x-forwarded-user", "x-deermem-proxy-secret", "x-deermem-user", "x-deermem-bucket"} <= {*vary}
        assert answer.headers["x-content-type-options"] == "nosniff"
    answer = local.get(MEMORY)
    assert answer.headers["cache-control"] == "private, no-cache"
    assert "vary" not in answer.headers


def test_the_page_about_the_routes_runs_no_script_and_asks_no_other_server(local: Client) -> None:
    page = local.get("/docs")
    assert page.status_code == 200
    assert "<script" not in page.text
    assert "http" not in page.text.replace("https://", "http").partition("<style>")[0]
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    for path in body_of(local.get("/openapi.json"))["paths"]:
        assert path in page.text
