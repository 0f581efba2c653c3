"""`check`: what is wrong with a store, mending it, and undoing that."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deermem.cli.exits import ExitCode, Report, UsageError
from deermem.cli.findings import (
    PERMISSIONS,
    drawn_findings,
    finding_cells,
    finding_document,
    summary_of,
    told_findings,
)
from deermem.cli.hints import spelled_out
from deermem.cli.options import UserOptions, with_options
from deermem.cli.output import one_line
from deermem.format.layout import USERS

if TYPE_CHECKING:
    from deermem.maintenance.findings import CheckReport, Finding
    from deermem.maintenance.repair import Repaired
    from deermem.model.identity import UserId
    from deermem.repository import MemoryRepository


@with_options(UserOptions)
def check(
    options: UserOptions,
    time: Annotated[
        str | None,
        typer.Argument(metavar="[TIME]", show_default=False, help="Which repair to undo; else the last."),
    ] = None,
    all_users: Annotated[bool, typer.Option("--all-users", help="Check every user.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="With --repair, mend this kind alone; may be repeated."),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Put back what a repair set aside.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Read everything, change nothing, and say what is wrong.

    Exits with 1 if there is a warning or an error. With --repair it names what it would do, asks, and
    mends; what it takes away is kept in .quarantine, and --undo puts it back.
    """
    if all_users and (options.user_id is not None or options.no_user):
        raise UsageError("--all-users goes with neither --user-id nor --no-user")
    if undo and (repair or all_users):
        raise UsageError("--undo goes with neither --repair nor --all-users")
    _check_kinds(only or (), repair=repair)
    if time is not None and not undo:
        raise UsageError("a time goes with --undo only")
    from deermem.cli.absence import require_root

    with options.plain_repository(writes=repair or undo) as repository:
        require_root(repository)
        if undo:
            _undo(options, repository, time)
            return
        report = _look(repository, options, all_users=all_users)
        if repair:
            report = _repair(options, repository, report, all_users=all_users, only=only, yes=yes)
        else:
            _show(options, repository.storage_root, report, {}, all_users=all_users)
    _exit_after(report)


def _check_kinds(only: Sequence[str], *, repair: bool) -> None:
    from deermem.maintenance.findings import KINDS

    if only and not repair:
        raise UsageError("--only goes with --repair")
    for kind in only:
        if kind not in KINDS:
            hint = f"there are: {', '.join(KINDS)}"
            raise UsageError(f"no kind of finding is called {kind!r}", hint)


def _look(repository: MemoryRepository, options: UserOptions, *, all_users: bool) -> CheckReport:
    from deermem.maintenance.check import check_store, check_user

    return check_store(repository) if all_users else check_user(repository, options.user)


def _exit_after(report: CheckReport) -> None:
    from deermem.maintenance.findings import Severity

    if report.worst > Severity.NOTE:
        raise typer.Exit(ExitCode.FAILED)


def _show(
    options: UserOptions, root: str, report: CheckReport, more: dict[str, Any], *, all_users: bool
) -> None:
    findings = report.findings
    options.out.show(
        {
            "storageRoot": root,
            "worst": report.worst.name.lower() if findings else None,
            "users": [
                {
                    "userId": each.user.raw,
                    "directory": each.directory,
                    "version": each.version or None,
                    "revision": each.revision,
                    "facts": each.facts,
                }
                for each in report.users
            ],
            "findings": [finding_document(each) for each in findings],
            **more,
        },
        lines=map("\t".join, map(finding_cells, told_findings(findings))),
        brief=[one_line(each.path) for each in findings if each.severity],
        drawn=lambda: drawn_findings(findings),
    )
    options.out.note(summary_of(report))
    if not (all_users or findings or more):
        options.out.hint(_if_nothing_is_stored(root, report))
    if any(each.kind == PERMISSIONS for each in findings):
        command = f"deermem check{' --all-users' if all_users else ''} --repair --only {PERMISSIONS}"
        options.out.hint(spelled_out(f"`{command}` takes the permissions of others away", options))


