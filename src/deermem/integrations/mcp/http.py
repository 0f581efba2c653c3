"""Serves many clients over streamable HTTP, each request for the user that it was identified as."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp

from deermem.asgi.identification import Identification, PrivateAnswers
from deermem.asgi.limits import BodyLimit, CallerRates, LimitSettings, RateLimit, TimeLimit
from deermem.asgi.listener import ListeningServer
from deermem.asgi.open_files import room_for
from deermem.asgi.protocols import limited_protocol
from deermem.integrations.mcp.identity import KnownToSdk, Verifier
from deermem.integrations.mcp.layers import CutShort, Departure, OwnOrigin
from deermem.integrations.mcp.sessions import SessionLimit
from deermem.integrations.mcp.wire import MAX_LINE
from deermem.manager.off_loop import READERS, WRITERS

PATH: Final = "/mcp"
MAX_SESSIONS: Final = 2_000
IDLE_SECONDS: Final = 1_800.0

# How many calls work on the store at once, for all users.
THREADS: Final = READERS + WRITERS

_CACHING: Final = "private, no-store"
_DEFAULT_PORT_OF_HTTP: Final = 80


class ConnectionLimits(Protocol):
    """Says what connections may take; the settings of the gateway do."""

    @property
    def connections(self) -> int:
        """How many there may be at once."""
        ...

    @property
    def header_seconds(self) -> float:
        """How long a client may take to send the head of a request."""
        ...

    @property
    def idle_seconds(self) -> int:
        """How long an idle one is kept."""
        ...

    @property
    def shutdown_seconds(self) -> float:
        """How long a stop waits for what is under way."""
        ...


def create_app(
    server: Server[Any],
    verifier: Verifier,
    *,
    address: tuple[str, int],
    only_loopback: bool,
    origins: Iterable[str] = (),
    identifying_headers: Iterable[str] = (),
    limits: LimitSettings | None = None,
) -> Starlette:
    """Returns the ASGI application, which serves `/mcp`.

    Args:
        server: What is served; its scopes must come from `scope_of_caller`.
        verifier: Says who makes a request.
        address: Where it listens, host and port.
        only_loopback: Whether the `Host` must name this machine, which keeps pages of other sites out that
            have their own name lead here.
        origins: Origins, such as `https://chat.example`, whose pages may send requests beside its own.
        identifying_headers: What callers are known by, for `Vary`. Without any there is one caller, and
            nobody to protect from it by a rate.
        limits: What one request, and one caller, may take.
    """
    limits = limits or LimitSettings()
    identifying = tuple(identifying_headers)
    body_bytes = min(limits.body_bytes, MAX_LINE)
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
        max_request_body_size=body_bytes,
        max_sessions=MAX_SESSIONS,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    # Nothing is sent but answers, so there is no stream for a client to keep open (GET).
    endpoint = StreamableHTTPASGIApp(sessions)
    app = Starlette(
        routes=[Route(PATH, endpoint=endpoint, methods=["POST", "DELETE"])],
        middleware=[
            Middleware(CutShort),
            Middleware(PrivateAnswers, identifying_headers=identifying, cache_control=_CACHING),
            Middleware(OwnOrigin, origins=frozenset(origins)),
            Middleware(TimeLimit, seconds=limits.request_seconds),  # credentials may be on a disk that hangs
            Middleware(Identification, identify=verifier, reads_files=True),
            *([Middleware(RateLimit, rates=CallerRates.of(limits))] if identifying else []),
            Middleware(BodyLimit, limit=body_bytes),
            Middleware(Departure),
            Middleware(KnownToSdk),
            Middleware(SessionLimit, idle_seconds=IDLE_SECONDS),
        ],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # it would send clients to whatever host they named
    return app


def _names_of(host: str, port: int) -> list[str]:
    """Returns what a client of this machine may call the server in `Host`."""
    hosts = dict.fromkeys(["127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host])
    with_port = [f"{name}:{port}" for name in hosts]
    return [*with_port, *hosts] if port == _DEFAULT_PORT_OF_HTTP else with_port


def server_of(app: ASGIApp, limits: ConnectionLimits) -> ListeningServer:
    """Returns the server of an application; may raise how many files the process may have open."""
    return ListeningServer(
        app,
        limited_protocol(limits.header_seconds, room_for(limits.connections, THREADS)),
        idle_seconds=limits.idle_seconds,
        shutdown_seconds=limits.shutdown_seconds,
    )
