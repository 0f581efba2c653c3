"""A storage for DeerMem that refuses secrets and logs what every commit changed."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

from deermem import ChangeSet, Delta, FactDraft, InvalidInputError, MemoryRepository, UserId, View
from guarded_store.secrets import kind_of_secret

__all__ = ["GuardedRepository", "kind_of_secret"]

log = logging.getLogger("guarded_store.commits")


class GuardedRepository(MemoryRepository):
    """Keeps memories as `MemoryRepository` does, except those that hold what looks like a secret.

    A refused change raises `InvalidInputError`, which a host knows as `ValueError`, and writes nothing. The
    error names the field and the kind of secret, never the secret.

    Each commit is logged to `guarded_store.commits` as one line of JSON: whose memory went to which revision,
    and which facts were written and deleted. No line has a text that was remembered.
    """

    def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:  # noqa: ARG002 - a seam
        """Refuses a change set that would store a secret."""
        for field, text in _texts(changes):
            kind = kind_of_secret(text)
            if kind is not None:
                raise InvalidInputError(field, f"looks like {kind}, and secrets are not remembered")
        return changes

    def after_commit(self, user: UserId, delta: Delta) -> None:
        """Logs what was committed."""
        log.info("%s", json.dumps(_record(user, delta)))


def _texts(changes: ChangeSet) -> Iterator[tuple[str, str]]:
    """Yields every text that a change set would store, with the name of its field."""
    for upsert in changes.upserts:
        yield from _texts_of(upsert.draft)
    if changes.summaries is not None:
        for (group, name), section in changes.summaries.sections.items():
            yield f"{group}.{name}", section.summary
            yield f"{group}.{name}", section.extra


def _texts_of(draft: FactDraft) -> Iterator[tuple[str, str]]:
    yield "content", draft.content
    yield "title", draft.title or ""
    yield "source", draft.source.thread_id or ""
    yield "sourceError", draft.source_error or ""
    yield "category", draft.category
    for topic in draft.topics:
        yield "topics", topic
    for extra in draft.extra or ():
        yield extra.key, extra.json


def _record(user: UserId, delta: Delta) -> dict[str, Any]:
    return {
        "user": user.bucket,
        "revision": delta.revision,
        "at": delta.last_updated,
        "written": [f"{fact.scope.agent}/{fact.id}@{fact.revision}" for fact in delta.written],
        "deleted": [f"{agent}/{fact_id}" for agent, fact_id in delta.deleted],
        "cleared": [*delta.cleared],
    }
