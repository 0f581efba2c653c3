"""Serves many clients over streamable HTTP, each request for the user that it was identified as."""

from __future__ import annotations

import math
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp

from deermem.integrations.mcp.identity import Verifier
from deermem.integrations.mcp.layers import CutShort, Identification, OwnOrigin, PrivateAnswers
from deermem.integrations.mcp.sessions import SessionLimit

PATH: Final = "/mcp"
MAX_BODY: Final = 4 * 1_024 * 1_024
MAX_SESSIONS: Final = 2_000
IDLE_SECONDS: Final = 1_800.0
DEFAULT_SHUTDOWN_SECONDS: Final = 30.0

_DEFAULT_PORT_OF_HTTP: Final = 80
_IDLE_CONNECTION_SECONDS: Final = 30
_BACKLOG: Final = 2_048


def create_app(
    server: Server[Any],
    verifier: Verifier,
    *,
    address: tuple[str, int],
    only_loopback: bool,
    origins: Iterable[str] = (),
    identifying_headers: Iterable[str] = (),
) -> Starlette:
    """Returns the ASGI application, which serves `/mcp`.

    Args:
        server: What is served; its scopes must come from `scope_of_caller`.
        verifier: Says who makes a request.
        address: Where it listens, host and port.
        only_loopback: Whether the `Host` must name this machine, which keeps pages of other sites out that
            have their own name lead here.
        origins: Origins, such as `https://chat.example`, whose pages may send requests beside its own.
        identifying_headers: What callers are known by, for `Vary`.
    """
    names = _names_of(*address) if only_loopback else []
    sessions = StreamableHTTPSessionManager(
        server,
        json_response=True,  # an event stream would be cut off when the server ends
        security_settings=TransportSecuritySettings(
            enable_dns_rebinding_protection=only_loopback,
            allowed_hosts=names,
            allowed_origins=[*(f"http://{name}" for name in names), *origins],
        ),
        session_idle_timeout=IDLE_SECONDS,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    # Nothing is sent but answers, so there is no stream for a client to keep open (GET).
    endpoint = StreamableHTTPASGIApp(sessions)
    return Starlette(
        routes=[Route(PATH, endpoint=endpoint, methods=["POST", "DELETE"])],
        middleware=[
            Middleware(CutShort),
            Middleware(PrivateAnswers, identifying_headers=tuple(identifying_headers)),
            Middleware(OwnOrigin, origins=frozenset(origins)),
            Middleware(Identification, verifier=verifier),
            Middleware(SessionLimit, idle_seconds=IDLE_SECONDS),
        ],
        lifespan=lifespan,
    )


def _names_of(host: str, port: int) -> list[str]:
    """Returns what a client of this machine may call the server in `Host`."""
    hosts = dict.fromkeys(["127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host])
    with_port = [f"{name}:{port}" for name in hosts]
    return [*with_port, *hosts] if port == _DEFAULT_PORT_OF_HTTP else with_port


class HttpServer(uvicorn.Server):
    """Serves one application in one process; ends without an error when it is told to.

    Args:
        app: What is served.
        protocol: The class of connections, or `auto`.
        shutdown_seconds: How long a stop waits for what is under way.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        protocol: Any = "auto",
        shutdown_seconds: float = DEFAULT_SHUTDOWN_SECONDS,
    ) -> None:
        self._announce: Callable[[], None] = lambda: None
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_IDLE_CONNECTION_SECONDS,
                timeout_graceful_shutdown=math.ceil(shutdown_seconds),
            )
        )

    def run_on(self, listener: socket.socket, announce: Callable[[], None]) -> None:
        """Serves on a bound socket until it is told to stop; `announce` is called once it accepts."""
        self._announce = announce
        self.run(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to accept connections."""
        await super().startup(sockets)
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


def listener_on(host: str, port: int) -> socket.socket:
    """Returns a socket that listens; port 0 takes a free one.

    Raises:
        OSError: The address cannot be listened on.
    """
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = addresses[0]
    return socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)


def url_of(listener: socket.socket) -> str:
    """Returns the address to give to clients."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}{PATH}" if ":" in host else f"http://{host}:{port}{PATH}"
