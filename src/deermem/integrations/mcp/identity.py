"""Who calls over HTTP: found out anew for each request, by whatever the host passes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import HTTPConnection


@dataclass(frozen=True, slots=True)
class Identity:
    """Is who calls, and the user whose memory the request opens.

    `subject` is what the credentials prove; `user_id` is what is passed to the store, and no two subjects
    may have the same one.
    """

    subject: str
    user_id: str | None


class NotLetIn(Exception):
    """Is the answer to a request of nobody knows whom; `detail` must tell nothing about anybody."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.headers = headers


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
