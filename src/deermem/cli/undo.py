"""`undo`: what a clear, an import, a restore or a trim to the cap replaced comes back."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deermem.cli.asking import confirmed
from deermem.cli.exits import ExitCode, Report
from deermem.cli.options import UserOptions, with_options
from deermem.cli.version_one import only_looking

if TYPE_CHECKING:
    from deermem.maintenance.taking_back import Undo
    from deermem.model.changes import FactKey


@with_options(UserOptions)
def undo(
    options: UserOptions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would do, and do nothing.")] = False,
) -> None:
    """Take back the user's last clear, import, restore or trim to the cap.

    What it deleted or replaced comes back and what it wrote goes, except for what was changed since. It
    is one transaction. Without --yes it says what it will do, and asks.
    """
    from deermem.maintenance.taking_back import plan_undo
    from deermem.maintenance.taking_back import undo as take_back
    from deermem.model.identity import UserId

    user = UserId.parse(options.user)
    with options.repository(writes=not dry_run) as repository:
        with nullcontext() if yes and not dry_run else only_looking(repository):
            planned = plan_undo(repository, user)
        if planned is None:
            raise _nothing(options, user)
        if dry_run:
            _show(options, planned, None)
            return
        if not yes:
            confirmed(f"Take back {_told(planned)}?", "add --yes to take it back without a question")
        done = take_back(repository, user, planned.copy.revision)
        if done is None:
            raise _nothing(options, user)
    _show(options, *done)


def _show(options: UserOptions, undo: Undo, revision: int | None) -> None:
    document: dict[str, Any] = {
        "dryRun": revision is None,
        "operation": undo.copy.operation,
        "time": undo.copy.time,
        "undoneRevision": undo.copy.revision,
        "back": _keys(undo.back),
        "gone": _keys(undo.gone),
        "stay": _keys(undo.stay),
        "summaries": [".".join(key) for key in undo.summaries],
        "unreadable": undo.unreadable,
    }
    if revision is not None:
        document["revision"] = revision
    options.out.show(
        document,
        lines=[
            f"{'Would take' if revision is None else 'Took'} back {_told(undo)}",
            *(f"Changed since, and stays: {fact_id} of {agent}" for agent, fact_id in undo.stay),
            *(f"No fact, and stays in the safety copy: {path}" for path in undo.unreadable),
        ],
    )


def _told(undo: Undo) -> str:
    copy = undo.copy
    return (
        f"the {copy.operation} of {copy.time} (revision {copy.revision}): facts: {len(undo.back)} come back, "
        f"{len(undo.gone)} go, {len(undo.stay)} stay; summaries: {len(undo.summaries)} come back"
    )


def _keys(keys: list[FactKey]) -> list[dict[str, str]]:
    return [{"id": fact_id, "agentName": agent} for agent, fact_id in keys]


def _nothing(options: UserOptions, user: object) -> typer.Exit:
    """Says that there is nothing to take back, and returns what ends the command."""
    days = options.settings.undo_days
    until = f"it can be for {days} days (DEERMEM_UNDO_DAYS)" if days else "DEERMEM_UNDO_DAYS=0 keeps nothing"
    report = Report(
        "NothingToUndo",
        f"no clear, import, restore or trim of the user {user} can be taken back",
        until,
        ExitCode.NOT_FOUND,
    )
    options.out.report(report)
    return typer.Exit(report.code)
