"""How many sessions one caller may have, so that nobody takes them all from the others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deermem.integrations.mcp.identity import Identity, KnownUser

MOST_SESSIONS: Final = 100
TOO_MANY: Final = "Too many sessions are open; end one, or wait until one has been idle for long enough."

_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"


def has_sessions(scope: Scope) -> bool:
    """Tells whether a request is of a version of the protocol with sessions; the first ones named none."""
    return Headers(scope=scope).get(_VERSION) in (None, *HANDSHAKE_PROTOCOL_VERSIONS)


class SessionLimit:
    """Refuses to open one session too many (pure ASGI); versions without sessions are left alone.

    Args:
        app: What opens sessions.
        idle_seconds: After how long an idle one is closed.
        most: How many a caller may have.
        clock: Shows seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        idle_seconds: float,
        most: int = MOST_SESSIONS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._idle_seconds = idle_seconds
        self._most = most
        self._clock = clock
        self._used: dict[Identity, dict[str, float]] = {}
        self._opening: Counter[Identity] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        user = scope.get("user")
        if scope["type"] != "http" or not isinstance(user, KnownUser):
            await self._app(scope, receive, send)
            return
        if not has_sessions(scope):
            await self._app(scope, receive, send)
        elif session := Headers(scope=scope).get(_SESSION):
            await self._use(user.caller, session, scope, receive, send)
        elif len(self._open(user.caller)) + self._opening[user.caller] >= self._most:
            await JSONResponse({"detail": TOO_MANY}, 429)(scope, receive, send)
        else:
            await self._begin(user.caller, scope, receive, send)

    async def _use(self, caller: Identity, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start" and session in self._used.get(caller, ()):
                is_ended = scope["method"] == "DELETE" and message["status"] < 400
                self._note(caller, session, is_over=is_ended or message["status"] == 404)
            await send(message)

        await self._app(scope, receive, send_noted)

    async def _begin(self, caller: Identity, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                session = dict(message["headers"]).get(_SESSION.encode())
                if session is not None:
                    self._note(caller, session.decode(), is_over=False)
            await send(message)

        self._opening[caller] += 1
        try:
            await self._app(scope, receive, send_noted)
        finally:
            self._opening[caller] -= 1
            if not self._opening[caller]:
                del self._opening[caller]

    def _open(self, caller: Identity) -> dict[str, float]:
        """Returns the sessions of a caller that are still open, and forgets the others."""
        since = self._clock() - self._idle_seconds
        left = {session: used for session, used in self._used.get(caller, {}).items() if used >= since}
        if left:
            self._used[caller] = left
        else:
            self._used.pop(caller, None)
        return left

    def _note(self, caller: Identity, session: str, *, is_over: bool) -> None:
        sessions = self._used.setdefault(caller, {})
        if is_over:
            sessions.pop(session, None)
        else:
            sessions[session] = self._clock()
        if not sessions:
            del self._used[caller]
