"""`token create`, `token list` and `token revoke`: who may use the gateway."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from deermem.cli.exits import ExitCode, Report, UsageError
from deermem.cli.helping import MARKUP
from deermem.cli.options import StoreOptions, UserOptions, with_options
from deermem.cli.output import one_line
from deermem.cli.settings_file import read_tables, told_by_file
from deermem.errors import InvalidInputError

if TYPE_CHECKING:
    from deermem.gateway.auth.token_file import TokenFile
    from deermem.gateway.auth.token_list import TokenEntry

TokenFileOption = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="The file of tokens [DEERMEM_AUTH_TOKEN_FILE, else in the storage root].",
    ),
]
ConfigOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="The settings file of the gateway, TOML or YAML.")
]


@dataclass(frozen=True, slots=True)
class TokenOptions(StoreOptions):
    """Says which file of tokens a command works on."""

    token_file: TokenFileOption = None
    config: ConfigOption = None


@dataclass(frozen=True, slots=True)
class NewTokenOptions(UserOptions):
    """Says whose token to make, too."""

    token_file: TokenFileOption = None
    config: ConfigOption = None


@with_options(NewTokenOptions)
def create(
    options: NewTokenOptions,
    role: Annotated[str, typer.Option(metavar="ROLE", help="`user`, `service` or `administrator`.")] = "user",
    note: Annotated[str, typer.Option(metavar="TEXT", help="What the token is for.")] = "",
) -> None:
    """Make a token for the gateway, and print it.

    It is shown this once: the file has its hash only. With --quiet nothing else is printed.
    """
    from deermem.gateway.auth.caller import Role
    from deermem.model.timestamps import format_timestamp

    if role not in list(Role):
        raise UsageError(f"--role must be one of {', '.join(Role)}")
    user = options.user
    if user is None:
        raise UsageError("a token is of a user; --no-user does not go with it")
    created = format_timestamp(datetime.now(UTC))
    try:
        token, entry = _file_of(options).create(user, Role(role), created, note)
    except InvalidInputError as error:
        if error.field != "user_id":
            raise
        raise UsageError(
            f"the user id {error.reason}", "name the user with --user-id or DEERMEM_USER_ID"
        ) from None
    options.out.show({"token": token, **_document(entry)}, lines=[token], brief=[token])
    options.out.note(
        f"Token {entry.id} is of the {entry.role} {one_line(entry.user)}; it is not shown again."
    )


@with_options(TokenOptions)
def list_tokens(options: TokenOptions) -> None:
    """List the tokens of the gateway: id, role, time, user and note, but not the tokens themselves.

    With --quiet only the ids are printed.
    """
    entries = _file_of(options).read().entries.values()
    options.out.show(
        {"tokens": [_document(entry) for entry in entries]},
        lines=["\t".join(map(one_line, _document(entry).values())) for entry in entries],
        brief=[entry.id for entry in entries],
    )
    if not entries:
        options.out.note("No tokens.")


@with_options(TokenOptions)
def revoke(
    options: TokenOptions,
    token_ids: Annotated[
        list[str], typer.Argument(metavar="TOKEN_ID...", show_default=False, help="As `token list` shows it.")
    ],
) -> None:
    """Take tokens back; a running gateway refuses them from its next request on.

    If one of the ids is unknown, the others are taken back all the same, and the command fails.
    """
    gone = _file_of(options).revoke(token_ids)
    known = [entry.id for entry in gone]
    problems = [_unknown(token_id) for token_id in token_ids if token_id not in known]
    document: dict[str, Any] = {"revoked": [_document(entry) for entry in gone]}
    if problems:
        document["problems"] = [problem.document()["error"] for problem in problems]
    options.out.show(
        document,
        lines=[f"Took back token {entry.id} of {one_line(entry.user)}" for entry in gone],
        brief=known,
    )
    options.out.exit_if(problems)


def _unknown(token_id: str) -> Report:
    return Report(
        "TokenNotFound",
        f"no token has the id {token_id}",
        "`deermem token list` shows the ids",
        ExitCode.NOT_FOUND,
    )


def _file_of(options: TokenOptions | NewTokenOptions) -> TokenFile:
    """Returns the file that `serve` takes with the same settings."""
    from deermem.gateway.auth.settings import PREFIX, default_token_file
    from deermem.gateway.auth.token_file import TokenFile

    named = read_tables(options.config)["auth"].get("token_file")
    if not isinstance(named, str | None):
        raise UsageError(f"{options.config}: auth.token_file must be text")
    path = options.token_file or os.environ.get(f"{PREFIX}TOKEN_FILE") or named
    return TokenFile(os.path.abspath(path or default_token_file(_root_of(options))))


def _root_of(options: TokenOptions | NewTokenOptions) -> str:
    from deermem.config import DeerMemConfig

    if options.storage_path is not None:
        return options.storage_root
    with told_by_file(options.config):
        return DeerMemConfig.load(options.config).storage_root()


def _document(entry: TokenEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "role": str(entry.role),
        "created": entry.created,
        "user": entry.user,
        "note": entry.note,
    }


application: Final = typer.Typer(rich_markup_mode=MARKUP)
application.command("create")(create)
application.command("list")(list_tokens)
application.command("revoke")(revoke)


@application.callback()
def _of_tokens() -> None:
    """Make, list or take back the tokens of the gateway."""
