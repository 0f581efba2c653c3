"""A store in memory that commits as the real one does: resolve under a lock, tell after it is released."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count

from deermem.model.changes import (
    ANYTHING,
    ChangeSet,
    Delete,
    Delta,
    FactKey,
    Upsert,
)
from deermem.model.fact import Fact, FactDraft
from deermem.model.identity import DEFAULT_AGENT, AgentName, FactId, Scope, UserId
from deermem.model.manifest import NO_MANIFEST, Manifest
from deermem.model.resolution import NO_FENCES, Before, resolve
from deermem.model.snapshot import Snapshot

State = tuple[Manifest, dict[FactKey, Fact]]
Listener = Callable[[UserId, Delta], None]


class Store:
    """Keeps users' facts; `load` is what an indexer reads with."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.states: dict[UserId, State] = {}
        self.loads = 0
        self.tell: Listener | None = None
        self._clock = count(1)

    def load(self, scope: Scope) -> Snapshot:
        self.loads += 1
        with self.lock:
            manifest, facts = self.states.get(scope.user, (NO_MANIFEST, {}))
        return Snapshot.of(scope, manifest, [fact for key, fact in facts.items() if key[0] == scope.agent])

    def commit(self, user: UserId, changes: ChangeSet, tell: Listener | None = None) -> Delta:
        """Commits; a change that comes to nothing is no commit and is not told."""
        keys = changes.fact_keys()
        with self.lock:
            manifest, facts = self.states.get(user, (NO_MANIFEST, {}))
            agents = {agent for agent, _ in facts} if changes.clear_all else changes.clears
            before = Before(
                user,
                manifest,
                {key: facts.get(key) for key in keys},
                {agent: tuple(fact_id for owner, fact_id in facts if owner == agent) for agent in agents},
                NO_FENCES,
            )
            outcome = resolve(changes, before, f"2026-07-19T00:00:00.{next(self._clock):06}Z")
            facts = {key: fact for key, fact in facts.items() if key not in outcome.deleted}
            facts.update({(fact.scope.agent, fact.id): fact for fact in outcome.written})
            self.states[user] = outcome.manifest, facts
        delta = Delta(
            outcome.manifest.revision,
            outcome.manifest.last_updated,
            outcome.written,
            outcome.unchanged,
            outcome.deleted,
            outcome.cleared,
        )
        if tell is not None and outcome.manifest is not manifest:
            tell(user, delta)
        return delta

    def apply(self, user: UserId, changes: ChangeSet) -> Delta:
        """Commits and tells whoever listens."""
        return self.commit(user, changes, self.tell)

    def put(self, scope: Scope, **contents: str) -> Delta:
        """Writes facts, content by id, and tells."""
        return self.apply(scope.user, writing(scope, **contents))

    def put_elsewhere(self, scope: Scope, **contents: str) -> Delta:
        """Writes facts as another process does."""
        return self.commit(scope.user, writing(scope, **contents))

    def delete(self, scope: Scope, *fact_ids: str) -> Delta:
        """Deletes facts and tells."""
        deletes = tuple(Delete(scope.agent, FactId(fact_id)) for fact_id in fact_ids)
        return self.apply(scope.user, ChangeSet(deletes=deletes))


def writing(scope: Scope, **contents: str) -> ChangeSet:
    """Returns the change set that writes facts, content by id."""
    return ChangeSet(
        upserts=tuple(
            Upsert(scope.agent, FactDraft(content=content, id=FactId(fact_id)), ANYTHING)
            for fact_id, content in contents.items()
        )
    )


def clearing(*agents: AgentName) -> ChangeSet:
    """Returns the change set that clears agents; the default one if none is named."""
    return ChangeSet(clears=frozenset(agents or [DEFAULT_AGENT]))
