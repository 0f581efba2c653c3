"""`clear`: the one command that asks before it acts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from deermem.cli.asking import check_terminal, confirmed
from deermem.cli.exits import UsageError
from deermem.cli.numbers import whole_number
from deermem.cli.options import ScopeOptions, with_options
from deermem.cli.output import one_line, write
from deermem.cli.version_one import only_looking

if TYPE_CHECKING:
    from deermem.model.identity import AgentName, UserId
    from deermem.repository import MemoryRepository


@with_options(ScopeOptions)
def clear(
    options: ScopeOptions,
    everything: Annotated[
        bool, typer.Option("--all", help="All agents of the user, and the summaries.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    expected_revision: Annotated[
        int | None,
        typer.Option(
            parser=whole_number("--expected-revision", 0),
            metavar="NUMBER",
            help="Refuse if memory.json is at another revision.",
        ),
    ] = None,
) -> None:
    """Delete all facts of an agent, or of all.

    It is one transaction. Facts that cannot be read go too, and are named; files of other programs
    stay. No writer that read before can bring a fact back; `deermem undo` can. Without --yes it asks first.
    """
    from deermem.cli.absence import nothing_of
    from deermem.model.changes import ChangeSet
    from deermem.model.manifest import NO_MANIFEST
    from deermem.model.summaries import SummaryPatch

    if everything and options.agent is not None:
        raise UsageError("--all and --agent exclude each other")
    scope = options.scope
    if everything:
        changes = ChangeSet(
            clear_all=True,
            summaries=SummaryPatch.replace_all(NO_MANIFEST.summaries),
            expected_manifest_revision=expected_revision,
            keeps="clear",
        )
    else:
        changes = ChangeSet(
            clears=frozenset([scope.agent]), expected_manifest_revision=expected_revision, keeps="clear"
        )
    agent = None if everything else scope.agent
    with options.repository(writes=True) as repository:
        count, unread = _survey(repository, scope.user, agent)
        if not yes:
            _ask(scope.user, agent, count, unread)
        delta = repository.apply_changes(scope.user.raw, changes)
        hint = "" if delta.deleted else nothing_of(repository, scope.user, agent)
    agents = sorted({agent for agent, _ in delta.deleted})
    where = f" of {', '.join(agents)}" if agents else ""
    gone = [path for path in unread if not os.path.lexists(path)]
    options.out.show(
        {
            "revision": delta.revision,
            "deleted": [{"id": fact_id, "agentName": agent} for agent, fact_id in delta.deleted],
            "unreadable": gone,
        },
        lines=[
            f"Deleted {_facts(len(delta.deleted))}{where}",
            *(f"Deleted without being read: {one_line(path)}" for path in gone),
        ],
    )
    options.out.hint(hint)


def _survey(
    repository: MemoryRepository, user: UserId, agent: AgentName | None
) -> tuple[int | None, list[str]]:
    """Returns how many facts there are to clear, and the files of those that cannot be read.

    Facts of version 1 are not counted: `None`. To do so would be to migrate them before the answer.
    """
    from deermem.errors import LegacyFormat
    from deermem.model.identity import Scope

    count = 0
    unread: list[str] = []
    try:
        with only_looking(repository):
            for each in repository.list_agents(user.raw) if agent is None else (agent,):
                snapshot, problems = repository.readable_snapshot(Scope(user, each))
                count += len(snapshot.facts) + len(problems)
                unread += [f"{repository.storage_root}/{problem.path}" for problem in problems]
    except LegacyFormat:
        return None, unread
    return count, unread


def _ask(user: UserId, agent: AgentName | None, count: int | None, unread: Sequence[str]) -> None:
    """Returns if a person says yes.

    Raises:
        UsageError: There is nobody to ask.
        Declined: The answer is no.
    """
    hint = "add --yes to clear without a question"
    check_terminal(hint)
    for path in unread:
        write(sys.stderr, f"Cannot be read, and goes too: {one_line(path)}\n")
    what = "and the summaries " if agent is None else f"of the agent {agent} "
    facts = "all facts, of version 1 and not counted," if count is None else _facts(count)
    confirmed(f"Delete {facts} {what}of the user {user}?", hint)


def _facts(count: int) -> str:
    return f"{count} fact{'' if count == 1 else 's'}"
