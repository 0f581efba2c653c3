"""Knows callers by JSON Web Tokens that an identity provider has signed (RFC 7519, RFC 8725)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, Self

import jwt

from deermem.gateway.auth.caller import Caller, Connection, Role
from deermem.gateway.auth.headers import bearer_of, needed, refused
from deermem.gateway.auth.key_sources import FetchedKeys, KeyFile, KeySource, fetcher
from deermem.gateway.auth.settings import AuthSettings
from deermem.gateway.auth.subjects import ACTING_HEADERS, identified

_REQUIRED: Final = ["exp", "iss", "aud", "sub"]
# The more a role may do, the later it stands.
_BY_POWER: Final = (Role.USER, Role.SERVICE, Role.ADMINISTRATOR)

_log = logging.getLogger(__name__)


class SignedTokens:
    """Knows callers by `Authorization: Bearer` with a JWT; its `sub` is the user.

    Args:
        settings: Those of mode `jwt`.
        source: Has the keys.
    """

    identifying_headers = ("Authorization", *ACTING_HEADERS)

    def __init__(self, settings: AuthSettings, source: KeySource) -> None:
        self._settings = settings
        self._source = source

    @classmethod
    def of(cls, settings: AuthSettings) -> Self:
        """Returns it with the keys of the file or the address that the settings name.

        Raises:
            InvalidInputError: The file of keys cannot be used.
        """
        if settings.jwks_file:
            return cls(settings, KeyFile(settings.jwks_file))
        fetch = fetcher(settings.jwks_url, settings.jwks_ca_file)
        return cls(settings, FetchedKeys(settings.jwks_url, fetch))

    def authenticate(self, request: Connection, /) -> Caller:
        """Returns whom the token names."""
        token = bearer_of(request)
        if token is None:
            raise needed()
        claims = self._claims_of(token)
        return identified(request, claims["sub"], self._role_in(claims))

    def allows_listening_on(self, host: str, /) -> None:
        """Allows every interface."""

    def _claims_of(self, token: str) -> dict[str, Any]:
        """Returns the claims of a valid token.

        The algorithm is looked up by the key, never the other way round, so a public key cannot be taken
        for the secret of an HMAC, and `none` is no algorithm of any key.
        """
        keys = self._source.current()
        try:
            header = jwt.get_unverified_header(token)
            key = keys.key_for(header.get("kid"), header.get("alg"))
            if key is None:
                if not keys.knows(header.get("kid")):
                    self._source.miss()
                raise refused()
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                issuer=self._settings.issuer,
                audience=list(self._settings.audience),
                leeway=self._settings.leeway,
                options={"require": _REQUIRED},
            )
        except (jwt.PyJWTError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
            # The text of such an error may repeat parts of the token.
            _log.debug("a token was refused: %s", type(error).__name__)
            raise refused() from None
        return claims

    def _role_in(self, claims: Mapping[str, Any]) -> Role:
        named = claims.get(self._settings.role_claim) if self._settings.role_claim else None
        names = named if isinstance(named, list) else [named]
        return next((role for role in reversed(_BY_POWER) if role in names), Role.USER)
