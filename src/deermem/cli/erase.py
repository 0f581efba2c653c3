"""`erase-user`: all that DeerMem owns of a user goes for good."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from deermem.cli.exits import Declined, UsageError
from deermem.cli.options import NamedUserOptions, with_options
from deermem.cli.output import is_terminal, one_line, visible, write

if TYPE_CHECKING:
    from deermem.maintenance.erase import ErasureReport
    from deermem.repository import MemoryRepository

BEYOND: Final = (
    "backups and exports of this user",
    "snapshots of the file system, and copies that sync clients keep elsewhere",
    "what the host, its logs and the model's provider keep",
)


@with_options(NamedUserOptions)
def erase_user(
    options: NamedUserOptions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would go; nothing is written.")
    ] = False,
) -> None:
    """Remove all that DeerMem keeps of a user, for good.

    Facts of all agents, summaries, side files, backups of version 1, quarantine, safety copies and the
    search index. What belongs to the host stays and is listed. The user has to be named.
    """
    from deermem.cli.absence import require_root
    from deermem.maintenance.erase import erase_user as erase
    from deermem.maintenance.erase import plan_erasure

    if not options.is_named:
        raise UsageError("the user is missing", "name the one to erase with --user-id, or use --no-user")
    user = options.user
    with _repository(options, writes=not dry_run) as repository:
        require_root(repository)
        report = plan_erasure(repository, user)
        hint = ""
        if not (report.removed or report.links):
            from deermem.cli.absence import nothing_of

            hint = nothing_of(repository, report.user, None)
        if not dry_run:
            if not yes:
                _ask(report)
            report = erase(repository, user)
    options.out.show(
        _document(report, dry_run), lines=_lines(report, dry_run), brief=map(one_line, report.removed)
    )
    for link in report.links:
        options.out.note(one_line(f"Warning: {link} was a link, and what it leads to was not touched"))
    options.out.hint(hint)
    if report.removed and not dry_run:
        options.out.note(f"Beyond reach: {'; '.join(BEYOND)}.")


def _repository(options: NamedUserOptions, *, writes: bool) -> MemoryRepository:
    """Opens the store with the search index that the environment names, since that has to forget, too."""
    from deermem.config import parse_variables

    index = parse_variables(os.environ).get("retrieval_adapter")
    return options.plain_repository(index, writes=writes)


def _ask(report: ErasureReport) -> None:
    """Returns if a person says yes.

    Raises:
        UsageError: There is nobody to ask.
        Declined: The answer is no.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError("there is no terminal to ask at", "add --yes to erase without a question")
    question = f"Erase the user {report.user} for good: {_counted(report)}? [y/N] "
    write(sys.stderr, visible(question))
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        write(sys.stderr, "\n")  # the input ended, and the cursor stands behind the question
    if answer.strip().lower() not in ("y", "yes"):
        raise Declined


def _lines(report: ErasureReport, dry_run: bool) -> list[str]:
    if not (report.removed or report.links):
        done = f"Nothing of the user {report.user} is stored"
    elif dry_run:
        done = f"Would erase the user {report.user}: {_counted(report)}"
    else:
        done = f"Erased the user {report.user}: {_counted(report)}"
    listed = [f"would remove {path}" for path in (*report.removed, *report.links)] if dry_run else []
    listed += [f"kept, of the host: {path}" for path in report.kept]
    if report.damage and not dry_run:
        listed.append(f"it could not be read: {report.damage}")
    return [one_line(line) for line in (done, *listed)]


def _counted(report: ErasureReport) -> str:
    count = len(report.removed) + len(report.links)
    agents = f" of {', '.join(report.agents)}" if report.agents else ""
    directory = ", and the directory" if report.bucket_removed else ""
    return f"{_of(report.facts, 'fact')}{agents}, {_of(count, 'file')} in all{directory}"


def _of(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _document(report: ErasureReport, dry_run: bool) -> dict[str, Any]:
    return {
        "userId": report.user.raw,
        "directory": report.bucket,
        "dryRun": dry_run,
        "facts": report.facts,
        "agents": list(report.agents),
        "removed": list(report.removed),
        "links": list(report.links),
        "kept": list(report.kept),
        "directoryRemoved": report.bucket_removed,
        **({"damage": report.damage} if report.damage else {}),
        "beyondReach": list(BEYOND),
    }
