"""Serves many clients over streamable HTTP, each request for the user that it was identified as."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deermem.integrations.mcp.identity import KnownUser, NotLetIn, Verifier

PATH: Final = "/mcp"
MAX_BODY: Final = 4 * 1_024 * 1_024
MAX_SESSIONS: Final = 1_000
IDLE_SECONDS: Final = 1_800.0
DEFAULT_SHUTDOWN_SECONDS: Final = 30.0

_DEFAULT_PORT_OF_HTTP: Final = 80
_THREADS: Final = 4
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
            Middleware(PrivateAnswers, identifying_headers=tuple(identifying_headers)),
            Middleware(OwnOrigin, origins=frozenset(origins)),
            Middleware(Identification, verifier=verifier),
        ],
        lifespan=lifespan,
    )


def _names_of(host: str, port: int) -> list[str]:
    """Returns what a client of this machine may call the server in `Host`."""
    hosts = dict.fromkeys(["127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host])
    with_port = [f"{name}:{port}" for name in hosts]
    return [*with_port, *hosts] if port == _DEFAULT_PORT_OF_HTTP else with_port


class Identification:
    """Finds out who makes a request before anything of it is read (pure ASGI).

    Args:
        app: What to protect.
        verifier: Says who calls; runs in threads of its own, since a disk that hangs must not stop the loop.
    """

    def __init__(self, app: ASGIApp, *, verifier: Verifier) -> None:
        self._app = app
        self._verifier = verifier
        self._executor = ThreadPoolExecutor(_THREADS, "deermem-identification")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        if scope["type"] == "http":
            loop = asyncio.get_running_loop()
            try:
                caller = await loop.run_in_executor(self._executor, self._verifier, HTTPConnection(scope))
            except NotLetIn as refused:
                answer = JSONResponse({"detail": refused.detail}, refused.status, dict(refused.headers))
                await answer(scope, receive, send)
                return
            scope["user"] = KnownUser(caller)
        await self._app(scope, receive, send)


class OwnOrigin:
    """Refuses requests of pages of another origin (pure ASGI).

    Args:
        app: What to protect.
        origins: Origins that are let in beside the server's own.
    """

    def __init__(self, app: ASGIApp, *, origins: frozenset[str]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            hosts = headers.getlist("host")
            own = {f"{scope['scheme']}://{host}" for host in hosts}
            if len(hosts) != 1:
                answer = JSONResponse({"detail": "Exactly one Host header is needed."}, 400)
                await answer(scope, receive, send)
                return
            if not set(headers.getlist("origin")) <= own | self._origins:
                answer = JSONResponse({"detail": "Pages of another origin are refused."}, 403)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


class PrivateAnswers:
    """Marks every answer as one caller's own (pure ASGI).

    Args:
        app: Whose answers to mark.
        identifying_headers: What a caller is known by.
    """

    def __init__(self, app: ASGIApp, *, identifying_headers: tuple[str, ...]) -> None:
        self._app = app
        self._headers = [(b"x-content-type-options", b"nosniff")]
        if identifying_headers:
            self._headers.append((b"vary", ", ".join(identifying_headers).encode("latin-1")))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on and marks its answer."""

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                private = [] if b"cache-control" in names else [(b"cache-control", b"private, no-store")]
                message["headers"] = [*message["headers"], *self._headers, *private]
            await send(message)

        await self._app(scope, receive, send_marked if scope["type"] == "http" else send)


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
