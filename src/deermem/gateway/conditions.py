"""Changes that the contract of a memory manager has no words for: each is one transaction on the repository.

They name what they are based on (`If-Match`), may be repeated (`Idempotency-Key`), or are several at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from deermem.compat import read_document
from deermem.errors import DuplicateFact, FactConflict, FactNotFoundError
from deermem.gateway.batches import check_repeated, create_all, delete_all, draft_of, keyed_id
from deermem.gateway.documents import RenderedSnapshots, render_fact
from deermem.gateway.errors import EVICTED, Refusal, stale
from deermem.gateway.etag import is_current
from deermem.model import plans
from deermem.model.changes import ChangeSet
from deermem.model.fact import Fact, FactDraft
from deermem.model.identity import DEFAULT_AGENT, FactId, Scope, is_fact_id, parse_fact_id
from deermem.model.manifest import NO_MANIFEST
from deermem.model.plans import Plan
from deermem.model.summaries import SummaryPatch
from deermem.model.timestamps import format_timestamp
from deermem.repository import MemoryRepository

Tags = Sequence[str]


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes one memory.

    Every method returns the manifest revision of its commit, or one that shows what was there already. What
    can fail fails before the commit: the scope is read first, so that the document can be told afterwards.

    Args:
        repository: Where the memory is.
        documents: What clients were shown.
        scope: Whose memory it is.
        if_match: The tags that the client names; empty for a change that is based on nothing.
        max_facts: The cap of the scope.
    """

    repository: MemoryRepository
    documents: RenderedSnapshots
    scope: Scope
    if_match: Tags
    max_facts: int

    def clear(self) -> int:
        """Deletes everything of the user or, of a custom agent, its facts."""
        if self.scope.agent == DEFAULT_AGENT:
            empty = SummaryPatch.replace_all(NO_MANIFEST.summaries)
            return self._apply(lambda _: ChangeSet(clear_all=True, summaries=empty, keeps="clear"))
        return self._apply(lambda _: ChangeSet(clears=frozenset([self.scope.agent]), keeps="clear"))

    def import_document(self, document: Mapping[str, Any]) -> int:
        """Sets the summaries and the facts to those of a document; the cap keeps the best."""
        drafts, summaries = read_document(document)
        identified = [draft if draft.id else draft.with_id(self.repository.new_fact_id()) for draft in drafts]
        identified.sort(key=lambda draft: (-draft.confidence, draft.id or ""))
        kept = identified[: self.max_facts]
        return self._apply(lambda snapshot: plans.replace_all(snapshot, kept, summaries))

    def update_summaries(self, patch: Mapping[str, Any]) -> int:
        """Replaces the summaries that are named."""
        parsed = SummaryPatch.parse(patch)
        return self._apply(lambda _: ChangeSet(summaries=parsed))

    def create(self, values: Mapping[str, Any], key: str | None) -> tuple[int, FactId]:
        """Adds a fact, and returns its id too; with a key the same request may come again.

        Raises:
            DuplicateFact: Another fact has the content.
            Refusal: The cap evicted the fact, or the key was used for another content.
        """
        fact_id = self.repository.new_fact_id() if key is None else keyed_id(self.scope, key)
        draft = draft_of(values, fact_id)
        created = self._created(fact_id, draft.content)
        if created is None:
            try:
                return self._create(draft), fact_id
            except (DuplicateFact, FactConflict):
                # The same request may have come twice at once.
                created = self._created(fact_id, draft.content)
                if created is None:
                    raise
        return created, fact_id

    def create_all(self, batch: Sequence[Mapping[str, Any]], key: str | None) -> int:
        """Adds facts, all of them or none; with a key the same request may come again."""
        new_id = self.repository.new_fact_id
        drafts = [
            draft_of(values, new_id() if key is None else keyed_id(self.scope, key, position))
            for position, values in enumerate(batch)
        ]
        now = _now()
        return self._run(lambda snapshot: create_all(snapshot, drafts, now, self.max_facts))

    def update(self, fact_id: str, values: Mapping[str, Any]) -> int:
        """Changes some fields of the fact that the client has seen."""
        fact = self._seen(fact_id)
        return self.repository.edit_fact(self.scope, fact.id, values, expected=fact).revision

    def delete(self, fact_id: str) -> int:
        """Deletes the fact that the client has seen."""
        fact = self._seen(fact_id)
        return self.repository.delete_fact(self.scope, fact.id, expected=fact).revision

    def delete_all(self, fact_ids: Sequence[str]) -> int:
        """Deletes facts, all of them or none."""
        return self._run(lambda snapshot: delete_all(snapshot, fact_ids))

    def _create(self, draft: FactDraft) -> int:
        if self.if_match:
            now = _now()
            changes, revision = self._planned(
                lambda snapshot: plans.create(snapshot, draft, now, self.max_facts)
            )
            if not changes.upserts:
                raise Refusal(409, EVICTED)
            return self._commit(changes, revision)
        delta, fact_id = self.repository.create_fact(self.scope, draft, max_facts=self.max_facts)
        if fact_id is None:
            raise Refusal(409, EVICTED)
        return delta.revision

    def _created(self, fact_id: FactId, content: str) -> int | None:
        """Returns a revision that shows the fact that a key has created, `None` if there is none.

        Raises:
            Refusal: It has another content.
        """
        snapshot = self.repository.snapshot(self.scope)
        fact = snapshot.by_id.get(fact_id)
        if fact is None:
            return None
        check_repeated(fact, content)
        return snapshot.revision

    def _seen(self, fact_id: str) -> Fact:
        fact = self.repository.snapshot(self.scope).by_id.get(FactId(fact_id))
        if fact is None:
            raise FactNotFoundError(fact_id)
        if not is_current(render_fact(fact).etag, self.if_match):
            raise stale(fact.revision, fact.id)
        return fact

    def _run(self, plan: Plan) -> int:
        """Commits what a plan makes of the facts, based on what the client has seen or on what is there."""
        return self._apply(plan) if self.if_match else self.repository.run(self.scope, plan).revision

    def _apply(self, plan: Plan) -> int:
        """Commits what a plan makes of the very document that the client has seen."""
        return self._commit(*self._planned(plan))

    def _planned(self, plan: Plan) -> tuple[ChangeSet, int]:
        snapshot = self.repository.snapshot(self.scope)
        if not is_current(self.documents.of(snapshot).etag, self.if_match):
            raise stale(snapshot.revision)
        return plan(snapshot), snapshot.revision

    def _commit(self, changes: ChangeSet, revision: int) -> int:
        if self.if_match:
            changes = replace(changes, expected_manifest_revision=revision, may_rebase=False)
        return self.repository.apply_changes(self.scope.user.raw, changes).revision


def find_fact(repository: MemoryRepository, scope: Scope, fact_id: str) -> Fact:
    """Returns a fact; what cannot be the id of one is the id of none.

    Raises:
        FactNotFoundError: There is no such fact.
    """
    fact = repository.get_fact(scope, parse_fact_id(fact_id)) if is_fact_id(fact_id) else None
    if fact is None:
        raise FactNotFoundError(fact_id)
    return fact


def _now() -> str:
    return format_timestamp(datetime.now(UTC))
