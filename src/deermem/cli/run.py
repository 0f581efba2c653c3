"""Runs the command line and turns everything into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, cast

import typer
from typer.main import get_command

from deermem.cli.app import app
from deermem.cli.exits import ExitCode, report_of
from deermem.cli.output import Output, silence, use_utf8
from deermem.cli.usage import usage_report

# Typer brings its own copy of Click, or in older releases the real one: the base of their errors is
# found from one that Typer has always exported.
_USAGE_ERROR: Final = cast("type[Any]", typer.BadParameter.__mro__[1])


def run(arguments: Sequence[str]) -> int:
    """Runs one command.

    Returns:
        The exit code.
    """
    use_utf8()
    options = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    out = Output(as_json="--json" in options)
    try:
        if not arguments:
            _invoke(["--help"], out)
            return ExitCode.INVALID
        return _invoke(arguments, out)
    except BrokenPipeError:  # only from Typer, which writes the help itself
        silence(sys.stdout)
        return ExitCode.OK
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - nobody gets to see a stack trace
        report = report_of(error)
        out.report(report)
        return report.code


def _invoke(arguments: Sequence[str], out: Output) -> int:
    command = _command()
    try:
        with command.make_context("deermem", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as wanted:
        return wanted.exit_code
    except _USAGE_ERROR as error:
        out.report(usage_report(error, arguments, command))
        return ExitCode.INVALID
    return ExitCode.OK


@cache
def _command() -> Any:
    return get_command(app)
