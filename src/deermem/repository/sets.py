"""Set operations: they depend on all facts of a scope and are computed anew on each state of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from deermem.errors import InvalidInputError, ManifestConflict
from deermem.model import plans
from deermem.model.changes import ChangeSet, Delta
from deermem.model.fact import FactDraft
from deermem.model.identity import DEFAULT_AGENT, FactId, Scope, parse_fact_id
from deermem.model.manifest import NO_MANIFEST
from deermem.model.summaries import Summaries, SummaryPatch
from deermem.repository.points import PointOperations

MAX_PLAN_TRIES: Final = 3


class SetOperations(PointOperations):
    """Creates below a cap, clears, trims, consolidates and imports."""

    def create_fact(
        self, scope: Scope, draft: FactDraft, *, max_facts: int | None = None
    ) -> tuple[Delta, FactId | None]:
        """Adds a fact unless its text is there already, and keeps the cap.

        Returns:
            What changed, and the new fact's id, `None` when the cap evicted the new fact itself.

        Raises:
            DuplicateFact: The scope holds the same text.
        """
        identified = self._identified(draft)
        _check_cap(max_facts)
        now = self.engine.now()
        delta = self.commit(
            scope.user, lambda view: plans.create(view.snapshot(scope), identified, now, max_facts)
        )
        return delta, delta.written[0].id if delta.written else None

    def clear(self, scope: Scope) -> Delta:
        """Deletes all facts of a scope; no writer that read before can bring one back."""
        changes = ChangeSet(clears=frozenset([scope.agent]), keeps="clear")
        return self.commit(scope.user, lambda _: changes)

    def clear_all(self, user_id: str | None) -> Delta:
        """Deletes all facts of all agents of a user, and the summaries, in one transaction.

        Files of version 1 that nobody has read yet go, too; their backups stay (plan section 10).
        """
        summaries = SummaryPatch.replace_all(NO_MANIFEST.summaries)
        everything = ChangeSet(clear_all=True, summaries=summaries, keeps="clear")
        return self.commit(self._user(user_id), lambda _: everything, supersedes=True)

    def delete_agent(self, scope: Scope) -> Delta | None:
        """Deletes a custom agent: its facts, `config.yaml`, `SOUL.md`, side files and all the rest.

        Returns:
            What changed; `None` when only the rest of an interrupted deletion was removed.

        Raises:
            InvalidInputError: The scope is that of the default agent.
            AgentNotFoundError: There is no such agent.
            NotACustomAgent: There are facts but no `config.yaml`; they were preserved.
        """
        if scope.agent == DEFAULT_AGENT:
            raise InvalidInputError("agent_name", "the default agent cannot be deleted")
        return self._removed(scope)

    def trim(self, scope: Scope, max_facts: int) -> Delta:
        """Deletes the facts that a cap evicts: the highest confidence stays."""
        _check_cap(max_facts)
        return self.commit(scope.user, lambda view: plans.trim(view.snapshot(scope), max_facts))

    def consolidate(self, scope: Scope, fact_ids: Iterable[str], draft: FactDraft) -> Delta:
        """Replaces several facts by one that names them in `consolidatedFrom`.

        Raises:
            FactNotFoundError: One of the facts is not there; nothing was written.
        """
        wanted = [parse_fact_id(fact_id) for fact_id in fact_ids]
        merged = self._identified(draft)
        return self.commit(scope.user, lambda view: plans.consolidate(view.snapshot(scope), wanted, merged))

    def replace_all(self, scope: Scope, drafts: Iterable[FactDraft], summaries: Summaries) -> Delta:
        """Sets the facts of a scope and the user's summaries to those given (import)."""
        identified = [self._identified(draft) for draft in drafts]
        return self.commit(
            scope.user, lambda view: plans.replace_all(view.snapshot(scope), identified, summaries)
        )

    def run(self, scope: Scope, plan: plans.Plan) -> Delta:
        """Commits what a plan makes of the scope's facts, and computes it anew after a conflict.

        The plan runs without a lock and may take its time; it may run up to three times.

        Raises:
            ManifestConflict: Other writers came first three times; nothing was written.
        """
        for remaining in reversed(range(MAX_PLAN_TRIES)):
            snapshot = self.snapshot(scope)
            changes = replace(plan(snapshot), expected_manifest_revision=snapshot.revision, may_rebase=False)
            try:
                return self.apply_changes(scope.user.raw, changes)
            except ManifestConflict:
                if not remaining:
                    raise
        raise AssertionError("unreachable")


def _check_cap(max_facts: int | None) -> None:
    if max_facts is None:
        return
    if isinstance(max_facts, bool) or not isinstance(max_facts, int) or max_facts < 1:
        raise InvalidInputError("max_facts", "must be an integer of at least 1")
