"""`deermem mcp --transport http`: who may call, as the gateway's authentication has it, and the end."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from deermem import DeerMem
from deermem.model.identity import Scope
from tests.gateway_auth.signing import signed
from tests.integrations.mcp.doors import (
    PATIENCE,
    Door,
    answer,
    command,
    environment,
    run,
    signed_variables,
)
from tests.integrations.mcp.test_http import OPENING, Raw, message


class Served:
    """Is a server's process."""

    def __init__(self, root: Path, process: subprocess.Popen[str], log: Path, url: str) -> None:
        self.root = root
        self.process = process
        self.url = url
        self._log = log

    @property
    def door(self) -> Door:
        """The way in."""
        return Door(self.root, url=self.url)

    @property
    def log(self) -> str:
        """What the process wrote on standard error."""
        return self._log.read_text("utf-8")

    def end(self) -> None:
        """Ends the process, which must be in order."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.log
        assert "Traceback" not in self.log


@contextmanager
def served(root: Path, *options: str, **variables: str) -> Iterator[Served]:
    """Runs a server while the block runs."""
    log = root.parent / "stderr.log"
    arguments = command("--transport", "http", "--port", "0", "--quiet", *options)
    with (
        log.open("w", encoding="utf-8") as stderr,
        subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**environment(root), **variables},
        ) as process,
    ):
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            assert url, log.read_text("utf-8")
            yield Served(root, process, log, url)
        finally:
            process.kill()


def deermem(root: Path, *arguments: str) -> str:
    """Runs a command and returns what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "deermem", *arguments, "--quiet"],
        check=True,
        capture_output=True,
        text=True,
        env=environment(root),
    ).stdout.strip()


def refused(root: Path, *options: str, **variables: str) -> str:
    """Returns why a server does not start."""
    ended = subprocess.run(
        command(*options),
        check=False,
        capture_output=True,
        text=True,
        env={**environment(root), **variables},
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
    )
    assert ended.returncode in (1, 2)
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.stderr


async def user_of(client: Client) -> Any:
    return (await answer(client, "memory_status"))["user"]


def user_over(door: Door, **headers: str) -> Any:
    async def look() -> Any:
        async with door.client("ignored", **headers) as client:
            return await user_of(client)

    return run(look())


def test_tokens_open_the_memory_of_their_user_until_they_are_revoked(root: Path) -> None:
    alice = deermem(root, "token", "create", "--user-id", "alice@example.com")
    bob = deermem(root, "token", "create", "--user-id", "bob")
    service = deermem(root, "token", "create", "--user-id", "app", "--role", "service")
    with served(root, DEERMEM_AUTH_MODE="token") as server:
        assert user_over(server.door, authorization=f"Bearer {alice}") == "alice@example.com"
        assert user_over(server.door, x_api_key=bob) == "bob"
        assert user_over(server.door, x_api_key=service, x_deermem_user="carol") == "carol"
        for credentials in ({}, {"authorization": "Bearer deermem_x"}, {"authorization": f"Basic {alice}"}):
            raw = Raw(server.url).post(OPENING, **credentials)
            assert raw.status_code == 401
            assert raw.headers["www-authenticate"].startswith("Bearer")
        assert Raw(server.url).post(OPENING, x_api_key=bob, x_deermem_user="alice").status_code == 403
        acting = Raw(server.url, x_api_key=bob)
        session = acting.session()
        assert acting.post(message("ping"), mcp_session_id=session).status_code == 200
        thief = Raw(server.url, authorization=f"Bearer {alice}")
        assert thief.post(message("ping"), mcp_session_id=session).status_code == 404
        carol = Raw(server.url, x_api_key=service, x_deermem_user="carol")
        session = carol.session()
        stolen = Raw(server.url, x_api_key=service, x_deermem_user="dave")
        assert stolen.post(message("ping"), mcp_session_id=session).status_code == 404
        deermem(root, "token", "revoke", bob.split("_")[1])
        assert acting.post(message("ping"), mcp_session_id=session).status_code == 401
        server.end()


def test_signed_tokens_open_the_memory_of_their_subject_until_they_expire(root: Path, tmp_path: Path) -> None:
    with served(root, **signed_variables(tmp_path)) as server:
        good = signed("oct-1", "HS512")
        assert user_over(server.door, authorization=f"Bearer {good}") == "alice@example.com"
        twin = signed("oct-1", "HS512", sub="alice@example.com", exp=int(time.time()) + 50)
        first = Raw(server.url, authorization=f"Bearer {good}")
        second = Raw(server.url, authorization=f"Bearer {twin}")
        session = first.session()
        assert second.post(message("ping"), mcp_session_id=session).status_code == 200  # the same subject
        for wrong in (
            signed("oct-1", "HS512", exp=int(time.time()) - 60),
            signed("oct-1", "HS512", aud="another"),
            signed("oct-1", "HS512", iss="https://evil.example"),
            signed("oct-1", "HS512", key=b"x" * 64),
            "not.a.token",
        ):
            told = Raw(server.url, authorization=f"Bearer {wrong}").post(
                message("ping"), mcp_session_id=session
            )
            assert told.status_code == 401
        bob = signed("oct-1", "HS512", sub="bob")
        stolen = Raw(server.url, authorization=f"Bearer {bob}")
        assert stolen.post(message("ping"), mcp_session_id=session).status_code == 404
        server.end()


