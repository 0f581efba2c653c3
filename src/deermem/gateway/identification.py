"""Finds out who calls, before anything of the request is read, and tells caches to keep callers apart."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deermem.gateway.auth import AuthenticationFailed, Authenticator
from deermem.gateway.errors import Refusal

# For whoever starts and watches the gateway; they tell nothing about anybody's memory.
OPEN_PATHS: Final = frozenset(["/healthz", "/readyz"])

_THREADS: Final = 4


class Identification:
    """Puts the caller into the request's state, or answers that nobody knows the caller (pure ASGI).

    Credentials may be compared with files, so that is done in threads of its own: a disk that hangs must not
    stop the event loop.

    Args:
        app: What to protect.
        authenticator: Says who calls.
    """

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator
        needs_files = bool(authenticator.identifying_headers)
        self._executor = ThreadPoolExecutor(_THREADS, "deermem-identification") if needs_files else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            connection = HTTPConnection(scope)
            try:
                if self._executor is None:
                    caller = self._authenticator.authenticate(connection)
                else:
                    caller = await asyncio.get_running_loop().run_in_executor(
                        self._executor, self._authenticator.authenticate, connection
                    )
            except AuthenticationFailed as failed:
                refusal = Refusal(failed.status, failed.detail, failed.headers)
                await refusal.response()(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)


class PrivateAnswers:
    """Marks every answer as one caller's own, to be checked before it is used again (pure ASGI).

    Args:
        app: Whose answers to mark.
        identifying_headers: What a caller is known by.
    """

    def __init__(self, app: ASGIApp, *, identifying_headers: tuple[str, ...]) -> None:
        self._app = app
        self._headers = [(b"cache-control", b"private, no-cache"), (b"x-content-type-options", b"nosniff")]
        if identifying_headers:
            self._headers.append((b"vary", ", ".join(identifying_headers).encode("latin-1")))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on and marks its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]  # no route sets any of these
            await send(message)

        await self._app(scope, receive, send_marked)
