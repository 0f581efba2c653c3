"""Asks a gateway on this machine whether it lives: `python -m deermem.gateway.health`.

For the health check of a container, in which there may be no curl. The address is that of the same variables
that the gateway takes, `DEERMEM_GATEWAY_HOST` and `DEERMEM_GATEWAY_PORT`, or of `HOST PORT` as arguments.
"""

from __future__ import annotations

import http.client
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from deermem.gateway.settings import DEFAULT_HOST, DEFAULT_PORT, PREFIX

_SECONDS: Final = 3.0
# What listens everywhere is asked at the loopback address of its family.
_EVERYWHERE: Final[Mapping[str, str]] = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound to here


def lives(host: str, port: int, seconds: float = _SECONDS) -> str:
    """Asks for `/healthz`; returns what is wrong, empty if nothing is."""
    connection = http.client.HTTPConnection(_EVERYWHERE.get(host, host), port, timeout=seconds)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"no answer from {host}:{port}: {str(error) or type(error).__name__}"
    finally:
        connection.close()
    return "" if status == http.HTTPStatus.OK else f"{host}:{port} answers with status {status}"


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Returns what is wrong with the gateway that arguments or variables name, empty if nothing is."""
    host = environment.get(f"{PREFIX}HOST") or DEFAULT_HOST
    port = environment.get(f"{PREFIX}PORT") or str(DEFAULT_PORT)
    if arguments:
        if len(arguments) != 2:
            return "usage: python -m deermem.gateway.health [HOST PORT]"
        host, port = arguments
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        return f"{port!r} is no port to ask at"
    return lives(host, int(port))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ) or 0)
