"""Deleting a custom agent: what is known to be its own in one transaction, other files after it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from deermem.errors import AgentNotFoundError, NotACustomAgent
from deermem.format.layout import AGENTS
from deermem.model.changes import ChangeSet
from deermem.model.identity import AgentName, UserId
from deermem.storage.agents import is_custom
from deermem.storage.bucket import Bucket
from deermem.storage.engine import Engine
from deermem.storage.legacy import has_legacy
from deermem.storage.port import Directory, UnexpectedFileType
from deermem.storage.transaction import Committed
from deermem.storage.view import View

_log = logging.getLogger(__name__)


def delete_agent(
    engine: Engine, user: UserId, agent: AgentName, passed: Callable[[ChangeSet, View], ChangeSet]
) -> Committed | None:
    """Deletes a custom agent with all it owns.

    Its facts, `config.yaml`, `SOUL.md` and side files go in one transaction, which also fences the
    scope. Files of the host that are not known go afterwards: a crash before they are gone leaves a
    directory without facts and without `config.yaml`, and the next call removes it.

    Args:
        engine: The engine.
        user: Whose agent.
        agent: The agent.
        passed: Returns the change set if it may be committed; it may raise instead.

    Returns:
        The transaction, or `None` when only such a rest was removed.

    Raises:
        AgentNotFoundError: There is no such directory.
        NotACustomAgent: There are facts but no `config.yaml`; nothing was changed.
    """
    if not engine.read(user, lambda _: True, absent=False):
        raise AgentNotFoundError(agent)
    with engine.transaction(user) as transaction:
        bucket = transaction.view.bucket
        if not _has_directory(bucket, agent):
            raise AgentNotFoundError(agent)
        custom = is_custom(bucket, agent)
        if not custom and (bucket.list_facts(agent) or has_legacy(bucket, agent)):
            raise NotACustomAgent(agent)
        changes = ChangeSet(removes=frozenset([agent]))
        committed = None
        if custom:
            committed = transaction.commit(transaction.attempt(lambda view: passed(changes, view)))
        try:
            with bucket.directory_at((AGENTS,)) as agents:
                _remove_tree(agents, agent)
                agents.sync()
        except OSError as error:
            if committed is None:
                raise
            # The agent is deleted; what is left of its directory goes with the next call.
            _log.warning(
                "the rest of the deleted agent %s of %s stays for now: %s", agent, user, error.strerror
            )
    return committed


def _has_directory(bucket: Bucket, agent: AgentName) -> bool:
    with suppress(FileNotFoundError), bucket.directory_at((AGENTS, agent)):
        return True
    return False


def _remove_tree(parent: Directory, name: str) -> None:
    """Removes a directory and all in it; a link is removed and not followed."""
    with parent.child(name) as directory:
        for entry, file in directory.identities().items():
            if file is not None:
                directory.unlink(entry)
                continue
            try:
                _remove_tree(directory, entry)
            except UnexpectedFileType:
                directory.unlink(entry)
    parent.remove_child(name)
