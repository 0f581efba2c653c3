"""`locks`: who holds or awaits the lock of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deermem.cli.exits import UsageError, report_of
from deermem.cli.options import UserOptions, with_options
from deermem.cli.output import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from deermem.errors import Corruption
    from deermem.maintenance.lock_survey import LockProcess, LockReport

_NOT_SEEN = "Processes of other hosts and containers are not seen from here."


@with_options(UserOptions)
def locks(
    options: UserOptions,
    all_users: Annotated[bool, typer.Option("--all-users", help="Look at every user.")] = False,
) -> None:
    """Show who holds or awaits the lock of a user.

    Nothing is locked or changed. Only Linux tells, and only of processes that can be seen from here.
    """
    from deermem.cli.absence import require_root
    from deermem.cli.survey import survey_users
    from deermem.maintenance.lock_survey import survey_locks
    from deermem.model.identity import UserId

    if all_users and (options.user_id is not None or options.no_user):
        raise UsageError("--all-users goes with neither --user-id nor --no-user")
    with options.plain_repository() as repository:
        require_root(repository)
        users = survey_users(repository) if all_users else [UserId.parse(options.user)]
        problems: list[Corruption | OSError] = []
        found = survey_locks(repository.engine, users, problems)
        reports = [report_of(problem, repository.storage_root) for problem in problems]
    rows = [[one_line(cell) for cell in _cells(report)] for report in found]
    options.out.show(
        {
            "locks": [_document(report) for report in found],
            "problems": [report.document()["error"] for report in reports],
        },
        lines=["\t".join(row) for row in rows],
        brief=[row[0] for row in rows if row[1] == "held"],
        drawn=lambda: _drawn(rows),
    )
    if any(report.state in ("held", "free") for report in found):
        options.out.note(_NOT_SEEN)
    options.out.exit_if(reports)


def _cells(report: LockReport) -> list[str]:
    seconds = "" if report.seconds is None else f"{report.seconds:.1f} s"
    return [
        str(report.user),
        report.state,
        ", ".join(map(_named, report.holders)),
        seconds,
        ", ".join(map(_named, report.waiters)),
    ]


def _named(process: LockProcess) -> str:
    return f"{process.pid} ({process.command or 'unknown'})"


def _document(report: LockReport) -> dict[str, Any]:
    document: dict[str, Any] = {
        "userId": report.user.raw,
        "lockFile": report.path,
        "state": report.state,
        "holders": [_process(process) for process in report.holders],
        "waiters": [_process(process) for process in report.waiters],
    }
    if report.seconds is not None:
        document["seconds"] = round(report.seconds, 3)
    return document


def _process(process: LockProcess) -> dict[str, Any]:
    return {"pid": process.pid, **({"command": process.command} if process.command else {})}


def _drawn(rows: list[list[str]]) -> RenderableType:
    from deermem.cli.drawing import Listing

    return Listing(("User", "Lock", "Held by", "For", "Awaited by"), rows, long=2)
