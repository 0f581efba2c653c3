"""Who calls over HTTP: found out anew for each request, by whatever the host passes in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from deermem.asgi.identification import NotLetIn

__all__ = ["Identity", "KnownToSdk", "KnownUser", "NotLetIn", "Verifier"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Is who calls, and the user whose memory the request opens.

    `subject` is what the credentials prove; `user_id` is what is passed to the store, and no two subjects
    may have the same one.
    """

    subject: str
    user_id: str | None


# Raises `NotLetIn`; runs in a thread, and may read files.
Verifier = Callable[[HTTPConnection], Identity]


class KnownUser(AuthenticatedUser):
    """Is an identity as the SDK knows it, which keeps a session to the one that opened it.

    The SDK compares what it takes for the client and the subject of a token. They are the subject and the
    user here: a service that acts for many users has a session for each.
    """

    def __init__(self, identity: Identity) -> None:
        super().__init__(
            AccessToken(token="", client_id=identity.subject, scopes=[], subject=identity.user_id)
        )
        self.caller = identity


class KnownToSdk:
    """Tells the SDK who was identified (pure ASGI).

    Args:
        app: The SDK's application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        if scope["type"] == "http":
            scope["user"] = KnownUser(scope["state"]["caller"])
        await self._app(scope, receive, send)
