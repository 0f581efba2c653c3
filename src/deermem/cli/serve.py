"""`serve`: the memories over HTTP."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Any

import typer

from deermem.cli.exits import UsageError
from deermem.cli.numbers import whole_number
from deermem.cli.options import StoreOptions, with_options
from deermem.cli.serving import listening_on, log_to_standard_error, memory_settings, note_missing_tokens
from deermem.cli.settings_file import read_tables, told_by_file
from deermem.cli.start_check import check_store


@with_options(StoreOptions)
def serve(
    options: StoreOptions,
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where to listen [127.0.0.1].")] = None,
    port: Annotated[
        int | None,
        typer.Option(
            parser=whole_number("--port", 0, 65_535),
            metavar="PORT",
            help="The port; 0 takes a free one [8431].",
        ),
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="A settings file, TOML or YAML.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse everything that writes.")] = False,
) -> None:
    """Serve the memories over HTTP, until SIGTERM or Ctrl-C.

    Without authentication only this machine can be served. A storage root that this process may not use
    is told at once.
    """
    try:
        from deermem.gateway.auth import Mode, make_authenticator
        from deermem.gateway.serve import serve as serve_gateway
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("deermem"):
            raise
        raise UsageError(
            f"the Python package {error.name} is missing", 'pip install "deermem[server]"'
        ) from None
    from deermem.manager import DeerMem

    memory, gateway, limits, auth = _settings(options, config)
    given = {"host": host, "port": port, "read_only": read_only or None}
    gateway = replace(gateway, **{name: value for name, value in given.items() if value is not None})
    log_to_standard_error("uvicorn.error")
    root = os.path.realpath(memory.storage_root())
    check_store(root, writes=not gateway.read_only)
    authenticator = make_authenticator(auth)
    if auth.mode == Mode.TOKEN:
        note_missing_tokens(options, auth.token_file)

    def announce(url: str) -> None:
        options.out.show({"url": url}, lines=[f"Serving {root} on {url}"], brief=[url])

    manager = DeerMem(memory)
    with listening_on(gateway.host, gateway.port):
        serve_gateway(manager, authenticator, gateway, limits, announce)


def _settings(options: StoreOptions, path: str | None) -> tuple[Any, Any, Any, Any]:
    """Reads the settings of the memory, the gateway, its limits and the authentication.

    Options win over variables, and those over the file.
    """
    from deermem.asgi.limits import LimitSettings
    from deermem.gateway.auth import AuthSettings
    from deermem.gateway.settings import GatewaySettings

    tables = read_tables(path)
    memory = memory_settings(options, path)
    auth = tables["auth"]
    if (os.environ.get("DEERMEM_AUTH_MODE") or auth.get("mode", "none")) == "none":
        auth.setdefault("user", options.settings.user_id)
    with told_by_file(path):
        gateway = GatewaySettings.load(tables["gateway"], os.environ)
        limits = LimitSettings.load(tables["limits"], os.environ)
        return memory, gateway, limits, AuthSettings.load(auth, os.environ, memory.storage_root())
