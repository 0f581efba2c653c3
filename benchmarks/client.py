"""Asks a server over several connections that stay open, each as soon as its last request was answered."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from selectors import EVENT_READ, DefaultSelector
from time import perf_counter
from typing import Final, NamedTuple

_PATIENCE: Final = 60.0
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


class Request(NamedTuple):
    """Is what is sent, and what kind of request it counts as."""

    kind: str
    data: bytes


@dataclass(slots=True)
class Answers:
    """Counts what came back: seconds by kind of request, and how often each status came for it."""

    elapsed: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)

    @property
    def number(self) -> int:
        """How many requests were answered."""
        return self.statuses.total()


class Connection:
    """Is one connection, and the answer that is on its way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=_PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.kind = ""
        self.sent_at = 0.0
        self._received = bytearray()
        self._wanted: int | None = None

    def send(self, request: Request) -> None:
        """Sends a request."""
        self.kind = request.kind
        self.sent_at = perf_counter()
        self.socket.sendall(request.data)

    def receive(self) -> int | None:
        """Takes what has come; returns the status once the answer is whole.

        Raises:
            ConnectionError: The server hung up.
        """
        data = self.socket.recv(262_144)
        if not data:
            raise ConnectionError("the server hung up")
        self._received += data
        if self._wanted is None:
            end = self._received.find(_HEAD_END)
            if end < 0:
                return None
            self._wanted = end + len(_HEAD_END) + _length_of_body(bytes(self._received[:end]))
        if len(self._received) < self._wanted:
            return None
        status = int(self._received[9:12])
        self._received.clear()
        self._wanted = None
        return status


def _length_of_body(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(_LENGTH):
            return int(line[len(_LENGTH) :])
    return 0


def request(path: str, *headers: str, method: str = "GET", body: bytes = b"", kind: str = "read") -> Request:
    """Returns a request to a server on loopback."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return Request(kind, "\r\n".join([*lines, "", ""]).encode() + body)


def ask(
    address: tuple[str, int],
    requests: Iterator[Request],
    *,
    connections: int,
    number: int | None = None,
    seconds: float | None = None,
) -> Answers:
    """Sends requests until there were so many, or for so long; waits for all answers.

    Raises:
        ConnectionError: The server hung up.
        TimeoutError: There was no answer for a minute.
    """
    answers = Answers()
    with ExitStack() as stack, DefaultSelector() as selector:
        opened = [Connection(address) for _ in range(connections)]
        for connection in opened:
            stack.callback(connection.socket.close)
            selector.register(connection.socket, EVENT_READ, connection)
        start = perf_counter()
        end = start + (float("inf") if seconds is None else seconds)
        left = float("inf") if number is None else number
        waiting = 0
        for connection in opened[: int(min(left, connections))]:
            connection.send(next(requests))
            waiting += 1
            left -= 1
        while waiting:
            ready = selector.select(_PATIENCE)
            if not ready:
                raise TimeoutError("the server does not answer")
            for key, _ in ready:
                connection = key.data
                status = connection.receive()
                if status is None:
                    continue
                now = perf_counter()
                answers.seconds.setdefault(connection.kind, []).append(now - connection.sent_at)
                answers.statuses[connection.kind, status] += 1
                if left > 0 and now < end:
                    connection.send(next(requests))
                    left -= 1
                else:
                    waiting -= 1
        answers.elapsed = perf_counter() - start
    return answers
