"""Finds out who calls the gateway, in one of four ways, and whose memory that opens."""

from __future__ import annotations

from deermem.gateway.auth.caller import AuthenticationFailed, Authenticator, Caller, Role
from deermem.gateway.auth.modes import OneUser, Tokens, TrustedProxy
from deermem.gateway.auth.settings import AuthSettings, Mode

__all__ = [
    "AuthSettings",
    "AuthenticationFailed",
    "Authenticator",
    "Caller",
    "Mode",
    "Role",
    "make_authenticator",
]


def make_authenticator(settings: AuthSettings) -> Authenticator:
    """Returns what identifies callers; looks at the files that it needs, and may fetch keys once.

    Raises:
        InvalidInputError: A file that the settings name cannot be trusted or understood.
        OSError: It cannot be read.
    """
    match settings.mode:
        case Mode.NONE:
            return OneUser(settings)
        case Mode.TOKEN:
            return Tokens(settings)
        case Mode.PROXY:
            return TrustedProxy(settings)
        case Mode.JWT:
            from deermem.gateway.auth.jwt_mode import SignedTokens

            return SignedTokens.of(settings)
