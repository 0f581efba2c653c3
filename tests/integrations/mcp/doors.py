"""The two ways in, as a client of the SDK finds them: a process over stdio, a server on a port."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from starlette.requests import HTTPConnection

from deermem import DeerMem
from deermem.asgi.limits import LimitSettings
from deermem.asgi.listener import listener_on, url_of
from deermem.gateway.settings import GatewaySettings
from deermem.integrations.mcp import Identity, NotLetIn, create_server, scope_of_caller
from deermem.integrations.mcp.http import PATH, create_app, server_of
from tests.gateway_auth.signing import AUDIENCE, ISSUER, jwk, key_set
from tests.support.threads import in_thread

T = TypeVar("T")

PATIENCE = 30.0
USER_HEADER = "x-test-user"


def run(work: Awaitable[T]) -> T:
    """Runs a client to its end."""

    async def within_time() -> T:
        return await asyncio.wait_for(work, 3 * PATIENCE)

    return asyncio.run(within_time())


def environment(root: Path) -> dict[str, str]:
    """Returns the variables of a server's process."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("DEERMEM_")},
        "DEERMEM_DATA_DIR": str(root),
        "DEERMEM_USER_ID": "alice",
    }


def signed_variables(folder: Path) -> dict[str, str]:
    """Returns what lets a server take signed tokens, whose keys are put into a folder."""
    keys = folder / "jwks.json"
    keys.touch(mode=0o600)
    keys.write_bytes(key_set(jwk("oct-1")))
    return {
        "DEERMEM_AUTH_MODE": "jwt",
        "DEERMEM_AUTH_ISSUER": ISSUER,
        "DEERMEM_AUTH_AUDIENCE": AUDIENCE,
        "DEERMEM_AUTH_JWKS_FILE": str(keys),
    }


def command(*options: str) -> list[str]:
    """Returns the command line of a server."""
    return [sys.executable, "-m", "deermem", "mcp", *options]


@dataclass(frozen=True, slots=True)
class Door:
    """Is a way into a store; `era` is the protocol that clients begin with."""

    root: Path
    era: str = "auto"
    url: str = ""
    options: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    @asynccontextmanager
    async def client(self, user: str = "alice", **headers: str) -> AsyncIterator[Client]:
        """Connects one client."""
        if self.url:
            sent = {USER_HEADER: user, **{name.replace("_", "-"): value for name, value in headers.items()}}
            async with (
                httpx2.AsyncClient(headers=sent, timeout=PATIENCE, trust_env=False) as connection,
                Client(
                    streamable_http_client(self.url, http_client=connection),
                    mode=self.era,
                    read_timeout_seconds=PATIENCE,
                ) as client,
            ):
                yield client
        else:
            program, *arguments = command(*self.options)
            parameters = StdioServerParameters(
                command=program, args=arguments, env={**environment(self.root), **self.variables}
            )
            with (self.root.parent / "stderr.log").open("a", encoding="utf-8") as log:
                transport = stdio_client(parameters, errlog=log)
                async with Client(transport, mode=self.era, read_timeout_seconds=PATIENCE) as client:
                    yield client

    def use(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Connects one client, and returns what it comes to."""

        async def connected() -> T:
            async with self.client() as client:
                return await work(client)

        return run(connected())

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Returns what one call of a client of its own comes to."""
        return self.use(lambda client: answer(client, name, **arguments))


async def answer(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """Returns the structured result of a call, which must be one; its text says the same."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert json.loads(content.text) == result.structured_content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refusal(client: Client, name: str, **arguments: Any) -> str:
    """Returns the text of a call that must fail, as a tool."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, result.structured_content
    assert result.structured_content is None
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def by_header(request: HTTPConnection) -> Identity:
    """Believes what a request says of its user."""
    user = request.headers.get(USER_HEADER)
    if not user:
        raise NotLetIn(401, "Authentication is needed.", {"WWW-Authenticate": "Bearer"})
    return Identity(user, user)


@contextmanager
def serving(
    manager: DeerMem,
    *,
    agent: str | None = None,
    read_only: bool = False,
    only_loopback: bool = True,
    verifier: Callable[[HTTPConnection], Identity] = by_header,
    origins: tuple[str, ...] = (),
    host: str = "127.0.0.1",
    identifying_headers: tuple[str, ...] = (),
    limits: LimitSettings | None = None,
    connections: GatewaySettings | None = None,
) -> Iterator[str]:
    """Serves a manager over HTTP while the block runs; gives the address."""
    started = threading.Event()
    with closing(listener_on(host, 0)) as listener:
        app = create_app(
            create_server(manager, scope_of_caller(agent), read_only=read_only),
            verifier,
            address=listener.getsockname()[:2],
            only_loopback=only_loopback,
            origins=origins,
            identifying_headers=identifying_headers,
            limits=limits,
        )
        server = server_of(app, connections or GatewaySettings())

        def work() -> None:
            try:
                server.run_on(listener, lambda _: started.set())
            finally:
                started.set()

        with in_thread(work):
            assert started.wait(PATIENCE)
            try:
                yield url_of(listener) + PATH
            finally:
                server.should_exit = True
