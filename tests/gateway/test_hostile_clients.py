"""Clients that send what no client should, slowly, or in great number."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from deermem.asgi.limits import LimitSettings
from tests.gateway.servers import (
    Client,
    Running,
    body_of,
    contents,
    invalid,
    manager_at,
    refused,
    request,
    running,
    status_of,
    talk,
)

MEMORY = "/api/memory"
FACTS = "/api/memory/facts"
JSON = "Content-Type: application/json"


@pytest.mark.parametrize(
    "path",
    [
        f"{FACTS}/../../../../etc/passwd",
        f"{FACTS}/..%2f..%2f..%2fmemory.json",
        f"{FACTS}/%2e%2e%2f%2e%2e%2fmemory",
        f"{FACTS}/..%5c..%5cmemory",
        f"{FACTS}/%00",
        f"{FACTS}/%ff%fe",
        f"{FACTS}/fact%0d%0aX-Injected:%201",
        f"{FACTS}/{'a' * 129}",
        f"{FACTS}/{'a' * 5000}",
        "/../../etc/passwd",
        "//evil.example/api/memory",
        f"{MEMORY}?agent=..%2f..",
        f"{MEMORY}?agent=%0d%0aX-Injected:%201",
        f"{FACTS}?cursor=..%2f..%2fetc",
        f"{FACTS}?category=%00&source=%f0%9f%92%a9",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_paths_lead_nowhere_and_come_back_as_no_header(untouched: Running, method: str, path: str) -> None:
    body = b'{"content": "x"}' if method == "PATCH" else b""
    answer = talk(untouched.address, request(method, path, *([JSON] if body else []), body=body))
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert status_of(answer) in (200, 403, 404, 405, 422)
    assert b"x-injected" not in head.lower()
    assert str(untouched.root).encode() not in answer
    assert len(rest) < 2_000


@pytest.mark.parametrize(
    "header",
    [
        'If-Match: "m1-x"\rX-Injected: 1',
        "If-None-Match: \x00",
        "Idempotency-Key: a\x7fb",
        "Content-Length: -1",
        "Content-Length: 1\r\nContent-Length: 2",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "X-Forwarded-For: 10.0.0.1",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-User: bob",
        "X-DeerMem-User: bob",
        "X-DeerMem-Bucket: bob",
        "Authorization: Bearer nonsense",
        " folded: 1",
        "no colon",
    ],
)
def test_headers_make_no_other_caller_and_no_other_answer(untouched: Running, header: str) -> None:
    answer = talk(untouched.address, request("GET", MEMORY, header))
    assert b"of bob" not in answer
    assert b"x-injected" not in answer.lower()
    assert not answer or status_of(answer) in (200, 400, 403)


@pytest.mark.parametrize(("proxies", "status"), [((), 200), (("127.0.0.1",), 403), (("10.0.0.0/8",), 200)])
def test_what_a_proxy_says_of_the_client_counts_only_where_the_proxy_is_trusted(
    tmp_path: Path, proxies: tuple[str, ...], status: int
) -> None:
    with running(manager_at(tmp_path), trusted_proxies=proxies) as gateway, gateway.client() as client:
        # Mode `none` is for this machine alone.
        for said in ("192.0.2.1", "192.0.2.1:80", "127.0.0.1, 192.0.2.1", "unknown"):
            assert client.get(MEMORY, headers={"X-Forwarded-For": said}).status_code == status


def test_a_key_cannot_inject_a_header(client: Client) -> None:
    answer = client.post(FACTS, json={"content": "x"}, headers={"Idempotency-Key": "k\tX-Injected: 1"})
    invalid(answer, "header", "Idempotency-Key")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"\xff\xfe",
        b'{"content": "\\ud800"}',
        b'{"content": 1}',
        b'{"content": null}',
        b'{"content": "x", "confidence": ' + b"9" * 5_000 + b"}",
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        b"[" * 100_000,
    ],
)
def test_a_body_that_is_none_is_invalid_and_is_not_repeated(client: Client, body: bytes) -> None:
    for method, path in (("POST", FACTS), ("POST", f"{FACTS}/batch"), ("POST", f"{MEMORY}/import")):
        answer = client.request(method, path, content=body, headers={"Content-Type": "application/json"})
        assert body_of(answer, 422)["detail"]
        assert len(answer.content) < 4_000


def test_what_is_invalid_is_told_within_bounds(client: Client) -> None:
    document = {"user": {"x" * 100_000: 1}, "facts": [{"content": ""}] * 1_000}
    answer = client.patch(f"{MEMORY}/summaries", json=document)
    assert answer.status_code == 422
    assert len(answer.content) < 4_000
    answer = client.post(f"{FACTS}/batch", json={"facts": [{"content": 1, "confidence": "secret"}] * 900})
    assert len(body_of(answer, 422)["detail"]) <= 20
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"{MEMORY}/import", {"facts": [0] * 10_000}),
        ("POST", f"{FACTS}/batch", {"facts": [0] * 10_000}),
        ("POST", f"{FACTS}/batch-delete", {"ids": [0] * 10_000}),
        ("PATCH", f"{MEMORY}/summaries", dict.fromkeys(map(str, range(10_000)))),
        ("PATCH", f"{MEMORY}/summaries", {"user": dict.fromkeys(map(str, range(10_000)))}),
        ("PATCH", f"{MEMORY}/summaries", {"user": {"topOfMind": dict.fromkeys(map(str, range(10_000)))}}),
    ],
)
def test_a_body_with_many_mistakes_is_given_up_at_the_first(
    client: Client, method: str, path: str, body: object
) -> None:
    # To describe all of them keeps the event loop busy: four million take a minute.
    assert len(body_of(client.request(method, path, json=body), 422)["detail"]) == 1


def test_a_fact_of_a_million_bytes_is_stored_and_a_larger_one_is_invalid(client: Client) -> None:
    client.create("x" * 1_000_000)
    invalid(client.post(FACTS, json={"content": "y" * 1_000_001}), "body", "content")
    invalid(client.post(FACTS, json={"content": "é" * 600_000}), "body", "content")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_ten_million_bytes_is_refused(client: Client, chunked: bool) -> None:
    body = json.dumps({"content": "x" * 10_000_000}).encode()
    content = iter([body[:5_000_000], body[5_000_000:]]) if chunked else body
    answer = client.post(FACTS, content=content, headers={"Content-Type": "application/json"})
    refused(answer, 413, "The body is larger than 8388608 bytes.")
    assert client.document()["revision"] == 0


def test_a_head_that_does_not_end_is_refused(untouched: Running) -> None:
    for flood in (b"x" * 1_000_000, b"a: b\r\n" * 200, b"a: " + b"b" * 1_000_000):
        answer = talk(untouched.address, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + flood)
        assert not answer or status_of(answer) in (400, 431)
    long_line = talk(untouched.address, b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\n")
    assert not long_line or status_of(long_line) in (400, 414, 431)


def test_trailers_that_do_not_end_are_refused(untouched: Running) -> None:
    head = request("POST", FACTS, JSON, "Transfer-Encoding: chunked")
    answer = talk(untouched.address, head + b"1\r\n{\r\n0\r\nX: " + b"x" * 1_000_000)
    assert not answer or status_of(answer) == 431


def test_a_client_that_does_not_send_a_head_is_cut_off_and_others_do_not_notice(tmp_path: Path) -> None:
    with running(manager_at(tmp_path), header_seconds=0.5) as gateway, gateway.client() as client:
        address = gateway.address
        with ExitStack() as stack:
            silent = [
                stack.enter_context(closing(socket.create_connection(address, timeout=20))) for _ in range(20)
            ]
            for connection in silent[10:]:
                connection.sendall(b"GET /api/memory HTTP/1.1\r\nHost: loc")
            client.create("meanwhile")
            for connection in silent:
                assert status_of(connection.recv(1_000)) == 408
        assert contents(client.document()) == ["meanwhile"]


AFTER_AN_ANSWER = {
    "empty lines": (request("GET", "/healthz").replace(b"Connection: close\r\n", b""), b"\r\n"),
    "a body that nobody reads": (
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
        b"x",
    ),
    "chunks that nobody reads": (
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"1\r\nx\r\n",
    ),
    "the body of a refused request": (
        b"POST /api/memory HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
        b"x",
    ),
}


@pytest.mark.parametrize("what", AFTER_AN_ANSWER)
def test_a_client_that_sends_something_now_and_then_after_its_answer_is_cut_off(
    tmp_path: Path, what: str
) -> None:
    first, then = AFTER_AN_ANSWER[what]
    with (
        running(manager_at(tmp_path), header_seconds=0.5, idle_seconds=1) as gateway,
        closing(socket.create_connection(gateway.address, timeout=20)) as connection,
    ):
        connection.sendall(first)
        assert status_of(connection.recv(65_536)) in (200, 415)
        deadline = time.monotonic() + 20
        with suppress(ConnectionError):
            connection.settimeout(0.1)
            while time.monotonic() < deadline:
                connection.sendall(then)
                try:
                    if not connection.recv(65_536):
                        break
                except TimeoutError:
                    continue
        assert time.monotonic() < deadline


def test_a_client_whose_request_is_refused_may_send_its_body_to_the_end_and_go_on(local: Client) -> None:
    with closing(socket.create_connection((local.base_url.host, local.base_url.port or 0))) as connection:
        connection.sendall(request("POST", FACTS, length=5).replace(b"Connection: close\r\n", b""))
        assert status_of(whole_answer(connection)) == 415
        connection.sendall(b"12345" + request("GET", "/healthz"))
        assert status_of(whole_answer(connection)) == 200


def whole_answer(connection: socket.socket) -> bytes:
    """Returns one answer, in however many pieces it comes, and nothing of the next."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(1)
    headers = answer.lower().split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in headers if line.startswith(b"content-length:"))
    while length > 0:
        piece = connection.recv(length)
        assert piece, "the connection was closed within an answer"
        answer += piece
        length -= len(piece)
    return answer


