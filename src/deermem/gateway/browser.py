"""Keeps web pages of other origins away from a gateway that a browser can reach.

A page of any site may send requests to a server on the same machine, and by DNS rebinding also read the
answers. What tells them apart: the `Host` that the browser was told, the `Origin` that it adds, and that no
form can send `application/json`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from deermem.gateway.auth.modes import is_loopback
from deermem.gateway.errors import Refusal

SAFE_METHODS: Final = frozenset(["GET", "HEAD", "OPTIONS"])
_PORTS: Final = {"http": 80, "https": 443}
JSON: Final = "application/json"


class BrowserGuard:
    """Refuses requests that a foreign web page may have made (pure ASGI).

    Args:
        app: What to protect.
        only_loopback: Whether the `Host` must name this machine's loopback interface.
        origins: Origins, such as `https://memory.example`, that may send changes besides the gateway's own.
    """

    def __init__(self, app: ASGIApp, *, only_loopback: bool, origins: Iterable[str] = ()) -> None:
        self._app = app
        self._only_loopback = only_loopback
        self._origins = frozenset(filter(None, map(parse_origin, origins)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            return Refusal(400, "Exactly one Host header is needed.")
        if self._only_loopback and not names_loopback(hosts[0]):
            return Refusal(403, "The Host header does not name this machine.")
        if scope["method"] in SAFE_METHODS:
            return None
        for origin in headers.getlist("origin"):
            if not self._is_own(origin, scope["scheme"], hosts[0]):
                return Refusal(403, "Changes from pages of another origin are refused.")
        return _refusal_of_body(headers)

    def _is_own(self, origin: str, scheme: str, host: str) -> bool:
        parsed = parse_origin(origin)
        return parsed is not None and (
            parsed == parse_origin(f"{scheme}://{host}") or parsed in self._origins
        )


def _refusal_of_body(headers: Headers) -> Refusal | None:
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return Refusal(415, "The body must not be compressed.")
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    types = headers.getlist("content-type")
    if not types:
        return Refusal(415, f"The body must be {JSON}.") if has_body else None
    if len(types) > 1 or types[0].partition(";")[0].strip().lower() != JSON:
        return Refusal(415, f"The body must be {JSON}.")
    return None


def parse_origin(text: str) -> tuple[str, str, int] | None:
    """Returns scheme, host and port of an origin; `None` for what is none, such as `null`."""
    try:
        parts = urlsplit(text)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    if not parts.hostname or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port


@lru_cache(maxsize=256)
def names_loopback(host: str) -> bool:
    """Tells whether a `Host` header, with or without a port, names the loopback interface."""
    try:
        parts = urlsplit(f"//{host}")
        name = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if parts.netloc != host or "@" in host:
        return False
    return is_loopback(name)
