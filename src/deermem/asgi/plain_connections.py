"""Connections with the same limits where the faster parser, httptools, is not installed."""

from __future__ import annotations

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from deermem.asgi.bounds import Bounded


class PlainProtocol(Bounded, H11Protocol):
    """Closes a connection whose head comes too slowly; the parser refuses one that is too large itself."""

    def data_received(self, data: bytes) -> None:
        """Parses what arrives, and waits for the rest of a head or of a body that nobody wants."""
        super().data_received(data)
        if not self._waits_for_head() and not self._is_answered():
            self._stop_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._await_head()

    def _waits_for_head(self) -> bool:
        return self.conn.their_state is h11.IDLE
