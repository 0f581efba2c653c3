"""A storage for DeerMem that refuses secrets and logs what every commit changed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

from deermem import ChangeSet, Delta, FactDraft, InvalidInputError, MemoryRepository
from deermem.model.identity import UserId
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

    def _commit(self, user: UserId, decide: Callable[[Any], ChangeSet], *, supersedes: bool = False) -> Delta:
        """Looks at what is about to be written, under the user's lock; `decide` may run several times."""

        def checked(view: Any) -> ChangeSet:
            changes = decide(view)
            for field, text in _texts(changes):
                kind = kind_of_secret(text)
                if kind is not None:
                    raise InvalidInputError(field, f"looks like {kind}, and secrets are not remembered")
            return changes

        return super()._commit(user, checked, supersedes=supersedes)

    def _told(self, user: UserId, committed: Any) -> Delta:
        """Logs what was committed; no lock is held any more, and nothing can be refused."""
        delta = super()._told(user, committed)
        if committed.image is not committed.base:
            log.info("%s", json.dumps(_record(user, delta)))
        return delta


def _texts(changes: ChangeSet) -> Iterator[tuple[str, str]]:
    """Yields every text that a change set would store, with the name of its field."""
    for upsert in changes.upserts:
        yield from _texts_of(upsert.draft)
    if changes.summaries is not None:
        for (group, name), section in changes.summaries.sections.items():
            yield f"{group}.{name}", section.summary


def _texts_of(draft: FactDraft) -> Iterator[tuple[str, str]]:
    yield "content", draft.content
    yield "title", draft.title or ""
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
