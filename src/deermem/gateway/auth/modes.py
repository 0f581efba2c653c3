"""The ways to identify a caller that need no cryptography: nobody is asked, a token, a trusted proxy."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from typing import Final

from deermem.errors import InvalidInputError
from deermem.gateway.auth.caller import NEEDED, OTHER_ROLE, AuthenticationFailed, Caller, Connection, Role
from deermem.gateway.auth.files import GuardedFile, Watched
from deermem.gateway.auth.headers import bearer_of, credentials_of, name_of, needed, refused
from deermem.gateway.auth.settings import AuthSettings, check_secret
from deermem.gateway.auth.subjects import ACTING_HEADERS, identified
from deermem.gateway.auth.token_list import TokenList, parse_tokens

KEY_HEADER: Final = "X-API-Key"


def is_loopback(host: str) -> bool:
    """Tells whether an address, or the name `localhost`, is of this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class OneUser:
    """Takes everybody who reaches this machine's own interface for one user.

    Args:
        settings: Those of mode `none`.
    """

    identifying_headers: tuple[str, ...] = ()

    def __init__(self, settings: AuthSettings) -> None:
        self._caller = Caller(settings.user, Role.USER, settings.user)

    def authenticate(self, request: Connection, /) -> Caller:
        """Returns the one user, to a client of this machine."""
        if any(name_of(request, header) is not None for header in ACTING_HEADERS):
            raise AuthenticationFailed(403, OTHER_ROLE)
        if request.client is not None and _is_elsewhere(request.client.host):
            raise AuthenticationFailed(403, NEEDED)
        return self._caller

    def allows_listening_on(self, host: str, /) -> None:
        """Allows the loopback interface."""
        if not is_loopback(host):
            raise InvalidInputError(
                "host",
                f"{host or 'every interface'} is reachable from other machines;"
                " choose an auth.mode: token, jwt or proxy",
            )


class _Guarded:
    """Is what asks for credentials, and may therefore listen anywhere."""

    def allows_listening_on(self, host: str, /) -> None:
        """Allows every interface."""


class Tokens(_Guarded):
    """Knows callers by tokens in a file, as they are at this moment.

    Args:
        settings: Those of mode `token`.
        same: Compares two hashes in a time that does not depend on where they differ.

    Raises:
        InvalidInputError: The file is not a list of tokens, or others can change it.
    """

    identifying_headers = ("Authorization", KEY_HEADER, *ACTING_HEADERS)

    def __init__(
        self, settings: AuthSettings, *, same: Callable[[str, str], bool] = hmac.compare_digest
    ) -> None:
        file = GuardedFile(settings.token_file)
        self._same = same
        self._tokens: Watched[TokenList] = Watched(
            file, lambda data: parse_tokens(data, file.path), secret=lambda _: True
        )

    def authenticate(self, request: Connection, /) -> Caller:
        """Returns whom the token belongs to."""
        sent = {
            token for token in (bearer_of(request), credentials_of(request, KEY_HEADER)) if token is not None
        }
        if not sent:
            raise needed()
        if len(sent) > 1:
            raise refused()
        entry = self._tokens.current().find(sent.pop(), same=self._same)
        if entry is None:
            raise refused()
        return identified(request, entry.user, entry.role)


class TrustedProxy(_Guarded):
    """Believes what a proxy says that knows the shared secret.

    Args:
        settings: Those of mode `proxy`.
        same: Compares two texts in a time that does not depend on where they differ.

    Raises:
        InvalidInputError: The file with the secret is missing, has none, or others can change it.
    """

    def __init__(
        self, settings: AuthSettings, *, same: Callable[[bytes, bytes], bool] = hmac.compare_digest
    ) -> None:
        self._settings = settings
        self._same = same
        self._secret = (settings.proxy_secret or _secret_in(settings.proxy_secret_file)).encode()
        named = (settings.proxy_header, settings.proxy_secret_header, settings.proxy_role_header)
        self.identifying_headers = (*filter(None, named), *ACTING_HEADERS)

    def authenticate(self, request: Connection, /) -> Caller:
        """Returns whom the proxy names."""
        secret = credentials_of(request, self._settings.proxy_secret_header)
        if secret is None:
            raise needed()
        if not self._same(secret.encode(), self._secret):
            raise refused()
        subject = name_of(request, self._settings.proxy_header)
        if subject is None:
            raise needed()
        return identified(request, subject, self._role_in(request))

    def _role_in(self, request: Connection) -> Role:
        header = self._settings.proxy_role_header
        role = name_of(request, header) if header else None
        if role is None:
            return Role.USER
        try:
            return Role(role)
        except ValueError:
            raise AuthenticationFailed(403, OTHER_ROLE) from None


def _is_elsewhere(client: str) -> bool:
    """Tells whether a client may be on another machine; a socket in the file system is not.

    What a trusted proxy says of the client need not be an address: some add a port, or say `unknown`.
    """
    return bool(client) and not is_loopback(client)


def _secret_in(path: str) -> str:
    file = GuardedFile(path)
    data = file.read()
    if data is None:
        raise InvalidInputError(file.path, "is missing")
    file.check_modes(secret=True)
    secret = data.decode("ascii", "replace").rstrip("\r\n")
    check_secret(secret)
    return secret
