"""Finds out who calls, before anything of the request is read, and tells caches to keep callers apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deermem.gateway.auth import AuthenticationFailed
from deermem.gateway.errors import Refusal

if TYPE_CHECKING:
    from deermem.gateway.auth import Authenticator

# For whoever starts and watches the gateway; they tell nothing about anybody's memory.
OPEN_PATHS: Final = frozenset(["/healthz", "/readyz"])


class Identification:
    """Puts the caller into the request's state, or answers that nobody knows the caller (pure ASGI).

    Args:
        app: What to protect.
        authenticator: Says who calls.
    """

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            try:
                caller = self._authenticator.authenticate(HTTPConnection(scope))
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
        self._vary = ", ".join(identifying_headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on and marks its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Cache-Control"] = "private, no-cache"
                headers["X-Content-Type-Options"] = "nosniff"
                if self._vary:
                    headers["Vary"] = self._vary
            await send(message)

        await self._app(scope, receive, send_marked)
