"""Serves a gateway on a socket, until it is told to stop."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from types import FrameType
from typing import Final

import uvicorn

from deermem.gateway.app import create_app
from deermem.gateway.auth import Authenticator
from deermem.gateway.backend import Backend
from deermem.gateway.connections import limited_protocol
from deermem.gateway.limits import LimitSettings
from deermem.gateway.open_files import room_for
from deermem.gateway.service import Gateway
from deermem.gateway.settings import GatewaySettings
from deermem.manager import MemoryManager

_BACKLOG: Final = 2_048
# As many connections the event loop takes before it looks at any of them.
_ACCEPTED_AT_ONCE: Final = 64


def serve(
    manager: MemoryManager,
    authenticator: Authenticator,
    settings: GatewaySettings,
    limits: LimitSettings,
    announce: Callable[[str], None],
) -> None:
    """Serves until SIGTERM or SIGINT; what has begun by then comes to its end and is answered.

    The manager is closed at the end. A second signal does not wait.

    Args:
        manager: What is served.
        authenticator: Says who calls.
        settings: How to serve.
        limits: What one request, and one caller, may take.
        announce: Is told the address once connections are accepted.

    Raises:
        InvalidInputError: The address is beyond this machine, and callers are not authenticated.
        OSError: The address cannot be listened on.
    """
    authenticator.allows_listening_on(settings.host)
    with closing(_listener(settings)) as listener:
        # A name may stand for another address than it seems to.
        authenticator.allows_listening_on(listener.getsockname()[0])
        settings = replace(settings, connections=room_for(settings.connections, settings.threads))
        server = GatewayServer(manager, authenticator, settings, limits)
        server.run_on(listener, announce)


class GatewayServer(uvicorn.Server):
    """Serves one manager in one process; ends without an error when it is told to.

    Args:
        manager: What is served; it is closed at the end.
        authenticator: Says who calls.
        settings: How to serve; the address is not looked at.
        limits: What one request, and one caller, may take.
    """

    def __init__(
        self,
        manager: MemoryManager,
        authenticator: Authenticator,
        settings: GatewaySettings,
        limits: LimitSettings,
    ) -> None:
        backend = Backend(
            manager, read_only=settings.read_only, max_facts_per_request=settings.max_facts_per_request
        )
        gateway = Gateway(backend, settings, has_roles=bool(authenticator.identifying_headers))
        self._gateway = gateway
        config = uvicorn.Config(
            create_app(gateway, authenticator, limits),
            http=limited_protocol(settings.header_seconds, settings.connections),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=settings.access_log,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            backlog=_ACCEPTED_AT_ONCE,
            timeout_keep_alive=settings.idle_seconds,
            timeout_graceful_shutdown=math.ceil(settings.shutdown_seconds),
        )
        super().__init__(config)
        self._announce: Callable[[], None] = lambda: None

    def run_on(self, listener: socket.socket, announce: Callable[[str], None]) -> None:
        """Serves on a bound socket until it is told to stop; `announce` is told the address."""
        self._announce = lambda: announce(_url(listener))
        self.run(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to accept connections."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)  # Uvicorn has one number for both
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends connections and the gateway, in order also when there is no time left."""
        await super().shutdown(sockets)
        if self.force_exit:  # Uvicorn leaves the application out then, and its end is told as a failure
            await self.lifespan.shutdown()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as Uvicorn has it
        """Begins to stop; told again, it does not wait."""
        self.force_exit = self.should_exit
        self._gateway.end_within(0 if self.force_exit else self._gateway.settings.shutdown_seconds)
        self.should_exit = True


def _listener(settings: GatewaySettings) -> socket.socket:
    addresses = socket.getaddrinfo(
        settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, _, _, _, address = addresses[0]
    return socket.create_server((str(address[0]), settings.port), family=family, backlog=_BACKLOG)


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