def _if_nothing_is_stored(root: str, report: CheckReport) -> str:
    """Says that there is nothing of the user, whose id may be mistyped; empty if there is something."""
    (user,) = report.users
    if os.path.lexists(os.path.join(root, user.directory)) and (user.version or user.facts):
        return ""
    try:
        users = sorted(each for each in os.listdir(os.path.join(root, USERS)) if not each.startswith("."))
    except OSError:
        users = []
    there = f"; users there are: {', '.join(users[:10])}{', …' if len(users) > 10 else ''}" if users else ""
    return f"nothing is stored of the user {user.user} in {root}{there}"


def _repair(
    options: UserOptions,
    repository: MemoryRepository,
    report: CheckReport,
    *,
    all_users: bool,
    only: Sequence[str] | None,
    yes: bool,
) -> CheckReport:
    """Names every repair, asks, mends, and looks again."""
    from deermem.cli.asking import confirmed
    from deermem.cli.survey import noted
    from deermem.maintenance.repair import repair_user, tighten_way

    planned = _mendable(report.findings, only)
    done: list[Repaired] = []
    failed: list[str] = []
    problems: list[Report] = []
    if planned:
        for finding in told_findings(planned):
            options.out.note(_step(finding))
        if not yes:
            confirmed(f"Do this, {len(planned)} in all?", "add --yes to repair without a question")
        failed += tighten_way(repository, _mendable(report.of_root, only))
        for each in report.users:
            approved = _mendable(each.findings, only)
            if approved:
                with noted(problems, repository.storage_root):
                    done.append(repair_user(repository, each.user, approved))
        report = _look(repository, options, all_users=all_users)
    failed += [path for each in done for path in each.failed]
    more: dict[str, Any] = {
        "repaired": [finding_document(each) for each in _mended(planned, report)],
        "setAside": [each.set_aside for each in done if each.set_aside],
        "failed": failed,
        "problems": [problem.document()["error"] for problem in problems],
    }
    _show(options, repository.storage_root, report, more, all_users=all_users)
    for place in more["setAside"]:
        options.out.note(f"What was taken away is in {repository.storage_root}/{place}")
    for path in failed:
        options.out.note(one_line(f"Warning: {path} could not be changed"))
    options.out.exit_if(problems)
    return report


def _mendable(findings: Iterable[Finding], only: Sequence[str] | None) -> list[Finding]:
    return [each for each in findings if each.action and (not only or each.kind in only)]


def _step(finding: Finding) -> str:
    """Says what a repair does, and of what speaks for many how many they are."""
    message = f": {finding.message}" if finding.kind == PERMISSIONS else ""
    return one_line(f"{finding.path}: {finding.kind}: {finding.repair}{message}")


def _mended(planned: list[Finding], report: CheckReport) -> list[Finding]:
    left = {(finding.kind, finding.path) for finding in report.findings}
    return [finding for finding in planned if (finding.kind, finding.path) not in left]


def _undo(options: UserOptions, repository: MemoryRepository, time: str | None) -> None:
    from deermem.maintenance.undo import undo_repair
    from deermem.model.identity import UserId

    user: UserId = UserId.parse(options.user)
    root = repository.storage_root
    try:
        undone = undo_repair(repository, user, time)
    except FileNotFoundError:
        raise UsageError(f"nothing is stored of the user {user}") from None
    problems = [
        Report("UndoRefused", f"{root}/{path} is not as the repair left it", _KEPT_HINT, ExitCode.CONFLICT)
        for path in undone.refused
    ]
    options.out.show(
        {
            "quarantine": undone.place,
            "restored": list(undone.restored),
            "left": list(undone.left),
            "problems": [problem.document()["error"] for problem in problems],
        },
        lines=[
            *(one_line(f"Put back {path}") for path in undone.restored),
            *(one_line(f"Left as it is, since it went on: {path}") for path in undone.left),
        ],
        brief=map(one_line, undone.restored),
    )
    options.out.exit_if(problems)


_KEPT_HINT = "nothing was changed; move that file away, or take what you need from the quarantine"
