"""Who calls, in which role, and what to answer where that is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from deermem.asgi.identification import NotLetIn

NEEDED: Final = "Authentication is needed."
NOT_VALID: Final = "The credentials are not valid."
NOT_AVAILABLE: Final = "Authentication is not available; try again."
OTHER_ROLE: Final = "This needs another role."
NO_SUCH_USER: Final = "This user cannot have a memory."


class Role(StrEnum):
    """Is what a caller may do: use its own memory, act for users, or open any bucket."""

    USER = "user"
    SERVICE = "service"
    ADMINISTRATOR = "administrator"


@dataclass(frozen=True, slots=True)
class Caller:
    """Is who calls, and whose memory the request is about.

    `subject` is the name that the credentials prove. `user_id` is what is passed to the store: no two
    subjects have the same one (contract section 1), and a service or an administrator may name another's.
    """

    subject: str
    role: Role
    user_id: str


class AuthenticationFailed(NotLetIn):
    """Is the answer to a request of nobody knows whom; `detail` is stable and tells nothing about anybody.

    `status` is 401 for credentials that are missing or wrong, 403 for a caller that may not do this, 400
    for a header that no client should send, 503 where nobody can be identified at the moment.
    """


class ReceivedHeaders(Protocol):
    """Is the head of a request; names are compared without regard to case."""

    def getlist(self, key: str, /) -> Sequence[str]:
        """Returns every value of a name."""
        ...


class Client(Protocol):
    """Is the other end of a connection."""

    @property
    def host(self) -> str:
        """The address."""
        ...


class Connection(Protocol):
    """Is what identification needs of a request; Starlette's has it."""

    @property
    def headers(self) -> ReceivedHeaders:
        """The headers as they were received."""
        ...

    @property
    def client(self) -> Client | None:
        """The other end, where it is known."""
        ...


class Authenticator(Protocol):
    """Finds out who calls."""

    @property
    def identifying_headers(self) -> tuple[str, ...]:
        """The headers that a caller is known by, for `Vary`; empty where everybody is the same user."""
        ...

    def authenticate(self, request: Connection, /) -> Caller:
        """Returns who calls; may be called from several threads, and never waits for the network.

        Raises:
            AuthenticationFailed: The caller is not known, or may not do this.
        """
        ...

    def allows_listening_on(self, host: str, /) -> None:
        """Makes sure that a server may listen on this address.

        Raises:
            InvalidInputError: It is reachable from other machines, and nobody is authenticated.
        """
        ...


def unavailable() -> AuthenticationFailed:
    """Says that nobody can be identified at the moment, whatever they send."""
    return AuthenticationFailed(503, NOT_AVAILABLE, {"Retry-After": "1"})
