"""Connections with limits that Uvicorn leaves to a proxy: how many, and time and size of a request's head."""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from deermem.asgi.bounds import TOO_LARGE, Bounded

MAX_HEAD_BYTES: Final = 32_768
MAX_HEADERS: Final = 100


class LimitedProtocol(Bounded, HttpToolsProtocol):
    """Closes a connection whose request has a head that is too large or comes too slowly.

    So it does where nobody takes the answer, and where there are too many connections.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_bytes = 0
        self._unparsed_bytes = 0
        self._in_head = True

    def data_received(self, data: bytes) -> None:
        """Parses what arrives, as long as it comes to something.

        The parser keeps a header until it ends, so one that does not end, before or after a body, is only
        seen here.
        """
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > MAX_HEAD_BYTES:
            self._refuse(TOO_LARGE)
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
            self._refuse(TOO_LARGE)

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

    def _waits_for_head(self) -> bool:
        return self._in_head

    def _has_room(self, size: int) -> bool:
        self._head_bytes += size
        if self._head_bytes <= MAX_HEAD_BYTES:
            return True
        self._refuse(TOO_LARGE)
        return False
