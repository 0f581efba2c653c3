"""What bounds a connection, whatever parses it: how many there are, and how long its parts take."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final

STALL_SECONDS: Final = 60.0

TOO_LARGE: Final = b"431 Request Header Fields Too Large"
TOO_SLOW: Final = b"408 Request Timeout"
_TOO_MANY: Final = b"503 Service Unavailable\r\nretry-after: 1"


class Bounded(asyncio.Protocol):
    """Closes a connection that is one too many, whose client is silent, or whose client takes no answer.

    It stands before one of Uvicorn's classes of connections, which has the attributes that are declared here.
    """

    head_seconds: ClassVar[float]
    most: ClassVar[int]

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    connections: set[Any]
    cycle: Any

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

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
        if self._waits_for_head() and (self.cycle is None or self._is_answered()):
            self._refuse(TOO_SLOW)
        elif self._is_answered():
            self._stop_timer()
            self.transport.close()
        else:
            self._await_head()

    def _waits_for_head(self) -> bool:
        raise NotImplementedError

    def _is_answered(self) -> bool:
        return self.cycle is not None and bool(self.cycle.response_complete)

    def _unsupported_upgrade_warning(self) -> None:
        """Says nothing: anybody may ask for an upgrade, and what Uvicorn advises would not help."""

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: bytes) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 %s\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
            self.transport.close()
