"""Listens on a socket and serves one application, until it is told to stop."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

_BACKLOG: Final = 2_048
# As many connections the event loop takes before it looks at any of them.
_ACCEPTED_AT_ONCE: Final = 64


def listener_on(host: str, port: int) -> socket.socket:
    """Returns a socket that listens; port 0 takes a free one.

    Raises:
        OSError: The address cannot be listened on.
    """
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = addresses[0]
    return socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)


def url_of(listener: socket.socket) -> str:
    """Returns the address to give to clients, without a path."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class ListeningServer(uvicorn.Server):
    """Serves one application in one process; ends without an error when it is told to.

    Args:
        app: What is served.
        protocol: The class of connections.
        idle_seconds: How long an idle connection is kept.
        shutdown_seconds: How long a stop waits for what is under way.
        trusted_proxies: Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` count.
        access_log: Write a line for each request.
    """

    def __init__(
        self,
        app: ASGIApp,
        protocol: type[asyncio.Protocol],
        *,
        idle_seconds: int,
        shutdown_seconds: float,
        trusted_proxies: Sequence[str] = (),
        access_log: bool = False,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=access_log,
            server_header=False,
            proxy_headers=bool(trusted_proxies),
            forwarded_allow_ips=list(trusted_proxies),
            backlog=_ACCEPTED_AT_ONCE,
            timeout_keep_alive=idle_seconds,
            timeout_graceful_shutdown=math.ceil(shutdown_seconds),
        )
        super().__init__(config)
        self._announce: Callable[[], None] = lambda: None

    def run_on(self, listener: socket.socket, announce: Callable[[str], None]) -> None:
        """Serves on a bound socket until it is told to stop; `announce` is told the address."""
        self._announce = lambda: announce(url_of(listener))
        self.run(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to accept connections."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)  # Uvicorn has one number for it and for how many are taken at once
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends connections and the application, in order also when there is no time left."""
        await super().shutdown(sockets)
        if self.force_exit:  # Uvicorn leaves the application out then, and its end is told as a failure
            await self.lifespan.shutdown()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as Uvicorn has it
        """Begins to stop; told again, it does not wait."""
        self.force_exit = self.should_exit
        self.should_exit = True
