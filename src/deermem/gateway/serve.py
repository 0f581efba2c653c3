"""Serves a gateway on a socket, until it is told to stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from types import FrameType

from deermem.asgi.limits import LimitSettings
from deermem.asgi.listener import ListeningServer, listener_on
from deermem.asgi.open_files import room_for
from deermem.asgi.protocols import limited_protocol
from deermem.gateway.app import create_app
from deermem.gateway.auth import Authenticator
from deermem.gateway.backend import Backend
from deermem.gateway.service import Gateway
from deermem.gateway.settings import GatewaySettings
from deermem.manager import MemoryManager


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
    with closing(listener_on(settings.host, settings.port)) as listener:
        # A name may stand for another address than it seems to.
        authenticator.allows_listening_on(listener.getsockname()[0])
        settings = replace(settings, connections=room_for(settings.connections, settings.threads))
        server = GatewayServer(manager, authenticator, settings, limits)
        server.run_on(listener, announce)


class GatewayServer(ListeningServer):
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
        super().__init__(
            create_app(gateway, authenticator, limits),
            limited_protocol(settings.header_seconds, settings.connections),
            idle_seconds=settings.idle_seconds,
            shutdown_seconds=settings.shutdown_seconds,
            trusted_proxies=settings.trusted_proxies,
            access_log=settings.access_log,
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins to stop; told again, it does not wait."""
        super().handle_exit(sig, frame)
        self._gateway.end_within(0 if self.force_exit else self._gateway.settings.shutdown_seconds)
