"""What is said when nothing was found: a mistyped store, user or agent looks like an empty memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from deermem.cli.exits import UsageError
from deermem.cli.survey import survey_users
from deermem.cli.version_one import only_looking
from deermem.errors import DeerMemError
from deermem.model.identity import DEFAULT_AGENT, AgentName, FactId, Scope, UserId
from deermem.repository import MemoryRepository
from deermem.storage.opening import has_root

_SHOWN: Final = 10


def require_root(repository: MemoryRepository) -> None:
    """Makes sure that there is a store, for a command that an operator runs on one.

    Raises:
        UsageError: The storage root is not there: a mistyped path must not pass for a healthy store.
    """
    if not has_root(repository.engine.file_system):
        raise no_root(repository.storage_root)


def no_root(root: str) -> UsageError:
    """Returns the error that says that a storage root is not there."""
    hint = "there is no such directory: --storage-path or DEERMEM_DATA_DIR names the store"
    return UsageError(f"nothing is stored at {root}", hint)


def nothing_of(repository: MemoryRepository, user: UserId, agent: AgentName | None) -> str:
    """Says where no fact was found, and what there is instead.

    Args:
        repository: The store.
        user: Whose facts were looked for.
        agent: And of which agent; `None` means all of them.

    Returns:
        A sentence; empty if there are facts, or files that cannot be read.
    """
    root = repository.storage_root
    if not os.path.isdir(root):
        return f"nothing is stored at {root}"
    try:
        with only_looking(repository):
            counts = _counts(repository, user)
        if sum(counts.values()) if agent is None else counts.get(agent):
            return ""
        others = [name for name, count in counts.items() if count]
        users = [str(each) for each in survey_users(repository)]
    except (DeerMemError, OSError):
        return ""
    if not users:
        return f"nothing is stored in {root} yet"
    of_agent = "" if agent is None else f" of {_named(agent)}"
    missing = f"no facts{of_agent} of the user {user} in {root}"
    if others:
        return f"{missing}; agents with facts are: {_some(others)} (--agent, --all-agents)"
    return f"{missing}; users there are: {_some(users)} (`deermem status`)"


def agents_with(repository: MemoryRepository, user: UserId, fact_id: FactId) -> list[AgentName]:
    """Returns the agents of a user that have a fact of this id, read or not."""
    from deermem.format.layout import bucket_parts, fact_parts

    bucket = os.path.join(repository.storage_root, *bucket_parts(user))
    try:
        with only_looking(repository):
            agents = repository.list_agents(user.raw)
    except (DeerMemError, OSError):
        return []
    return [agent for agent in agents if os.path.lexists(os.path.join(bucket, *fact_parts(agent, fact_id)))]


def _counts(repository: MemoryRepository, user: UserId) -> dict[AgentName, int]:
    """Returns how many files each agent has facts in; those that cannot be read count too."""
    counts = {}
    for agent in repository.list_agents(user.raw):
        snapshot, problems = repository.readable_snapshot(Scope(user, agent))
        counts[agent] = len(snapshot.facts) + len(problems)
    return counts


def _named(agent: AgentName) -> str:
    return "the default agent" if agent == DEFAULT_AGENT else f"the agent {agent}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
