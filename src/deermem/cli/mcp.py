"""`mcp`: a memory for clients of the Model Context Protocol."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from deermem.cli.exits import UsageError
from deermem.cli.numbers import whole_number
from deermem.cli.options import ScopeOptions, with_options
from deermem.cli.output import is_terminal
from deermem.cli.serving import listening_on, log_to_standard_error, memory_settings, note_missing_tokens
from deermem.cli.settings_file import read_tables, told_by_file
from deermem.cli.start_check import check_store

if TYPE_CHECKING:
    from deermem.config import DeerMemConfig
    from deermem.gateway.auth import AuthSettings
    from deermem.integrations.mcp import Verifier

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8432


class Transport(StrEnum):
    """Is how clients and the server talk."""

    STDIO = "stdio"
    HTTP = "http"


@with_options(ScopeOptions)
def mcp(
    options: ScopeOptions,
    transport: Annotated[
        Transport, typer.Option(help="Standard input and output, or streamable HTTP.")
    ] = Transport.STDIO,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen for HTTP [127.0.0.1].")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            parser=whole_number("--port", 0, 65_535),
            metavar="PORT",
            help="The port for HTTP; 0 takes a free one [8432].",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Another origin whose pages may call; may be given again."),
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="A settings file, TOML or YAML.")] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer only the tools that change nothing.")
    ] = False,
) -> None:
    """Offer the memory to a client of the Model Context Protocol (MCP).

    Over stdio until the client closes it; over HTTP until SIGTERM or Ctrl-C.
    """
    try:
        import deermem.integrations.mcp  # noqa: F401 - to say what is missing
    except ImportError as error:
        raise UsageError("the Python package mcp is missing", 'pip install "deermem[mcp]"') from error
    tables = read_tables(config)
    memory = memory_settings(options, config)
    log_to_standard_error("mcp", "uvicorn.error")  # what they tell of every session is for their authors
    check_store(os.path.realpath(memory.storage_root()), writes=not read_only)
    if transport is Transport.STDIO:
        _refuse_options_of_http(options, {"--host": host, "--port": port, "--allow-origin": allow_origin})
        _serve_stdio(options, memory, read_only)
    else:
        where = (host or DEFAULT_HOST, DEFAULT_PORT if port is None else port)
        origins = _checked_origins(allow_origin or [])
        _serve_http(
            options, memory, _http_settings(options, config, tables, memory), where, origins, read_only
        )


def _serve_stdio(options: ScopeOptions, memory: DeerMemConfig, read_only: bool) -> None:
    from deermem.integrations.mcp import create_server, fixed_scope
    from deermem.integrations.mcp.stdio import serve_stdio
    from deermem.manager import DeerMem

    scope = options.scope
    root = os.path.realpath(memory.storage_root())
    made = "" if os.path.isdir(root) else ", which the first write makes"
    options.out.note(f"Serving the memory of {scope} in {root}{made}")
    if is_terminal(sys.stdin):
        options.out.note("This speaks a protocol for programs; Ctrl-D ends it.")
    with DeerMem(memory) as manager:
        serve_stdio(create_server(manager, fixed_scope(scope), read_only=read_only))


def _http_settings(
    options: ScopeOptions, path: str | None, tables: Mapping[str, dict[str, Any]], memory: DeerMemConfig
) -> tuple[Any, Any, Any]:
    """Reads the settings of the authentication, the limits and the connections."""
    from deermem.asgi.limits import LimitSettings
    from deermem.gateway.settings import GatewaySettings

    with told_by_file(path):
        return (
            _auth_settings(options, tables["auth"], memory),
            LimitSettings.load(tables["limits"], os.environ),
            GatewaySettings.load(tables["gateway"], os.environ),
        )


def _serve_http(
    options: ScopeOptions,
    memory: DeerMemConfig,
    settings: tuple[Any, Any, Any],
    where: tuple[str, int],
    origins: list[str],
    read_only: bool,
) -> None:
    from deermem.asgi.listener import listener_on
    from deermem.gateway.auth import Mode, make_authenticator
    from deermem.integrations.mcp import create_server, scope_of_caller
    from deermem.integrations.mcp.http import PATH, create_app, server_of
    from deermem.manager import DeerMem

    auth, limits, connections = settings
    authenticator = make_authenticator(auth)
    if auth.mode is Mode.TOKEN:
        note_missing_tokens(options, auth.token_file)
    authenticator.allows_listening_on(where[0])
    agent = options.scope.agent if options.agent else None
    root = os.path.realpath(memory.storage_root())
    with closing(_listening(listener_on, where)) as listener, DeerMem(memory) as manager:
        # A name may stand for another address than it seems to.
        authenticator.allows_listening_on(listener.getsockname()[0])
        app = create_app(
            create_server(manager, scope_of_caller(agent), read_only=read_only),
            _verifier(options, authenticator),
            address=listener.getsockname()[:2],
            only_loopback=not authenticator.identifying_headers,
            origins=origins,
            identifying_headers=authenticator.identifying_headers,
            limits=limits,
        )

        def announce(origin: str) -> None:
            url = f"{origin}{PATH}"
            options.out.show({"url": url}, lines=[f"Serving {root} on {url}"], brief=[url])

        server_of(app, connections).run_on(listener, announce)


def _checked_origins(origins: list[str]) -> list[str]:
    from deermem.gateway.browser import parse_origin

    for origin in origins:
        if parse_origin(origin) is None:
            raise UsageError(f"{origin!r} is no origin, such as https://chat.example")
    return origins


def _listening(listen: Callable[[str, int], socket.socket], where: tuple[str, int]) -> socket.socket:
    with listening_on(*where):
        return listen(*where)


def _verifier(options: ScopeOptions, authenticator: Any) -> Verifier:
    """Returns the gateway's way to identify callers as the server takes it."""
    from starlette.requests import HTTPConnection

    from deermem.gateway.auth import AuthenticationFailed
    from deermem.integrations.mcp import Identity, NotLetIn

    def verify(request: HTTPConnection) -> Identity:
        try:
            caller = authenticator.authenticate(request)
        except AuthenticationFailed as failed:
            raise NotLetIn(failed.status, failed.detail, failed.headers) from None
        return Identity(caller.subject, None if options.no_user else caller.user_id)

    return verify


def _auth_settings(options: ScopeOptions, auth: dict[str, Any], memory: DeerMemConfig) -> AuthSettings:
    """Reads how callers are identified; the one user of mode `none` is that of the command line.

    Raises:
        UsageError: A user is named where each caller is a user.
    """
    from deermem.gateway.auth import AuthSettings, Mode

    environment = dict(os.environ)
    is_named = options.user_id is not None or options.no_user
    if (environment.get("DEERMEM_AUTH_MODE") or auth.get("mode", Mode.NONE)) != Mode.NONE:
        if is_named:
            raise UsageError("--user-id and --no-user have no meaning where callers are authenticated")
    elif is_named:
        environment.pop("DEERMEM_AUTH_USER", None)
        auth["user"] = options.user or options.settings.user_id
    else:
        auth.setdefault("user", options.settings.user_id)
    return AuthSettings.load(auth, environment, memory.storage_root())


def _refuse_options_of_http(options: ScopeOptions, given: dict[str, Any]) -> None:
    wrong = [name for name, value in given.items() if value]
    if options.as_json:  # standard output has the protocol alone
        wrong.append("--json")
    if wrong:
        raise UsageError(f"{wrong[0]} goes with --transport http only")
