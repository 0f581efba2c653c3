"""What is said to a command line that cannot be understood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deermem.cli.exits import ExitCode, Report

# Commands that take text as an argument, which shells cut at blanks and Typer takes for options at dashes.
_TAKE_TEXT: Final = frozenset(["deermem add", "deermem search", "deermem summaries set"])


def usage_report(error: Any, arguments: Sequence[str], root: Any) -> Report:
    """Returns the report of an error of Typer's.

    Args:
        error: What Typer raised.
        arguments: What was typed.
        root: The command that has all the others below it.
    """
    path = error.ctx.command_path if error.ctx is not None else _path_of(arguments, root)
    message, hint = (
        error.format_message().rstrip(".").replace("Value error, ", ""),
        f"`{path} --help` shows what there is",
    )
    if type(error).__name__ == "NoSuchOption":
        message = f"no such option: {error.option_name}"
        hint = _hint_on_option(error, path)
    elif path in _TAKE_TEXT and "extra argument" in message:
        hint = "put the text in quotes"
    return Report("UsageError", message[:1].lower() + message[1:], hint, ExitCode.INVALID)


def _hint_on_option(error: Any, path: str) -> str:
    if path == "deermem":
        return "options follow the command, as in `deermem list --json`"
    typed = error.option_name
    # What begins as it was typed is closer than what Typer finds alike.
    close = sorted(error.possibilities or (), key=lambda each: (not each.startswith(typed), each))
    if close:
        return f"did you mean {' or '.join(close)}? `{path} --help` shows what there is"
    if path in _TAKE_TEXT:
        return f"text that begins with a dash comes after `--`; `{path} --help` shows the options"
    return f"`{path} --help` shows what there is"


def _path_of(arguments: Sequence[str], root: Any) -> str:
    """Returns the command that was typed, with those it is below."""
    names, command = ["deermem"], root
    for argument in arguments:
        command = getattr(command, "commands", {}).get(argument)
        if command is None:
            break
        names.append(argument)
    return " ".join(names)
