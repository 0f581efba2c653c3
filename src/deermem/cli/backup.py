"""`backup` and `backup verify`: a whole store in one file."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from deermem.cli.exits import UsageError, report_of
from deermem.cli.helping import MARKUP
from deermem.cli.options import StoreOptions, UserOptions, with_options
from deermem.cli.outfile import given_file, result_file
from deermem.cli.output import number_of

if TYPE_CHECKING:
    from deermem.maintenance.saving import SavedUser
    from deermem.model.identity import UserId
    from deermem.repository import MemoryRepository

ArchiveArgument = Annotated[str, typer.Argument(metavar="FILE", show_default=False)]
WithAgents = Annotated[
    bool, typer.Option("--with-agents", help="The config.yaml and SOUL.md of agents, too.")
]

_SHOWN = 20


class _NothingSaved(Exception):
    """Says that an archive would be empty: none is made, and none replaced."""


@with_options(UserOptions)
def backup(
    options: UserOptions,
    context: typer.Context,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="The archive to write.")
    ] = None,
    all_users: Annotated[bool, typer.Option("--all-users", help="Save every user.")] = False,
    with_agents: WithAgents = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Save a user, or all, in one file; programs may go on meanwhile.

    Each user is saved as of one moment. `deermem restore` brings it back.
    """
    if context.invoked_subcommand is not None:
        return
    if out is None:
        raise UsageError("--out is missing", "name the archive to write: --out backup.tar.gz")
    if out == "-":
        raise UsageError(
            "a backup is not written to standard output", "name a file with --out, and send that"
        )
    if all_users and (options.user_id is not None or options.no_user):
        raise UsageError("--all-users goes with neither --user-id nor --no-user")
    from deermem.cli.absence import require_root
    from deermem.maintenance.backup import back_up

    with options.plain_repository() as repository:
        require_root(repository)
        users = _users(options, repository, all_users=all_users)
        saved: list[SavedUser] = []
        with suppress(_NothingSaved), result_file(out, force=force) as stream:
            saved = back_up(repository.engine, users, stream, tool=_tool(), with_agents=with_agents)
            if not any(each.files for each in saved):
                raise _NothingSaved
        root = repository.storage_root
    if not any(each.files for each in saved):
        nothing = UsageError("there is nothing to save")
        raise next((problem for each in saved for problem in each.problems), nothing)
    problems = [report_of(problem, root) for each in saved for problem in each.problems]
    path = os.path.abspath(out)
    options.out.show(
        {
            "path": path,
            "bytes": os.path.getsize(path),
            "users": [_saved_document(each) for each in saved],
            "problems": [problem.document()["error"] for problem in problems],
        },
        lines=[
            *(
                f"Saved {each.user} (revision {_known(each.revision)}, {_files(each.files)})"
                for each in saved
            ),
            f"Wrote {path} ({os.path.getsize(path):,} bytes)",
        ],
        brief=[path],
    )
    options.out.exit_if(problems)


@with_options(StoreOptions)
def verify(options: StoreOptions, file: ArchiveArgument) -> None:
    """Read a backup from end to end, and say whether it can be restored.

    Every file is compared with its hash, and every fact is read.
    """
    from deermem.maintenance.backup import verify as verify_archive

    with given_file(file) as stream:
        found = verify_archive(stream)
    problems = [report_of(problem) for problem in found.problems]
    options.out.show(
        {
            "path": os.path.abspath(file),
            "tool": found.header.tool,
            "created": found.header.created,
            "withAgents": found.header.with_agents,
            "facts": found.facts,
            "users": [_saved_document(each) for each in found.users],
            "problems": [problem.document()["error"] for problem in problems],
        },
        lines=[
            *(
                f"{each.user} (revision {_known(each.revision)}, {_files(each.files)})"
                for each in found.users
            ),
            (
                f"{number_of(len(found.users), 'user')}, {number_of(found.facts, 'fact')}; "
                f"{found.header.tool}, {found.header.created}"
            ),
        ],
    )
    options.out.exit_if(problems)


def _users(options: UserOptions, repository: MemoryRepository, *, all_users: bool) -> list[UserId]:
    """Returns whom to save; it is wrong usage to save nobody."""
    from deermem.cli.survey import survey_users
    from deermem.model.identity import UserId

    known = survey_users(repository)
    if all_users:
        if not known:
            raise UsageError(f"nothing is stored at {repository.storage_root}")
        return known
    user = UserId.parse(options.user)
    if user.bucket not in [each.bucket for each in known]:
        names = ", ".join(map(str, known[:_SHOWN])) + (", …" if len(known) > _SHOWN else "")
        hint = f"users there are: {names} (--user-id, --all-users)" if known else ""
        raise UsageError(f"nothing is stored of the user {user} in {repository.storage_root}", hint)
    return [user]


def _tool() -> str:
    from importlib.metadata import version

    return f"deermem {version('deermem')}"


def _saved_document(saved: SavedUser) -> dict[str, Any]:
    document = {"bucket": saved.user.bucket, "revision": saved.revision, "files": saved.files}
    return {key: value for key, value in document.items() if key == "bucket" or value is not None}


def _known(revision: int | None) -> str:
    return "unknown" if revision is None else str(revision)


def _files(count: int) -> str:
    return number_of(count, "file")


application: Final = typer.Typer(rich_markup_mode=MARKUP, invoke_without_command=True)
application.callback()(backup)
application.command("verify")(verify)
