"""The application: what `deermem` does without a command, and all commands."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from deermem.cli.commands import Commands
from deermem.cli.helping import MARKUP
from deermem.cli.output import write

app: Final = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        write(sys.stdout, f"deermem {version('deermem')}\n")
        raise typer.Exit


@app.callback()
def _deermem(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Keeps what agents remember of their users, as files that a person can read."""
