"""What the help shows: Typer names the Python type of every parameter, which no user has a use for."""

from __future__ import annotations

from typing import Any, Final

from deermem.cli.output import can_draw

# Boxes are for a person at a terminal; pipes get plain text, which is also made faster.
MARKUP: Final = "rich" if can_draw() else None


def without_types(command: Any, above: Any = None) -> None:
    """Takes the types out of the help of a command and of those below it.

    An option has the name of its value; a flag has none, and an argument its own.

    Args:
        command: A command, or a group of them.
        above: The context of the group that it is in.
    """
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _no_type
        elif getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    context = command.context_class(command, parent=above, info_name=command.name, **command.context_settings)
    if (help_option := command.get_help_option(context)) is not None:
        help_option.metavar = ""
    for each in getattr(command, "commands", {}).values():
        without_types(each, context)


def _no_type(ctx: Any) -> str:  # noqa: ARG001 - Typer calls it by this name
    return ""
