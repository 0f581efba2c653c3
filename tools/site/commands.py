"""The page of the commands: what `--help` says of each, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deermem.cli.command_tree import Command, Option, command_tree
from tools.site.tables import code, heading, table

_OPENING: Final = """\
# Commands and options

What `deermem COMMAND --help` says, of every command. [The command line](../command-line.md) tells more of
each, and has [the exit codes](../command-line.md#exit-codes). `make man` makes a manual page of it.
"""


def page() -> str:
    """Returns the page."""
    tree = command_tree()
    parts = [_OPENING]
    for command in tree.walk():
        if command.works:
            parts += _section(command)
    return "\n\n".join([*parts, ""])


def anchor_of(command: str) -> str:
    """Returns the anchor of a command."""
    return "-".join(("deermem", *command.split()))


def _section(command: Command) -> Iterator[str]:
    title = f"deermem {command.name}"
    yield heading(2, f"`{title}`", anchor_of(command.name))
    arguments = "".join(f" {each.value}" for each in command.arguments)
    yield f"```text\n{title} [OPTIONS]{arguments}\n```"
    yield command.help
    rows = [_row(each, command) for each in (*command.arguments, *command.options)]
    yield table(("takes", "which means", "default"), rows)


def _row(option: Option, command: Command) -> list[str]:
    names = ", ".join(code(each) for each in option.names)
    is_option = option.long.startswith("-")
    value = f" {code(option.value)}" if option.value and is_option else ""
    anchor = f'<span id="{anchor_of(command.name)}{option.long}"></span>' if is_option else ""
    told = option.help + (" May be repeated." if option.repeats and "repeated" not in option.help else "")
    return [anchor + names + value, told, code(option.default)]
