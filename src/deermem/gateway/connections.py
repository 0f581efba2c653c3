"""Connections with limits that Uvicorn leaves to a proxy: how many, and time and size of a request's head."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES: Final = 32_768
MAX_HEADERS: Final = 100
STALL_SECONDS: Final = 60.0

_TOO_LARGE: Final = b"431 Request Header Fields Too Large"
_TOO_SLOW: Final = b"408 Request Timeout"
_TOO_MANY: Final = b"503 Service Unavailable\r\nretry-after: 1"


def limited_protocol(head_seconds: float, most: int) -> type[LimitedProtocol]:
    """Returns the protocol of connections.

    Args:
        head_seconds: How long a client may take to send the head of a request; the first one counts from
            the connection on, so that connections on which nothing is sent do not pile up.
        most: How many connections there may be at once.
    """
    return type("ConfiguredProtocol", (LimitedProtocol,), {"head_seconds": head_seconds, "most": most})


class LimitedProtocol(HttpToolsProtocol):
    """Closes a connection whose request has a head that is too large or comes too slowly.

    So it does where nobody takes the answer, and where there are too many connections.
    """

    head_seconds: ClassVar[float]
    most: ClassVar[int]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._unparsed_bytes = 0
        self._in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as Uvicorn has it
        """Begins to wait for the first head."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(_TOO_MANY)
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops waiting."""
        self._stop_timer()
        self._stop_stall_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses what arrives, as long as it comes to something.

        The parser keeps a header until it ends, so one that does not end, before or after a body, is only
        seen here.
        """
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > MAX_HEAD_BYTES:
            self._refuse(_TOO_LARGE)
        elif self._head_timer is None and self._is_answered():
            # The rest of a body that nobody wants, or empty lines: once they come, Uvicorn waits for ever.
            self._await_head()

    def on_message_begin(self) -> None:
        """Begins to wait for the rest of a head."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = self._unparsed_bytes = 0
        if self._head_timer is None:
            self._await_head()

    def on_url(self, url: bytes) -> None:
        """Counts the request line."""
        if self._has_room(len(url)):
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Counts a header."""
        if self._has_room(len(name) + len(value)) and len(self.headers) < MAX_HEADERS:
            super().on_header(name, value)
        else:
            self._refuse(_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Lets a complete head be answered, unless the connection is being closed."""
        self._stop_timer()
        self._in_head = False
        self._unparsed_bytes = 0
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Takes a part of the body of a request that is being answered."""
        self._unparsed_bytes = 0
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends a request that is being answered."""
        if not self.transport.is_closing():
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Begins to wait for the client to take what was sent."""
        super().pause_writing()
        self._stop_stall_timer()
        self._stall_timer = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stops waiting for the client."""
        self._stop_stall_timer()
        super().resume_writing()

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_seconds, self._give_up)

    def _give_up(self) -> None:
        """Closes the connection, unless the answer to an earlier request is still to come."""
        if self._in_head and (self.cycle is None or self._is_answered()):
            self._refuse(_TOO_SLOW)
        elif self._is_answered():
            self._stop_timer()
            self.transport.close()
        else:
            self._await_head()

    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def _unsupported_upgrade_warning(self) -> None:
        """Says nothing: anybody may ask for an upgrade, and what Uvicorn advises would not help."""

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _has_room(self, size: int) -> bool:
        self._head_bytes += size
        if self._head_bytes <= MAX_HEAD_BYTES:
            return True
        self._refuse(_TOO_LARGE)
        return False

    def _refuse(self, status: bytes) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 %s\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
            self.transport.close()
