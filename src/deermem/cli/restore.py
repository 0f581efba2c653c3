"""`restore`: a backup comes back, byte for byte where nothing is."""

from __future__ import annotations

from typing import Annotated

import typer

from deermem.cli.backup import ArchiveArgument, WithAgents
from deermem.cli.exits import ExitCode, Report, UsageError, report_of
from deermem.cli.options import NamedUserOptions, with_options
from deermem.cli.outfile import given_file


@with_options(NamedUserOptions)
def restore(
    options: NamedUserOptions,
    file: ArchiveArgument,
    on_conflict: Annotated[
        str,
        typer.Option(
            metavar="CHOICE",
            help="`fail`, `skip` or `overwrite` users who have another memory than the backup.",
        ),
    ] = "fail",
    with_agents: WithAgents = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would do, and do nothing.")] = False,
) -> None:
    """Bring back what `deermem backup` saved: all of it, or the user of --user-id.

    Where a user has no memory it comes back byte for byte. The archive is read from end to end before
    anything is written. If it is interrupted, run it again.
    """
    from deermem.maintenance.restore import Fate, OnConflict, Selection, plan_restore
    from deermem.maintenance.restore import restore as restore_archive
    from deermem.model.identity import UserId

    if on_conflict not in list(OnConflict):
        raise UsageError(f"--on-conflict must be one of {', '.join(OnConflict)}")
    buckets = [UserId.parse(options.user).bucket] if options.is_named else None
    selection = Selection(buckets, with_agents)
    with options.plain_repository(writes=not dry_run) as repository, given_file(file) as stream:
        plan = plan_restore(repository.engine, stream, selection, OnConflict(on_conflict))
        if not dry_run:
            stream.seek(0)
            restore_archive(repository, stream, plan)
    users = list(plan.users.values())
    problems = [report_of(problem) for problem in plan.problems]
    left_out = [
        Report(
            "UserLeftOut",
            f"left out: {report_of(error).message}",
            "restore the user where names keep their case, with --user-id",
            ExitCode.CONFLICT,
        )
        for error in plan.left_out.values()
    ]
    would = "would be " if dry_run else ""
    options.out.show(
        {
            "dryRun": dry_run,
            "users": [
                {"bucket": entry.bucket, "outcome": fate.value, "revision": entry.revision}
                for entry, fate, _ in users
            ],
            "problems": [problem.document()["error"] for problem in (*problems, *left_out)],
        },
        lines=[
            f"{entry.user}: {fate.value if fate in (Fate.THERE, Fate.LEFT_OUT) else would + fate.value}"
            f" ({entry.files:,} files)"
            for entry, fate, _ in users
        ],
        brief=[
            str(entry.user) for entry, fate, _ in users if fate in (Fate.RESTORE, Fate.REPLACE, Fate.RENEW)
        ],
    )
    for problem in problems:
        options.out.note(f"Warning: came back as it was, and cannot be read: {problem.message}")
    options.out.exit_if(left_out)
