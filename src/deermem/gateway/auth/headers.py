"""Reads the headers that decide about access, and takes nothing that two readers could take differently."""

from __future__ import annotations

import re
from typing import Final

from deermem.gateway.auth.caller import NEEDED, NOT_VALID, AuthenticationFailed, Connection

MAX_CREDENTIALS: Final = 8_192
MAX_NAME: Final = 512

REALM: Final = 'Bearer realm="deermem"'
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9._~+/=-]+)", re.IGNORECASE)
# A proxy may join two headers of one name into one value with a comma between.
_NAME: Final = re.compile(r"[\x20-\x2b\x2d-\x7e]+")


def credentials_of(request: Connection, name: str) -> str | None:
    """Returns the value of a header with credentials; `None` if there is no such header.

    Raises:
        AuthenticationFailed: There are two of them, or the value is too long or not printable ASCII.
    """
    values = request.headers.getlist(name)
    if not values:
        return None
    if len(values) > 1 or len(values[0]) > MAX_CREDENTIALS or not _PRINTABLE.fullmatch(values[0]):
        raise refused()
    return values[0]


def bearer_of(request: Connection) -> str | None:
    """Returns the token of `Authorization: Bearer`; `None` if there is no such header.

    Raises:
        AuthenticationFailed: The header has another scheme, or is there twice.
    """
    value = credentials_of(request, "Authorization")
    if value is None:
        return None
    match = _BEARER.fullmatch(value.strip(" "))
    if match is None:
        raise refused()
    return match[1]


def name_of(request: Connection, header: str) -> str | None:
    """Returns the value of a header that names a user; `None` if there is no such header.

    Raises:
        AuthenticationFailed: There are two of them, also joined by a comma, or the value is empty, too
            long or not printable ASCII.
    """
    values = request.headers.getlist(header)
    if not values:
        return None
    if len(values) > 1 or len(values[0]) > MAX_NAME or not _NAME.fullmatch(values[0]):
        raise AuthenticationFailed(400, f"The header {header} is not valid.")
    return values[0]


def refused() -> AuthenticationFailed:
    """Says that credentials are wrong, whatever is wrong with them."""
    return AuthenticationFailed(401, NOT_VALID, {"WWW-Authenticate": f'{REALM}, error="invalid_token"'})


def needed() -> AuthenticationFailed:
    """Says that there are no credentials."""
    return AuthenticationFailed(401, NEEDED, {"WWW-Authenticate": REALM})
