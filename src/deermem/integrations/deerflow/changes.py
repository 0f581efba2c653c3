"""DeerFlow's change sets and full documents to change sets of the store.

Each `decide` runs under the user's lock on what is stored then, and its change set is one transaction: all of
it, facts and summaries, is committed, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deermem.compat import read_facts
from deermem.errors import InvalidInputError
from deermem.integrations.deerflow.values import read_patch, storable
from deermem.model.changes import ABSENT, ANYTHING, AtRevision, ChangeSet, Delete, Precondition, Upsert
from deermem.model.fact import FactDraft
from deermem.model.identity import FactId, Scope, parse_fact_id
from deermem.model.rules import is_derived_title
from deermem.storage.view import View

NewId = Callable[[], FactId]


@dataclass(frozen=True, slots=True)
class FactChanges:
    """Is a change set of DeerFlow's, read and checked, for one scope.

    Without an agent only summaries can change; `scope` is then that of the default agent. An expected
    revision is a manifest's or a fact's; `None` is a fact's absence for `upserts` and no condition for
    `deletes`.
    """

    scope: Scope
    upserts: tuple[tuple[FactDraft, int | None], ...] = ()
    deletes: tuple[tuple[FactId, int | None], ...] = ()
    summaries: Any = None
    expected_manifest_revision: int | None = None
    may_rebase: bool = False

    def decide(self, view: View) -> ChangeSet:
        """Returns the change set for what is stored."""
        if self._empties(view):
            return ChangeSet(
                clears=frozenset([self.scope.agent]),
                expected_manifest_revision=self.expected_manifest_revision,
                keeps="clear",
            )
        return ChangeSet(
            upserts=tuple(
                Upsert(self.scope.agent, _titled(draft, self.scope, view), _present_at(revision))
                for draft, revision in self.upserts
            ),
            deletes=tuple(
                Delete(self.scope.agent, fact_id, ANYTHING if revision is None else AtRevision(revision))
                for fact_id, revision in self.deletes
            ),
            summaries=read_patch(self.summaries, view.manifest),
            expected_manifest_revision=self.expected_manifest_revision,
            may_rebase=self.may_rebase and self.summaries is None,
        )

    def _empties(self, view: View) -> bool:
        """Tells whether a snapshot's facts are all deleted, and nothing else is done.

        DeerFlow clears an agent that way. Taken for a clear it is fenced (guarantee G7), and can be undone.
        """
        return (
            bool(self.deletes)
            and not self.upserts
            and self.summaries is None
            and not self.may_rebase
            and self.expected_manifest_revision == view.manifest.revision
            and {fact.id for fact in view.snapshot(self.scope).facts} == {key for key, _ in self.deletes}
        )


@dataclass(frozen=True, slots=True)
class FullSave:
    """Replaces the facts of a scope by those of a document; what the document leaves out is deleted."""

    scope: Scope
    drafts: tuple[tuple[FactDraft, int], ...] = ()
    expected_manifest_revision: int | None = None

    def decide(self, view: View) -> ChangeSet:
        """Returns the difference to what is stored; a fact that is there must be at the given revision."""
        present = {fact.id: fact for fact in view.snapshot(self.scope).facts}
        upserts = []
        for draft, revision in self.drafts:
            there = draft.id is not None and draft.id in present
            condition: Precondition = AtRevision(revision) if there else ABSENT
            upserts.append(Upsert(self.scope.agent, _titled(draft, self.scope, view), condition))
        kept = {draft.id for draft, _ in self.drafts}
        return ChangeSet(
            upserts=tuple(upserts),
            deletes=tuple(Delete(self.scope.agent, fact_id) for fact_id in present if fact_id not in kept),
            expected_manifest_revision=self.expected_manifest_revision,
        )


def read_change_set(
    change_set: Mapping[str, Any],
    scope: Scope,
    new_id: NewId,
    *,
    expected_manifest_revision: int | None,
    may_rebase: bool,
) -> FactChanges:
    """Reads `{upserts, upsertRevisions, deletes, deleteRevisions, summaries}`.

    What a fact is expected to be is said by `upsertRevisions`, else by the `revision` in the fact, else it
    is expected to be absent.

    Raises:
        InvalidInputError: Names the value that breaks its rule.
    """
    if not isinstance(change_set, Mapping):
        raise InvalidInputError("change_set", "must be an object")
    facts = _list(change_set, "upserts")
    revisions = _revisions(change_set, "upsertRevisions")
    upserts = []
    for draft, fact in zip(_drafts(facts, "upserts", new_id), facts, strict=True):
        own = _revision(fact, "upserts")
        upserts.append((draft, revisions.get(draft.id, own) if draft.id is not None else own))
    expected = _revisions(change_set, "deleteRevisions")
    deletes = [parse_fact_id(str(fact_id)) for fact_id in _list(change_set, "deletes")]
    return FactChanges(
        scope,
        upserts=tuple(upserts),
        deletes=tuple((fact_id, expected.get(fact_id)) for fact_id in deletes),
        summaries=change_set.get("summaries"),
        expected_manifest_revision=expected_manifest_revision,
        may_rebase=may_rebase,
    )


def read_full_save(
    memory_data: Mapping[str, Any], scope: Scope, new_id: NewId, expected_manifest_revision: int | None
) -> FullSave:
    """Reads a document whose facts replace those of a scope.

    Raises:
        InvalidInputError: It has no facts, not even none, or one of them breaks a rule.
    """
    if "facts" not in memory_data:
        raise InvalidInputError("memory_data.facts", "is required to save an agent's facts")
    facts = memory_data["facts"]
    if not isinstance(facts, list):
        raise InvalidInputError("memory_data.facts", "must be a list")
    drafts = _drafts(facts, "facts", new_id)
    pairs = tuple((draft, _revision(fact, "facts") or 1) for draft, fact in zip(drafts, facts, strict=True))
    return FullSave(scope, pairs, expected_manifest_revision)


def _drafts(facts: list[Any], name: str, new_id: NewId) -> list[FactDraft]:
    drafts = read_facts([storable(fact) for fact in facts], name)
    return [draft if draft.id is not None else draft.with_id(new_id()) for draft in drafts]


def _titled(draft: FactDraft, scope: Scope, view: View) -> FactDraft:
    """Returns a draft whose title is derived again where the one it was read with was derived.

    DeerFlow hands back the title that it was given, also with another content.
    """
    if draft.title is None or draft.id is None:
        return draft
    present = view.fact(scope, FactId(draft.id))
    if present is None or draft.title != present.title:
        return draft
    if not is_derived_title(present.title, present.content):
        return draft
    return replace(draft, title=None)


def _present_at(revision: int | None) -> Precondition:
    return ABSENT if revision is None else AtRevision(revision)


def _list(change_set: Mapping[str, Any], name: str) -> list[Any]:
    value = change_set.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInputError(f"change_set.{name}", "must be a list")
    return value


def _revisions(change_set: Mapping[str, Any], name: str) -> dict[str, int | None]:
    value = change_set.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"change_set.{name}", "must be an object")
    return {str(key): _checked(revision, f"change_set.{name}") for key, revision in value.items()}


def _revision(fact: Mapping[str, Any], name: str) -> int | None:
    return _checked(fact.get("revision"), f"{name}.revision")


def _checked(revision: Any, name: str) -> int | None:
    if revision is None:
        return None
    if isinstance(revision, bool) or not isinstance(revision, int) or revision < 1:
        raise InvalidInputError(name, "must be an integer of at least 1")
    return revision
