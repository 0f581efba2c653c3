"""The table of commands says what the commands say, and only the one that is called is imported."""

from __future__ import annotations

import subprocess
import sys
from inspect import cleandoc
from typing import Any

import pytest
from typer.main import get_command

from deermem.cli.app import app
from deermem.cli.commands import COMMANDS, Listed

_LOADED = """
import sys
from deermem.cli.run import run
code = run(sys.argv[1:])
origins = {modules}
print("LOADED", code, *sorted(name for name in origins if f"deermem.cli.{{name}}" in sys.modules))
"""


def root() -> Any:
    return get_command(app)


@pytest.mark.parametrize("listed", COMMANDS, ids=lambda listed: listed.name)
def test_the_help_lists_a_command_as_it_describes_itself(listed: Listed) -> None:
    command = root().commands[listed.name]
    assert cleandoc(command.help).splitlines()[0] == listed.says
    assert (command.name, command.rich_help_panel, command.hidden) == (
        listed.name,
        listed.panel,
        listed.hidden,
    )


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [(["--help"], set()), (["--version"], set()), (["get", "--help"], {"queries"}), (["lst"], set())],
    ids=" ".join,
)
def test_only_the_module_of_the_called_command_is_imported(arguments: list[str], imported: set[str]) -> None:
    modules = {listed.origin.partition(".")[0] for listed in COMMANDS}
    program = _LOADED.format(modules=sorted(modules))
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert set(ended.stdout.splitlines()[-1].split()[2:]) == imported


def test_all_commands_can_be_walked_through() -> None:
    commands = root().commands
    assert list(commands) == [listed.name for listed in COMMANDS]
    assert all(command.get_help_option is not None for command in commands.values())
    assert {"create", "list", "revoke"} == set(commands["token"].commands)
