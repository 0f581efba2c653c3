"""How a gateway serves, apart from who may call (`deermem.gateway.auth`) and what is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_network
from typing import Any, Final, Self

from deermem.asgi.naming import check_names, check_variables, told_by_variable, variables_of
from deermem.errors import InvalidInputError
from deermem.gateway.browser import parse_origin

PREFIX: Final = "DEERMEM_GATEWAY_"
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8431
MAX_FACTS_PER_REQUEST: Final = 1_000

_BOOLEANS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "port": (0, 65_535),
    "threads": (1, 1_000),
    "waiting": (1, 1_000_000),
    "connections": (1, 1_000_000),
    "patience": (0.1, 600),
    "max_facts_per_request": (1, 100_000),
    "header_seconds": (0.1, 600),
    "idle_seconds": (1, 3_600),
    "shutdown_seconds": (0, 3_600),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Says how a gateway serves.

    Args:
        host: The address to listen on.
        port: The port; 0 takes a free one.
        read_only: Refuse everything that writes.
        threads: How many calls work on the store at once.
        waiting: How many requests may wait for the store or be at work at once; more are told to retry.
        connections: How many connections there may be at once; more are told to retry.
        patience: How many seconds a request waits for its turn at the store.
        allowed_origins: Origins whose pages may send changes beside the gateway's own, for a gateway
            behind a proxy with another name.
        trusted_proxies: Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` count.
        max_facts_per_request: How many facts a batch may name.
        header_seconds: How many seconds a client may take to send the head of a request.
        idle_seconds: How many seconds an idle connection is kept.
        shutdown_seconds: How many seconds a stop waits for what is under way.
        access_log: Write a line for each request.

    Raises:
        InvalidInputError: Names the setting that breaks its rule.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    read_only: bool = False
    threads: int = 16
    waiting: int = 1_000
    connections: int = 2_000
    patience: float = 10.0
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    max_facts_per_request: int = MAX_FACTS_PER_REQUEST
    header_seconds: float = 10.0
    idle_seconds: int = 30
    shutdown_seconds: float = 30.0
    access_log: bool = False

    def __post_init__(self) -> None:
        if not self.host:
            raise InvalidInputError("gateway.host", "must not be empty")
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidInputError(f"gateway.{name}", f"must be from {low:,.10g} to {high:,.10g}")
        for origin in self.allowed_origins:
            if parse_origin(origin) is None:
                raise InvalidInputError(
                    "gateway.allowed_origins", f"{origin!r} is no origin, such as https://memory.example"
                )
        for proxy in self.trusted_proxies:
            _check_network(proxy)

    @classmethod
    def load(
        cls, table: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
    ) -> Self:
        """Takes settings from the table of a settings file and from variables, which win.

        Args:
            table: The settings by their names.
            environment: Variables, `DEERMEM_GATEWAY_PORT` and the like; others are left alone.

        Raises:
            InvalidInputError: Names the setting, or the variable, that breaks its rule or does not exist.
        """
        variables = variables_of(PREFIX, environment)
        given = {**(table or {}), **{name: (environment or {})[each] for name, each in variables.items()}}
        kinds = {each.name: type(each.default) for each in fields(cls)}
        check_variables(PREFIX, variables, kinds)
        with told_by_variable("gateway", variables):
            check_names("gateway", given, kinds)
            return cls(**{name: _parsed(name, value, kinds[name]) for name, value in given.items()})


def _check_network(text: str) -> None:
    """Makes sure that a proxy is an address or a network; anything else would never match."""
    try:
        ip_network(text)
    except ValueError as error:
        raise InvalidInputError(
            "gateway.trusted_proxies", f"{text!r} is no address and no network: {error}"
        ) from None


def _parsed(name: str, value: Any, kind: type) -> Any:
    """Returns a value of a setting's kind; in variables everything is text."""
    if kind is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        if isinstance(parts, list | tuple) and all(isinstance(part, str) for part in parts):
            return tuple(part.strip() for part in parts if part.strip())
        raise InvalidInputError(f"gateway.{name}", "must be a list of texts")
    if kind is bool:
        if isinstance(value, bool) or (isinstance(value, str) and value.lower() in _BOOLEANS):
            return value if isinstance(value, bool) else _BOOLEANS[value.lower()]
        raise InvalidInputError(f"gateway.{name}", f"must be one of {', '.join(_BOOLEANS)}")
    if kind is str:
        if isinstance(value, str):
            return value
        raise InvalidInputError(f"gateway.{name}", "must be text")
    return _parsed_number(name, value, kind)


def _parsed_number(name: str, value: Any, kind: type) -> int | float:
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise InvalidInputError(f"gateway.{name}", "must be a number")
    if kind is int and number != int(number):
        raise InvalidInputError(f"gateway.{name}", "must be a whole number")
    return int(number) if kind is int else float(number)
