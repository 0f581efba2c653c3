"""Gateways on real ports of this machine, and clients for them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from deermem import DeerMem
from deermem.asgi.limits import LimitSettings
from deermem.gateway.auth import Authenticator, AuthSettings, make_authenticator
from deermem.gateway.serve import GatewayServer
from deermem.gateway.settings import GatewaySettings
from deermem.manager import MemoryManager
from tests.support.threads import in_thread

PATIENCE = 30.0
# A document of a user about whom nothing is known.
EMPTY_SECTION = {"summary": "", "updatedAt": ""}


class Client(httpx.Client):
    """Talks to a gateway; `bucket` is where the memory of its user lies."""

    bucket: Path

    def document(self, agent: str | None = None) -> dict[str, Any]:
        """Returns the document of the user."""
        return body_of(self.get("/api/memory", params={"agent": agent} if agent else None))

    def create(self, content: str, **more: Any) -> str:
        """Creates a fact and returns its id."""
        answer = self.post("/api/memory/facts", json={"content": content, **more})
        return str(fact_in(body_of(answer), content)["id"])


class Running:
    """Is a gateway at work, with what it serves."""

    def __init__(self, url: str, manager: MemoryManager) -> None:
        self.url = url
        self.manager = manager

    @property
    def root(self) -> Path:
        """The storage root."""
        assert isinstance(self.manager, DeerMem)
        return Path(self.manager.repository.storage_root)

    @property
    def address(self) -> tuple[str, int]:
        """Where to connect to."""
        url = httpx.URL(self.url)
        assert url.port is not None
        return url.host, url.port

    def client(self, **headers: str) -> Client:
        """Returns a client that sends these headers, with `-` for `_`, in each request."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        client = Client(base_url=self.url, headers=named, timeout=PATIENCE, trust_env=False)
        if isinstance(self.manager, DeerMem):
            client.bucket = self.root / "users" / "default"
        return client


@contextmanager
def running(
    manager: MemoryManager,
    *,
    auth: AuthSettings | Authenticator | None = None,
    limits: LimitSettings | None = None,
    **settings: Any,
) -> Iterator[Running]:
    """Serves a manager while the block runs, and stops in order."""
    server = GatewayServer(
        manager,
        make_authenticator(auth or AuthSettings()) if isinstance(auth, AuthSettings | None) else auth,
        GatewaySettings(port=0, **settings),
        limits or LimitSettings(),
    )
    urls: list[str] = []
    started = threading.Event()

    def announce(url: str) -> None:
        urls.append(url)
        started.set()

    def work() -> None:
        try:
            with closing(socket.create_server(("127.0.0.1", 0))) as listener:
                server.run_on(listener, announce)
        finally:
            started.set()

    with in_thread(work):
        try:
            assert started.wait(PATIENCE)
            yield Running(urls[0], manager)
        finally:
            server.should_exit = True


def manager_at(root: Path, **settings: Any) -> DeerMem:
    """Returns a manager of a storage root."""
    return DeerMem({"storage_path": str(root), **settings})


def body_of(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
    """Returns the JSON body of an answer that has this status."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert isinstance(body, dict)
    return body


def refused(answer: httpx.Response, status: int, detail: str) -> dict[str, Any]:
    """Returns the body of an answer that must be this refusal."""
    body = body_of(answer, status)
    assert body["detail"] == detail
    return body


def invalid(answer: httpx.Response, *location: str | int) -> None:
    """Makes sure that an answer is a 422 about the value at this place."""
    places = [problem["loc"] for problem in body_of(answer, 422)["detail"]]
    assert [*location] in places


def fact_in(document: dict[str, Any], content: str) -> dict[str, Any]:
    """Returns the fact with this content."""
    (found,) = [fact for fact in document["facts"] if fact["content"] == content]
    assert isinstance(found, dict)
    return found


def contents(document: dict[str, Any]) -> list[str]:
    """Returns what the facts say, sorted."""
    return sorted(fact["content"] for fact in document["facts"])


def talk(address: tuple[str, int], sent: bytes, seconds: float = PATIENCE) -> bytes:
    """Sends bytes as they are, and returns what comes until the server closes the connection."""
    parts: list[bytes] = []
    # A server that closes while something is still on its way resets the connection.
    with closing(socket.create_connection(address, timeout=seconds)) as connection, suppress(ConnectionError):
        connection.sendall(sent)
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def request(
    method: str,
    path: str,
    *headers: str,
    body: bytes = b"",
    host: str = "127.0.0.1",
    length: int | None = None,
) -> bytes:
    """Returns a request as bytes, after which the connection ends."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
    if body or length is not None:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def status_of(answer: bytes) -> int:
    """Returns the status of an answer as bytes."""
    return int(answer.split(b" ", 2)[1])


def detail_of(answer: bytes) -> Any:
    """Returns the detail of an answer as bytes."""
    return json.loads(answer.partition(b"\r\n\r\n")[2])["detail"]
