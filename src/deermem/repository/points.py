"""Point operations: they depend on the facts they name and on no others (plan section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deermem.errors import FactNotFoundError, InvalidInputError
from deermem.model.changes import (
    ABSENT,
    ANYTHING,
    AtRevision,
    ChangeSet,
    Delete,
    Delta,
    Precondition,
    Unchanged,
    Upsert,
)
from deermem.model.fact import Fact, FactDraft
from deermem.model.identity import Scope, parse_fact_id
from deermem.model.summaries import SummaryPatch
from deermem.repository.core import RepositoryCore
from deermem.storage.view import View

Expected = int | Fact | None


class PointOperations(RepositoryCore):
    """Writes, edits and deletes named facts, and summaries."""

    def upsert_fact(
        self,
        scope: Scope,
        draft: FactDraft,
        *,
        expected: Expected = None,
        expected_manifest_revision: int | None = None,
    ) -> Delta:
        """Writes one fact.

        Args:
            scope: Where the fact lives.
            draft: What it should say; without an id it gets a new one.
            expected: `None`: the fact must not exist. A number: it must be at this revision. A fact:
                it must be this very fact, unchanged.
            expected_manifest_revision: The revision of `memory.json` that the change is based on. A
                stale one is accepted if the fact is as expected and the scope was not cleared since.

        Raises:
            FactConflict: The fact is not as expected.
            ManifestConflict: The scope was cleared since the base revision.
        """
        upsert = Upsert(scope.agent, self._identified(draft), _precondition(expected, ABSENT))
        changes = ChangeSet(
            upserts=(upsert,), expected_manifest_revision=expected_manifest_revision, may_rebase=True
        )
        return self.commit(scope.user, lambda _: changes)

    def edit_fact(
        self, scope: Scope, fact_id: str, changes: Mapping[str, Any], *, expected: Expected = None
    ) -> Delta:
        """Changes some fields of a fact, whatever the others are at that moment.

        Args:
            scope: Where the fact lives.
            fact_id: Which fact.
            changes: Fields of `FactDraft` by name.
            expected: As in `upsert_fact`, but `None` expects only that the fact exists.

        Raises:
            FactNotFoundError: There is no such fact.
            FactConflict: The fact is not as expected, or was edited by hand.
        """
        wanted = parse_fact_id(fact_id)
        given = _precondition(expected, ANYTHING)

        def decide(view: View) -> ChangeSet:
            fact = view.fact(scope, wanted)
            if fact is None:
                raise FactNotFoundError(wanted)
            condition = Unchanged(fact) if expected is None else given
            return ChangeSet(upserts=(Upsert(scope.agent, fact.draft(**changes), condition),))

        return self.commit(scope.user, decide)

    def adopt_fact(self, scope: Scope, fact_id: str) -> Delta:
        """Makes a commit, with a revision that it never had, of a fact as it was edited by hand.

        The file is taken as it is: an edit that was begun before another change undoes that change.

        Raises:
            FactNotFoundError: There is no such fact.
            Corruption: The edited file cannot be read.
        """
        wanted = parse_fact_id(fact_id)
        self._indexer.mark_stale(scope.user)

        def decide(view: View) -> ChangeSet:
            fact = view.fact_on_disk(scope, wanted)
            if fact is None:
                raise FactNotFoundError(wanted)
            return ChangeSet(upserts=(Upsert(scope.agent, fact.draft(), Unchanged(fact), renew=True),))

        return self.commit(scope.user, decide)

    def delete_fact(
        self,
        scope: Scope,
        fact_id: str,
        *,
        expected: Expected = None,
        expected_manifest_revision: int | None = None,
    ) -> Delta:
        """Deletes one fact; an absent one is no error unless something is expected of it.

        Raises:
            FactConflict: The fact is not as expected.
            ManifestConflict: The scope was cleared since the base revision.
        """
        delete = Delete(scope.agent, parse_fact_id(fact_id), _precondition(expected, ANYTHING))
        changes = ChangeSet(
            deletes=(delete,),
            expected_manifest_revision=expected_manifest_revision,
            may_rebase=expected is not None,
        )
        return self.commit(scope.user, lambda _: changes)

    def apply_changes(self, user_id: str | None, changes: ChangeSet) -> Delta:
        """Commits several changes of one user as one transaction.

        Returns:
            What changed, not the whole memory: a caller that promises a full document reads again.

        Raises:
            RevisionConflict: A precondition does not hold; nothing was written.
        """
        upserts = tuple(replace(upsert, draft=self._identified(upsert.draft)) for upsert in changes.upserts)
        identified = replace(changes, upserts=upserts)
        return self.commit(self._user(user_id), lambda _: identified)

    def update_summaries(
        self,
        user_id: str | None,
        patch: SummaryPatch | Mapping[str, Any],
        *,
        expected_manifest_revision: int | None = None,
    ) -> Delta:
        """Replaces the summaries that the patch names; the others stay (plan section 8).

        Raises:
            InvalidInputError: The patch names an unknown summary or has a value of the wrong shape.
            ManifestConflict: `memory.json` is not at the expected revision.
        """
        parsed = patch if isinstance(patch, SummaryPatch) else SummaryPatch.parse(patch)
        changes = ChangeSet(summaries=parsed, expected_manifest_revision=expected_manifest_revision)
        return self.commit(self._user(user_id), lambda _: changes)


def _precondition(expected: Expected, otherwise: Precondition) -> Precondition:
    if expected is None:
        return otherwise
    if isinstance(expected, Fact):
        return Unchanged(expected)
    if isinstance(expected, bool) or not isinstance(expected, int) or expected < 1:
        raise InvalidInputError("expected", "must be a fact or a revision of at least 1")
    return AtRevision(expected)
