"""`serve`: the memories over HTTP."""

from __future__ import annotations

import errno
import logging
import os
import shlex
import socket
import sys
from dataclasses import fields, replace
from typing import Annotated, Any, Final, TextIO

import typer

from deermem.cli.exits import CannotListen, UsageError
from deermem.cli.numbers import whole_number
from deermem.cli.options import StoreOptions, with_options
from deermem.cli.output import one_line
from deermem.cli.settings_file import read_tables
from deermem.cli.start_check import check_store

_OF_SOCKETS: Final = frozenset([errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES])
_LOG_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _OneLine(logging.Formatter):
    """Writes each record as one line, whatever the name of a user has in it; a traceback has its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in the standard library
        return one_line(super().formatMessage(record))


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
    _log_to(sys.stderr)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    root = os.path.realpath(memory.storage_root())
    check_store(root, writes=not gateway.read_only)
    authenticator = make_authenticator(auth)
    if auth.mode == Mode.TOKEN:
        _note_missing_tokens(options, os.path.abspath(auth.token_file))

    def announce(url: str) -> None:
        options.out.show({"url": url}, lines=[f"Serving {root} on {url}"], brief=[url])

    manager = DeerMem(memory)
    try:
        serve_gateway(manager, authenticator, gateway, limits, announce)
    except OSError as error:
        if error.errno not in _OF_SOCKETS and not isinstance(error, socket.gaierror):
            raise
        where = f"{gateway.host}:{gateway.port}"
        raise CannotListen(error.errno, error.strerror, where) from None


def _log_to(stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_OneLine(_LOG_LINE))
    logging.basicConfig(handlers=[handler], level=logging.INFO)


def _settings(options: StoreOptions, path: str | None) -> tuple[Any, Any, Any, Any]:
    """Reads the settings of the memory, the gateway, its limits and the authentication.

    Options win over variables, and those over the file.
    """
    from deermem.config import DeerMemConfig
    from deermem.gateway.auth import AuthSettings
    from deermem.gateway.limits import LimitSettings
    from deermem.gateway.naming import told_by_variable
    from deermem.gateway.settings import GatewaySettings

    tables = read_tables(path)
    variables = {each.name: f"DEERMEM_{each.name.upper()}" for each in fields(DeerMemConfig)}
    with told_by_variable("", {name: each for name, each in variables.items() if os.environ.get(each)}):
        memory = DeerMemConfig.load(path)
    if options.storage_path is not None:
        memory = replace(memory, storage_path=options.storage_root)
    gateway = GatewaySettings.load(tables["gateway"], os.environ)
    limits = LimitSettings.load(tables["limits"], os.environ)
    auth = tables["auth"]
    if (os.environ.get("DEERMEM_AUTH_MODE") or auth.get("mode", "none")) == "none":
        auth.setdefault("user", options.settings.user_id)
    return memory, gateway, limits, AuthSettings.load(auth, os.environ, memory.storage_root())


def _note_missing_tokens(options: StoreOptions, path: str) -> None:
    """Tells who starts a gateway that lets nobody in how to change that: it may look for tokens elsewhere."""
    from deermem.gateway.auth.token_file import TokenFile

    if not TokenFile(path).read().entries:
        options.out.note(f"There are no tokens in {path}: every request will be refused.")
        options.out.hint(f"`deermem token create --token-file {shlex.quote(path)}` makes one")
