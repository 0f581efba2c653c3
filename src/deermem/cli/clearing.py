"""`clear`: the one command that asks before it acts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from deermem.cli.exits import Declined, UsageError
from deermem.cli.options import ScopeOptions, with_options
from deermem.cli.output import is_terminal, visible, write

if TYPE_CHECKING:
    from deermem.model.identity import AgentName
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
        typer.Option(min=0, metavar="NUMBER", help="Refuse if memory.json is at another revision."),
    ] = None,
) -> None:
    """Delete all facts of an agent, or of all.

    It is one transaction; files of other programs stay. No writer that read before can bring a
    fact back. Without --yes it asks first.
    """
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
        )
    else:
        changes = ChangeSet(clears=frozenset([scope.agent]), expected_manifest_revision=expected_revision)
    with options.repository() as repository:
        if not yes:
            _ask(repository, scope.user.raw, None if everything else scope.agent)
        delta = repository.apply_changes(scope.user.raw, changes)
    agents = sorted({agent for agent, _ in delta.deleted})
    count = len(delta.deleted)
    where = f" of {', '.join(agents)}" if agents else ""
    options.out.show(
        {
            "revision": delta.revision,
            "deleted": [{"id": fact_id, "agentName": agent} for agent, fact_id in delta.deleted],
        },
        lines=[f"Deleted {count} fact{'' if count == 1 else 's'}{where}"],
    )


def _ask(repository: MemoryRepository, user: str | None, agent: AgentName | None) -> None:
    """Returns if a person says yes.

    Raises:
        UsageError: There is nobody to ask.
        Declined: The answer is no.
    """
    from deermem.model.identity import Scope, UserId

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError("there is no terminal to ask at", "add --yes to clear without a question")
    parsed = UserId.parse(user)
    agents = repository.list_agents(user) if agent is None else (agent,)
    count = 0
    for each in agents:
        snapshot, problems = repository.readable_snapshot(Scope(parsed, each))
        count += len(snapshot.facts) + len(problems)
    what = "and the summaries " if agent is None else f"of the agent {agent} "
    question = f"Delete {count} fact{'' if count == 1 else 's'} {what}of the user {parsed}? [y/N] "
    write(sys.stderr, visible(question))
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Declined