def test_more_connections_than_allowed_are_told_to_retry_and_the_others_are_served(tmp_path: Path) -> None:
    with running(manager_at(tmp_path), connections=5) as gateway, gateway.client() as client:
        client.create("a fact")
        with ExitStack() as stack:
            for _ in range(4):
                stack.enter_context(closing(socket.create_connection(gateway.address)))
            assert contents(client.document()) == ["a fact"]
            answer = talk(gateway.address, b"")
            assert status_of(answer) == 503
            assert b"retry-after: 1" in answer
            assert contents(client.document()) == ["a fact"]
        deadline = time.monotonic() + 20
        while status_of(talk(gateway.address, request("GET", "/healthz"))) != 200:
            assert time.monotonic() < deadline


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
@pytest.mark.parametrize(
    ("soft", "hard", "room", "raised"), [(300, 4_000, 2_000, 2_416), (300, 600, 184, 600), (300, 300, 1, 300)]
)
def test_connections_leave_open_files_to_the_store(soft: int, hard: int, room: int, raised: int) -> None:
    script = (
        "import resource as r; from deermem.asgi.open_files import room_for;"
        f"r.setrlimit(r.RLIMIT_NOFILE, ({soft}, {hard}));"
        "print(room_for(2_000, 16), r.getrlimit(r.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(room), str(raised)]
    assert ("only" in done.stderr) == (room < 2_000)


def test_a_client_that_sends_its_body_slowly_is_cut_off(tmp_path: Path) -> None:
    limits = LimitSettings(request_seconds=1)
    with running(manager_at(tmp_path), limits=limits) as gateway:
        sent = request("POST", FACTS, JSON, body=b'{"content": ', length=1_000)
        answer = talk(gateway.address, sent)
        assert status_of(answer) == 408
        assert not (tmp_path / "users").exists()


def test_a_client_that_goes_away_leaves_a_whole_fact_or_none(gateway: Running, local: Client) -> None:
    sent = request("POST", FACTS, JSON, body=b'{"content": "complete"}')
    for cut in (len(sent), len(sent) - 1, len(sent) - 20, 30):
        with closing(socket.create_connection(gateway.address)) as connection:
            connection.sendall(sent[:cut])
    deadline = time.monotonic() + 20
    while contents(local.document()) != ["complete"]:
        assert time.monotonic() < deadline


def many_connections(root: Path, number: int) -> None:
    """Opens connections, lets each ask at once, and then looks at all the answers."""
    with running(manager_at(root)) as gateway, gateway.client() as client, ExitStack() as stack:
        client.create("a fact")
        connections = [
            stack.enter_context(closing(socket.create_connection(gateway.address, timeout=60)))
            for _ in range(number)
        ]
        for connection in connections:
            connection.sendall(request("GET", MEMORY))
        statuses = []
        for connection in connections:
            answer = b""
            while part := connection.recv(65_536):
                answer += part
            statuses.append(status_of(answer))
        assert statuses == [200] * number
        assert contents(client.document()) == ["a fact"]


def test_a_hundred_connections_at_once_are_answered(tmp_path: Path) -> None:
    many_connections(tmp_path, 100)


@pytest.mark.stress
def test_a_thousand_connections_at_once_are_answered(tmp_path: Path) -> None:
    many_connections(tmp_path, 1_000)


def test_more_requests_than_may_wait_are_told_to_retry(tmp_path: Path) -> None:
    with running(manager_at(tmp_path), waiting=1, threads=1) as gateway, ExitStack() as stack:
        connections = [
            stack.enter_context(closing(socket.create_connection(gateway.address, timeout=60)))
            for _ in range(50)
        ]
        for connection in connections:
            connection.sendall(request("POST", FACTS, JSON, body=b'{"content": "x"}'))
        answers = []
        for connection in connections:
            answer = b""
            while part := connection.recv(65_536):
                answer += part
            answers.append(answer)
        statuses = {status_of(answer) for answer in answers}
        assert statuses <= {200, 409, 503}
        assert 503 in statuses
        assert all(b"retry-after: 1" in answer for answer in answers if status_of(answer) == 503)
