"""Chooses what parses connections."""

from __future__ import annotations

from deermem.asgi.bounds import Bounded


def limited_protocol(head_seconds: float, most: int) -> type[Bounded]:
    """Returns the class of connections; it uses httptools where that is installed.

    Args:
        head_seconds: How long a client may take to send the head of a request; the first one counts from
            the connection on, so that connections on which nothing is sent do not pile up.
        most: How many connections there may be at once.
    """
    return type("ConfiguredProtocol", (_base(),), {"head_seconds": head_seconds, "most": most})


def _base() -> type[Bounded]:
    try:
        from deermem.asgi.connections import LimitedProtocol
    except ModuleNotFoundError as error:
        if error.name != "httptools":
            raise
        from deermem.asgi.plain_connections import PlainProtocol

        return PlainProtocol
    return LimitedProtocol
