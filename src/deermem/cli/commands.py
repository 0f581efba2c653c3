"""Every command, by group, in the order of the help; a command's module is imported when it is called.

Starting a command line costs more than most of its commands, and half of that would be the modules of the
others. So this table says what the help of the whole shows; `tests/cli/test_commands.py` compares it with
the commands themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from deermem.cli.helping import MARKUP, without_types


class Listed(NamedTuple):
    """Is a command as the help lists it.

    `origin` names a function of a module of this package, or a Typer application with commands of its own.
    """

    panel: str
    name: str
    origin: str
    says: str
    hidden: bool = False


_STORE: Final = "The store"
_FACTS: Final = "Facts"
_OPERATIONS: Final = "Operations"
_SERVICES: Final = "Services"
_SUMMARIES: Final = "Summaries"
_SHELL: Final = "Shell"

_CHECK: Final = "Read everything, change nothing, and say what is wrong."

COMMANDS: Final = (
    Listed(_STORE, "init", "places.init", "Make the storage root, if it is not there."),
    Listed(_STORE, "status", "status.status", "Show where the memory is and how it is."),
    Listed(_STORE, "path", "places.path", "Print where the memory is."),
    Listed(_STORE, "demo", "demo.demo", "Show the store at work on a bundled sample."),
    Listed(_FACTS, "add", "changes.add", "Add a fact, unless its text is stored already."),
    Listed(_FACTS, "get", "queries.get", "Show one fact."),
    Listed(_FACTS, "list", "queries.list_facts", "List facts, sorted by id."),
    Listed(_FACTS, "search", "queries.search", "Find facts that contain a text."),
    Listed(_FACTS, "update", "changes.update", "Change the given fields of a fact; the others stay."),
    Listed(_FACTS, "adopt", "changes.adopt", "Make a commit of a fact that was edited by hand."),
    Listed(_FACTS, "delete", "changes.delete", "Delete facts: all of them or none."),
    Listed(_FACTS, "clear", "clearing.clear", "Delete all facts of an agent, or of all."),
    Listed(
        _FACTS, "export", "transfer.export", "Print the summaries and an agent's facts as one JSON document."
    ),
    Listed(
        _FACTS,
        "import",
        "transfer.import_document",
        "Replace the summaries and an agent's facts by those of a JSON document.",
    ),
    Listed(_OPERATIONS, "check", "check.check", _CHECK),
    Listed(_OPERATIONS, "migrate", "migrate.migrate", "Make version-1 memory version 2."),
    Listed(
        _OPERATIONS,
        "restore",
        "restore.restore",
        "Bring back what `deermem backup` saved: all of it, or the user of --user-id.",
    ),
    Listed(
        _OPERATIONS,
        "undo",
        "undo.undo",
        "Take back the user's last clear, import, restore or trim to the cap.",
    ),
    Listed(
        _OPERATIONS, "erase-user", "erase.erase_user", "Remove all that DeerMem keeps of a user, for good."
    ),
    Listed(_OPERATIONS, "locks", "locks.locks", "Show who holds or awaits the lock of a user."),
    Listed(
        _OPERATIONS, "explain", "explain.explain", "Show where a memory lies, why there, and what is on disk."
    ),
    Listed(_SERVICES, "serve", "serve.serve", "Serve the memories over HTTP, until SIGTERM or Ctrl-C."),
    Listed(
        _SERVICES,
        "mcp",
        "mcp.mcp",
        "Offer the memory to a client of the Model Context Protocol (MCP).",
    ),
    Listed(
        _SHELL,
        "completion",
        "completion.completion",
        "Print the script that makes a shell complete commands and options.",
    ),
    Listed(_OPERATIONS, "doctor", "check.check", _CHECK, True),
    Listed(_OPERATIONS, "fsck", "check.check", _CHECK, True),
    Listed(_SUMMARIES, "summaries", "summaries.application", "Show or set the summaries of a user."),
    Listed(
        _OPERATIONS,
        "backup",
        "backup.application",
        "Save a user, or all, in one file; programs may go on meanwhile.",
    ),
    Listed(_SERVICES, "token", "token.application", "Make, list or take back the tokens of the gateway."),
)


class Commands(TyperGroup):
    """Has all commands: `commands` imports each when it is asked for, the help none of them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Loading(self)
        self._stubs = {
            listed.name: TyperCommand(
                listed.name,
                help=listed.says,
                hidden=listed.hidden,
                rich_help_panel=listed.panel,
                rich_markup_mode=MARKUP,
            )
            for listed in COMMANDS
        }

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Click calls it by this name
        """Returns the names of all commands."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Click calls it by these names
        """Returns what the help and a completion show of a command; it takes no options."""
        return self._stubs.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Returns the command that the arguments call, and what is left for it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else self.commands[name], rest


class _Loading(Mapping[str, Any]):
    """Is every command by its name, made when it is first asked for."""

    def __init__(self, root: Commands) -> None:
        self._root = root
        self._listed = {listed.name: listed for listed in COMMANDS}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(self._listed[name], self._root)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


def _load(listed: Listed, root: Commands) -> Any:
    module, _, attribute = listed.origin.partition(".")
    found = getattr(import_module(f"deermem.cli.{module}"), attribute)
    carrier = typer.Typer(rich_markup_mode=MARKUP, add_completion=False)
    carrier.callback()(_nothing)
    if isinstance(found, typer.Typer):
        carrier.add_typer(found, name=listed.name, rich_help_panel=listed.panel)
    else:
        carrier.command(listed.name, rich_help_panel=listed.panel, hidden=listed.hidden)(found)
    made: Any = get_command(carrier)
    command = made.commands[listed.name]
    without_types(command, root.context_class(root, info_name=root.name, **root.context_settings))
    return command


def _nothing() -> None:
    """Makes a group of an application with one command."""
