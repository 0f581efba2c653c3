"""How a gateway serves, apart from who may call (`deermem.gateway.auth`) and what is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8431


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Says how a gateway serves.

    Args:
        host: The address to listen on.
        port: The port; 0 takes a free one.
        read_only: Refuse everything that writes.
        threads: How many calls work on the store at once.
        waiting: How many requests may wait for the store or be at work at once; more are told to retry.
        patience: How many seconds a request waits for its turn at the store.
        allowed_origins: Origins whose pages may send changes beside the gateway's own, for a gateway
            behind a proxy with another name.
        trusted_proxies: Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` count.
        max_facts_per_request: How many facts a batch may name.
        header_seconds: How many seconds a client may take to send the head of a request.
        idle_seconds: How many seconds an idle connection is kept.
        shutdown_seconds: How many seconds a stop waits for what is under way.
        access_log: Write a line for each request.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    read_only: bool = False
    threads: int = 16
    waiting: int = 1_000
    patience: float = 10.0
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    max_facts_per_request: int = 1_000
    header_seconds: float = 10.0
    idle_seconds: int = 30
    shutdown_seconds: float = 30.0
    access_log: bool = False
