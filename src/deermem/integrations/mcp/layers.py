"""Layers around the application that serves HTTP: from which page a request comes, and the end."""

from __future__ import annotations

import asyncio
from typing import Final

import anyio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deermem.integrations.mcp.sessions import has_sessions

CUT_SHORT: Final = "The server is ending; a change that was asked for may still be made."


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


class Departure:
    """Gives up a request whose client has gone, where that cancels it (pure ASGI).

    In the versions with sessions it does not: a client says so that it wants no answer. In the newer ones
    closing the connection is the only way to say it.

    Args:
        app: What is served.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on until it is answered or its client has gone."""
        if scope["type"] != "http" or has_sessions(scope):
            await self._app(scope, receive, send)
            return
        has_begun = False
        watching: list[asyncio.Task[None]] = []

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            if not has_begun:
                present.cancel()

        async def receive_noted() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False) and not watching:
                watching.append(asyncio.create_task(watch()))
            return message

        async def send_noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        with anyio.CancelScope() as present:
            try:
                await self._app(scope, receive_noted, send_noted)
            finally:
                for each in watching:
                    each.cancel()
