"""`migrate`: version-1 memory becomes version 2, of many users at once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from deermem.cli.exits import ExitCode
from deermem.cli.numbers import whole_number
from deermem.cli.options import NoUser, StoreOptions, with_options

if TYPE_CHECKING:
    from deermem.migration import Account, MigrationRequest
    from deermem.repository import MemoryRepository


class OnInvalid(StrEnum):
    """What becomes of values that no version-2 memory can hold."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


_USER_IDS = typer.Option(
    metavar="ID", help="A user; may be repeated.", rich_help_panel="Where and how", show_default=False
)


@dataclass(frozen=True, slots=True)
class MigrateOptions(StoreOptions):
    """Says which users are meant, too."""

    user_id: Annotated[list[str] | None, _USER_IDS] = None
    no_user: NoUser = False


@with_options(MigrateOptions)
def migrate(
    options: MigrateOptions,
    all_users: Annotated[bool, typer.Option("--all-users", help="Every user that is stored.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done; nothing is written.")
    ] = False,
    on_invalid: Annotated[
        OnInvalid,
        typer.Option(help="Whether a value that cannot be migrated stops its user or is kept in a file."),
    ] = OnInvalid.FAIL,
    adopt_lead_agent: Annotated[
        bool,
        typer.Option(
            "--adopt-lead-agent",
            help="Move the facts of an agent `lead-agent` without config.yaml to the default agent.",
        ),
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            parser=whole_number("--jobs", 1, 64),
            metavar="NUMBER",
            help="How many users at a time, 1 to 64.",
        ),
    ] = 4,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Put the version-1 files back from their backups.")
    ] = False,
) -> None:
    """Make version-1 memory version 2.

    First stop the old application, and take a snapshot of the whole storage root. Each user is one
    transaction; one that fails keeps its files and does not stop the others. It may be repeated.
    Reads and writes need none of this: each migrates by itself what it touches.
    """
    from deermem.cli.absence import require_root
    from deermem.migration import Account, MigrationRequest

    request = MigrationRequest(
        all_users=all_users,
        user_ids=tuple(options.user_id or ()),
        no_user=options.no_user,
        rollback=rollback,
        dry_run=dry_run,
        on_invalid=on_invalid.value,
        adopt_lead_agent=adopt_lead_agent,
        jobs=jobs,
    )
    opened = (
        options.plain_repository(writes=not dry_run)
        if rollback
        else options.repository(writes=not dry_run, tells=False)
    )
    with opened as repository:
        require_root(repository)
        account = Account(request, repository.storage_root)
        if options.as_json:
            users = request.users(repository)
            told = [account.document(outcome) for outcome in request.outcomes(repository, users)]
            options.out.show(account.whole_document(told))
        else:
            _tell(options, repository, request, account)
    if account.failed:
        raise typer.Exit(ExitCode.FAILED)


def _tell(
    options: MigrateOptions, repository: MemoryRepository, request: MigrationRequest, account: Account
) -> None:
    from deermem.cli.progress import shown_progress
    from deermem.migration import Status

    options.out.show({}, lines=[account.first_line()])
    users = request.users(repository)
    with shown_progress(options.out, "Migrating", len(users)) as progress:
        for outcome in request.outcomes(repository, users, progress.advance):
            for line in account.lines(outcome):
                if not options.quiet or outcome.status is Status.FAILED:
                    progress.line(line)
    options.out.show({}, lines=[account.last_line()], brief=[account.last_line()])
    options.out.hint(account.hint())
