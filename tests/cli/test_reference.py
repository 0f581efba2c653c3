"""The pages of the reference name every command, option, exit code and error, and none that is not there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from deermem import errors
from deermem.cli.app import app
from deermem.cli.exits import ExitCode, exit_code_of

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
COMMAND_LINE = (REFERENCE / "command-line.md").read_text("utf-8")
SHARED = {"--storage-path", "--json", "--quiet", "--user-id", "--no-user", "--agent", "--help"}


def commands() -> Iterator[tuple[str, Any]]:
    """Yields every command that does something, by what is typed."""
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]  # the root is a group
        below = getattr(command, "commands", None)
        if below is None:
            if not command.hidden:  # another name of a command that is told of
                yield name, command
        else:
            if command.invoke_without_command:
                yield name, command
            yield from ((f"{name} {each}", inner) for each, inner in below.items())


COMMANDS = dict(commands())


def section_of(command: str) -> str:
    """Returns what the page says of a command."""
    found = re.search(
        rf"^### deermem {command}(?: [^\n]*)?$(.*?)(?=^##|\Z)", COMMAND_LINE, re.MULTILINE | re.DOTALL
    )
    assert found, f"docs/reference/command-line.md has no section on {command}"
    return found[1]


def options_of(command: Any) -> dict[str, set[str]]:
    """Returns the options of a command: the long name, and every other."""
    names = [set(each.opts) for each in command.params if each.param_type_name == "option"]
    return {max(each, key=len): each for each in names}


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    sections = re.findall(r"^### deermem ([a-z -]+?)(?= ?\[?[A-Z]|$)", COMMAND_LINE, re.MULTILINE)
    assert sorted(sections) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_section_of_a_command_names_its_options_and_no_others(name: str) -> None:
    own = {option: names for option, names in options_of(COMMANDS[name]).items() if option not in SHARED}
    rows = re.findall(r"^\| (`-.*?) \|", section_of(name), re.MULTILINE)
    told = [set(re.findall(r"`(--?[a-z-]+)", row)) for row in rows]
    assert sorted(map(sorted, told)) == sorted(map(sorted, own.values()))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_heading_of_a_command_names_its_arguments(name: str) -> None:
    arguments = [each.metavar for each in COMMANDS[name].params if each.param_type_name == "argument"]
    heading = re.search(rf"^### deermem {name}((?: [^a-z]+)?)$", COMMAND_LINE, re.MULTILINE)
    assert heading
    assert heading[1].split() == arguments


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_that_most_commands_have_are_told_of_where_they_are(name: str) -> None:
    has = SHARED & set(options_of(COMMANDS[name]))
    without_user = name in ("init", "demo", "serve", "token list", "token revoke", "backup verify")
    without_agent = name.startswith(("backup", "restore", "summaries", "token", "undo")) or name in (
        "init",
        "check",
        "demo",
        "erase-user",
        "locks",
        "migrate",
        "serve",
        "status",
    )
    expected = SHARED - {"--help"} if name != "completion" else set()
    if without_user:
        expected -= {"--user-id", "--no-user"}
    if without_agent:
        expected -= {"--agent"}
    assert has - {"--help"} == expected


def test_the_table_of_shared_options_is_complete() -> None:
    table = COMMAND_LINE.partition("## Options of most commands")[2].partition("## Exit codes")[0]
    told = set(re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE))
    assert told == SHARED
    for option in SHARED - {"--help"}:
        names = next(opts for each in COMMANDS.values() if (opts := options_of(each).get(option)))
        assert all(f"`{name}" in table for name in names)


def test_the_table_of_exit_codes_is_that_of_the_command_line() -> None:
    table = COMMAND_LINE.partition("## Exit codes")[2].partition("[Errors]")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == sorted(ExitCode)


def test_every_public_error_is_told_of_with_its_exit_code() -> None:
    text = (REFERENCE / "errors.md").read_text("utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", text, re.MULTILINE))
    public = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, Exception)]
    assert {name: int(code) for name, code in told.items()} == {
        each.__name__: int(exit_code_of(each)) for each in public
    }


@pytest.mark.parametrize("name", ["DEERMEM_DATA_DIR", "DEERMEM_USER_ID", "DEERMEM_LOCK_TIMEOUT", "NO_COLOR"])
def test_every_variable_is_told_of(name: str) -> None:
    assert f"| `{name}` |" in COMMAND_LINE
