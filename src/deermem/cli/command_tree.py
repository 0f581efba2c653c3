"""What the commands are and take, as values: for completion, the manual page and the reference.

Typer's own objects differ between its releases, so nothing else looks at them for this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """Is an option of a command, or an argument, whose only name is that of its value.

    `value` is empty for a flag, `default` for what is left out if it is not given, `choices` for any value.
    """

    names: tuple[str, ...]
    value: str
    help: str = ""
    default: str = ""
    choices: tuple[str, ...] = ()
    repeats: bool = False
    required: bool = False

    @property
    def long(self) -> str:
        """The long name."""
        return max(self.names, key=len)


@dataclass(frozen=True, slots=True)
class Command:
    """Is a command by what is typed, such as `token list`, or the application as a whole, by nothing.

    `works` tells whether it does something without a command of its own behind it.
    """

    name: str
    panel: str
    help: str
    arguments: tuple[Option, ...]
    options: tuple[Option, ...]
    commands: tuple[Command, ...] = ()
    works: bool = True

    @property
    def summary(self) -> str:
        """The first paragraph of the help, in one line."""
        return " ".join(self.help.partition("\n\n")[0].split())

    def walk(self) -> Iterator[Command]:
        """Yields the command and those below it."""
        yield self
        for each in self.commands:
            yield from each.walk()


def command_tree() -> Command:
    """Returns the application with every command that is not another name of one."""
    return _with_commands(Node.root())


def _with_commands(node: Node) -> Command:
    below = [node.below(name) for name, _ in node.listed()]
    return replace(node.command(), commands=tuple(_with_commands(each) for each in below))


class Node:
    """Is one command of Typer's, from which one can go down; nothing that is not asked for is imported."""

    def __init__(self, command: Any, name: str) -> None:
        self._command = command
        self._name = name

    @classmethod
    def root(cls) -> Node:
        """Returns the application."""
        from typer.main import get_command

        from deermem.cli.app import app

        return cls(get_command(app), "")

    def listed(self) -> Iterator[tuple[str, str]]:
        """Yields the names and the summaries of the commands below it, but not other names of them."""
        for name in getattr(self._command, "commands", ()):
            found = self._command.get_command(None, name)
            if not found.hidden:
                yield name, (found.help or "").partition("\n")[0]

    def has(self, name: str) -> bool:
        """Tells whether there is a command of this name below it."""
        return name in getattr(self._command, "commands", ())

    def below(self, name: str) -> Node:
        """Returns a command below it."""
        return Node(self._command.commands[name], f"{self._name} {name}".strip())

    def command(self) -> Command:
        """Returns the command, without those below it."""
        command = self._command
        parameters = [each for each in command.params if not getattr(each, "hidden", False)]
        options = [_option(each) for each in parameters if each.param_type_name == "option"]
        return Command(
            name=self._name,
            panel=str(getattr(command, "rich_help_panel", "") or ""),
            help=(command.help or "").strip(),
            arguments=tuple(_argument(each) for each in parameters if each.param_type_name == "argument"),
            options=(*options, Option(("--help", "-h"), "", "Show this message and exit.")),
            works=not hasattr(command, "commands") or bool(command.invoke_without_command),
        )


def _argument(parameter: Any) -> Option:
    metavar = parameter.metavar or parameter.name.upper()
    return Option(
        names=(metavar.removesuffix("..."),),
        value=metavar,
        help=parameter.help or "",
        default=_text(parameter.default),
        repeats=parameter.nargs == -1,
        required=parameter.required,
    )


def _option(parameter: Any) -> Option:
    choices = tuple(str(each.value) for each in type(parameter.default)) if _is_choice(parameter) else ()
    return Option(
        names=tuple(parameter.opts),
        value="" if parameter.is_flag else parameter.metavar or "|".join(choices) or parameter.name.upper(),
        help=parameter.help or "",
        default="" if parameter.is_flag or parameter.multiple else _text(parameter.default),
        choices=choices,
        repeats=parameter.multiple,
        required=parameter.required,
    )


def _is_choice(parameter: Any) -> bool:
    return isinstance(parameter.default, Enum)


def _text(default: Any) -> str:
    if default is None or default is False:
        return ""
    return str(default.value if isinstance(default, Enum) else default)