def test_without_authentication_the_user_is_that_of_the_command_line(root: Path) -> None:
    with served(root, "--user-id", "carol", "--agent", "coder", DEERMEM_AUTH_USER="dave") as server:
        status = server.door.call("memory_status")
        assert (status["user"], status["agent"]) == ("carol", "coder")
        assert Raw(server.url).post(OPENING, host="evil.example").status_code == 421
        assert Raw(server.url).post(OPENING, x_deermem_user="alice").status_code == 403
        server.end()
    with served(root, "--no-user") as server:
        assert "user" not in server.door.call("memory_status")
    with served(root) as server:
        assert server.door.call("memory_status")["user"] == "alice"


@pytest.mark.skipif(os.name == "nt", reason="Windows kills")
def test_what_is_under_way_at_a_signal_is_answered(root: Path, other: DeerMem) -> None:
    other.create_fact("first", user_id="alice")
    with served(root) as server:

        async def add(client: Client) -> None:
            with other.repository.engine.maintenance(Scope.of("alice").user):
                adding = asyncio.ensure_future(answer(client, "memory_add", content="second"))
                for _ in range(20):  # so that it has been sent
                    assert (await answer(client, "memory_status"))["facts"] == 1
                server.process.terminate()
            assert (await adding)["outcome"] == "added"

        server.door.use(add)
        assert server.process.wait(PATIENCE) == 0, server.log
        assert "Traceback" not in server.log
    assert len(other.reload_memory(user_id="alice")["facts"]) == 2


def test_nobody_is_served_beyond_this_machine_without_authentication(root: Path) -> None:
    for host in ("0.0.0.0", "::", ""):  # noqa: S104 - to be refused
        told = refused(root, "--transport", "http", "--host", host or "0.0.0.0", "--port", "0")  # noqa: S104
        assert "reachable from other machines" in told


@pytest.mark.parametrize("origin", ["chat.example", "https://chat.example/", "*", "null"])
def test_what_is_no_origin_is_not_allowed_as_one(root: Path, origin: str) -> None:
    assert "is no origin" in refused(root, "--transport", "http", "--allow-origin", origin)


@pytest.mark.skipif(os.name == "nt", reason="Windows kills")
def test_a_second_signal_does_not_wait_and_is_no_failure(root: Path, other: DeerMem) -> None:
    other.create_fact("first", user_id="alice")
    with served(root) as server:

        async def add(client: Client) -> None:
            with other.repository.engine.maintenance(Scope.of("alice").user):
                adding = asyncio.ensure_future(client.call_tool("memory_add", {"content": "second"}))
                for _ in range(20):  # so that it has been sent
                    await answer(client, "memory_status")
                server.process.terminate()
                await asyncio.to_thread(wait_until_closed, server.url)
                server.process.terminate()
                with pytest.raises(MCPError):
                    await adding

        with suppress(ExceptionGroup):  # of a client that says goodbye to nobody
            server.door.use(add)
        assert server.process.wait(PATIENCE) == 0, server.log
        assert "Traceback" not in server.log


def wait_until_closed(url: str) -> None:
    """Waits until a server takes no new connections."""
    parts = httpx2.URL(url)
    with suppress(OSError):
        while True:
            socket.create_connection((parts.host, parts.port or 0), timeout=PATIENCE).close()


def test_a_user_is_not_named_where_callers_are_authenticated(root: Path) -> None:
    for option in (["--user-id", "bob"], ["--no-user"]):
        told = refused(root, "--transport", "http", *option, DEERMEM_AUTH_MODE="token")
        assert "no meaning where callers are authenticated" in told


def test_settings_come_from_a_file_too(root: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('max_facts = 12\n\n[auth]\nmode = "token"\n', "utf-8")
    token = deermem(root, "token", "create", "--user-id", "bob")
    with served(root, "--config", str(settings), "--read-only") as server:

        async def look() -> None:
            async with server.door.client(x_api_key=token) as client:
                status = await answer(client, "memory_status")
                assert (status["max_facts"], status["read_only"]) == (12, True)

        run(look())
    assert "cannot be read" in refused(root, "--config", str(tmp_path / "absent.toml"))
    settings.write_text("max_facts = 1\n", "utf-8")
    assert "max_facts" in refused(root, "--config", str(settings))


def test_json_tells_the_address(root: Path) -> None:
    with subprocess.Popen(
        command("--transport", "http", "--port", "0", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(root),
    ) as process:
        try:
            assert process.stdout
            text = process.stdout.readline() + process.stdout.readline() + process.stdout.readline()
            assert json.loads(text)["url"].endswith("/mcp")
        finally:
            process.terminate()
