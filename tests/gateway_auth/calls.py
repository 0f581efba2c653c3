"""Requests as the server hands them over, and what an authenticator makes of them."""

from __future__ import annotations

import pytest
from starlette.requests import HTTPConnection

from deermem.gateway.auth import AuthenticationFailed, Authenticator, Caller

Header = tuple[str, str | bytes]


def request(*headers: Header, client: str | None = "127.0.0.1") -> HTTPConnection:
    """Returns a request with these headers, in their order, also twice the same."""
    raw = [
        (name.lower().encode("latin-1"), value if isinstance(value, bytes) else value.encode("latin-1"))
        for name, value in headers
    ]
    address = None if client is None else (client, 50_000)
    return HTTPConnection({"type": "http", "headers": raw, "client": address})


def bearer(token: str) -> Header:
    """Returns the header that carries a token."""
    return "Authorization", f"Bearer {token}"


def refusal(authenticator: Authenticator, *headers: Header) -> AuthenticationFailed:
    """Returns how a request is refused; it must be."""
    with pytest.raises(AuthenticationFailed) as caught:
        authenticator.authenticate(request(*headers))
    return caught.value


def caller(authenticator: Authenticator, *headers: Header) -> Caller:
    """Returns who calls; somebody must."""
    return authenticator.authenticate(request(*headers))
