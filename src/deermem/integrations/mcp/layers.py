"""Layers around the application that serves HTTP: who calls, from which page, and what caches may do."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deermem.integrations.mcp.identity import KnownUser, NotLetIn, Verifier

CUT_SHORT: Final = "The server is ending; a change that was asked for may still be made."

_THREADS: Final = 4


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


class CutShort:
    """Answers what is under way when a server ends without waiting (pure ASGI).

    Args:
        app: What is served.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        has_begun = False

        async def send_noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            if not has_begun:  # Uvicorn would log it as an error
                await JSONResponse({"detail": CUT_SHORT}, 503)(scope, receive, send)


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
