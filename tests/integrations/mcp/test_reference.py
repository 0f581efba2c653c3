"""The reference names every tool, argument, key of a result and outcome, with its limits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from deermem.asgi.connections import MAX_HEAD_BYTES
from deermem.asgi.limits import LimitSettings
from deermem.gateway.settings import GatewaySettings
from deermem.integrations.mcp import http, sessions, shapes, stdio, turns, wire
from deermem.integrations.mcp.resources import PAGE
from deermem.integrations.mcp.tools import ToolKind, tools

TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "mcp.md").read_text("utf-8")
TOOLS = dict(tools(read_only=False))


def rows(heading: str) -> list[list[str]]:
    """Returns the cells of the first table below a heading, without its head."""
    below = TEXT.partition(f"{heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert table
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[0].splitlines()[2:]]


def named(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_the_table_of_tools_is_complete() -> None:
    told = {named(row[0])[0]: row for row in rows("## Tools")}
    assert list(told) == list(TOOLS)
    for name, kind in TOOLS.items():
        assert named(told[name][3]) == list(kind.arguments.model_fields)
        assert told[name][2] == ("no" if kind.reads else "yes")


def test_the_table_of_arguments_is_complete() -> None:
    arguments = {name for kind in TOOLS.values() for name in kind.arguments.model_fields}
    assert {named(row[0])[0] for row in rows("### Arguments")} == arguments


@pytest.mark.parametrize("kind", TOOLS.values(), ids=lambda kind: kind.name)
def test_every_key_of_a_result_is_told_of(kind: ToolKind) -> None:
    below = TEXT.partition("### Results")[2].partition("### Errors")[0]
    assert set(kind.result.model_fields) | set(shapes.FactShown.model_fields) <= set(named(below))


def test_every_outcome_is_told_of() -> None:
    has_outcome: list[Any] = [shapes.Added, shapes.Updated, shapes.Deleted, shapes.Got]
    outcomes = {each for kind in has_outcome for each in get_args(kind.model_fields["outcome"].annotation)}
    below = TEXT.partition("| outcome |")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", below, re.MULTILINE)) == outcomes


@pytest.mark.parametrize(
    "words",
    [
        f"1 to {shapes.MAX_CONTENT:,} characters",
        f"1 to {shapes.MAX_QUERY:,} characters",
        f"1 to {shapes.MAX_CATEGORY} characters",
        f"1 to {shapes.MAX_LISTED} ",
        f"after {shapes.SHOWN_OF_MANY:,} characters",
        f"alone after {shapes.SHOWN_OF_ONE:,}",
        f"of many the first {shapes.MAX_EVICTED_SHOWN}",
        f"{turns.MOST_WAITING} calls of this user",
        f"{turns.READERS} reading and {turns.WRITERS} writing calls",
        f"listed {PAGE} at a time",
        f"more than {wire.MAX_LINE // 2**20} MiB",
        f"up to {stdio.DEFAULT_ENDING_SECONDS:.0f} seconds",
        f"never more than {wire.MAX_LINE // 2**20} MiB",
        f"a request may take {LimitSettings().request_seconds:.0f} seconds",
        f"{LimitSettings().requests_per_minute:,} requests a minute and {LimitSettings().burst} at once",
        f"A head may have {MAX_HEAD_BYTES // 2**10} KiB",
        f"may have {sessions.MOST_SESSIONS} sessions (else 429)",
        f"all callers {http.MAX_SESSIONS:,} (else 503)",
        f"idle for {http.IDLE_SECONDS / 60:.0f} minutes",
        f"up to {GatewaySettings().shutdown_seconds:.0f} seconds",
    ],
)
def test_the_limits_are_those_of_the_server(words: str) -> None:
    assert words in " ".join(TEXT.split())


def without(package: str, program: str) -> subprocess.CompletedProcess[str]:
    """Runs Python where a package is not installed."""
    hidden = f"import sys; sys.modules[{package!r}] = None; {program}"
    return subprocess.run([sys.executable, "-c", hidden], check=False, capture_output=True, text=True)


def test_without_the_sdk_a_sentence_says_what_to_install() -> None:
    ended = without("mcp", "import deermem.integrations.mcp")
    assert (
        'ImportError: deermem.integrations.mcp needs the MCP SDK: pip install "deermem[mcp]"' in ended.stderr
    )
    ended = without("mcp", "import deermem.cli; sys.argv = ['deermem', 'mcp']; deermem.cli.main()")
    assert ended.returncode == 2
    assert "Error: the Python package mcp is missing" in ended.stderr
    assert 'pip install "deermem[mcp]"' in ended.stderr


def test_without_what_only_the_gateway_needs_the_server_starts() -> None:
    needed = ["fastapi", "prometheus_client", "uvloop", "httptools"]
    hiding = "; ".join(f"sys.modules[{each!r}] = None" for each in needed)
    program = (
        f"{hiding}; from deermem.cli import mcp; from deermem.gateway.auth import make_authenticator;"
        " import deermem.gateway.settings; import deermem.integrations.mcp.http;"
        " from deermem.asgi.plain_connections import PlainProtocol;"
        " from deermem.asgi.protocols import limited_protocol;"
        " assert issubclass(limited_protocol(1, 1), PlainProtocol)"
    )
    ended = without("httptools", program)
    assert ended.returncode == 0, ended.stderr
