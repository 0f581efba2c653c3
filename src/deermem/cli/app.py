"""The application: every command, by group, in the order of the help."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from deermem.cli import backup as saving
from deermem.cli import (
    changes,
    check,
    clearing,
    demo,
    erase,
    explain,
    locks,
    migrate,
    places,
    queries,
    restore,
    serve,
    status,
    summaries,
    token,
    transfer,
    undo,
)
from deermem.cli.output import can_draw, write

# Boxes are for a person at a terminal; pipes get plain text, which is also made faster.
_MARKUP: Final = "rich" if can_draw() else None

app: Final = typer.Typer(
    add_completion=False,
    rich_markup_mode=_MARKUP,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_summaries: Final = typer.Typer(rich_markup_mode=_MARKUP)
_token: Final = typer.Typer(rich_markup_mode=_MARKUP)
_backup: Final = typer.Typer(rich_markup_mode=_MARKUP, invoke_without_command=True)


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


@_summaries.callback()
def _of_summaries() -> None:
    """Show or set the summaries of a user."""


@_token.callback()
def _of_tokens() -> None:
    """Make, list or take back the tokens of the gateway."""


_backup.callback()(saving.backup)
_backup.command("verify")(saving.verify)

for name, command in (("show", summaries.show), ("set", summaries.set_summary)):
    _summaries.command(name)(command)

for name, command in (("create", token.create), ("list", token.list_tokens), ("revoke", token.revoke)):
    _token.command(name)(command)

for panel, commands in {
    "The store": (
        ("init", places.init),
        ("status", status.status),
        ("path", places.path),
        ("demo", demo.demo),
    ),
    "Facts": (
        ("add", changes.add),
        ("get", queries.get),
        ("list", queries.list_facts),
        ("search", queries.search),
        ("update", changes.update),
        ("adopt", changes.adopt),
        ("delete", changes.delete),
        ("clear", clearing.clear),
        ("export", transfer.export),
        ("import", transfer.import_document),
    ),
    "Operations": (
        ("check", check.check),
        ("migrate", migrate.migrate),
        ("restore", restore.restore),
        ("undo", undo.undo),
        ("erase-user", erase.erase_user),
        ("locks", locks.locks),
        ("explain", explain.explain),
    ),
    "Services": (("serve", serve.serve),),
}.items():
    for name, command in commands:
        app.command(name, rich_help_panel=panel)(command)

for alias in ("doctor", "fsck"):
    app.command(alias, hidden=True)(check.check)

app.add_typer(_summaries, name="summaries", rich_help_panel="Summaries")
app.add_typer(_backup, name="backup", rich_help_panel="Operations")
app.add_typer(_token, name="token", rich_help_panel="Services")
