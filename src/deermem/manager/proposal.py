"""What an extraction hook proposes, and the change set that follows from it. Pure.

    {"user": {section: {"summary": …}}, "history": {…},      summaries to replace
     "newFacts": [{"content": …, "category": …, "confidence": …, …}],
     "factsToUpdate": [{"id": …, and the keys to change}],
     "factsToRemove": [id, …]}

Every key may be missing. The keys of a fact are those of a document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from deermem.compat import located, read_changes, read_facts
from deermem.errors import InvalidInputError
from deermem.model.changes import ChangeSet, Unchanged, Upsert
from deermem.model.fact import Fact, FactDraft, Source
from deermem.model.identity import FactId, is_fact_id
from deermem.model.plans import deletions, with_evictions
from deermem.model.snapshot import Snapshot
from deermem.model.summaries import SECTIONS, SummaryPatch

_NEW: Final = "newFacts"
_UPDATE: Final = "factsToUpdate"
_REMOVE: Final = "factsToRemove"
_KEYS: Final = (*SECTIONS, _NEW, _UPDATE, _REMOVE)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Is a checked proposal; updates are fields of `FactDraft` by fact id."""

    summaries: SummaryPatch
    new: tuple[FactDraft, ...]
    updates: Mapping[str, Mapping[str, Any]]
    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Admission:
    """Says which new facts are taken.

    Args:
        threshold: The confidence that a new fact must have.
        max_facts: How many facts a scope may have.
        source: Where new facts come from.
        new_id: Returns an id that no fact has.
    """

    threshold: float
    max_facts: int
    source: Source
    new_id: Callable[[], FactId]


def read_proposal(value: Any) -> Proposal:
    """Reads what a hook returned; `None` proposes nothing.

    Raises:
        InvalidInputError: Names the value that breaks its rule, such as `newFacts[0].content`.
    """
    value = {} if value is None else value
    if not isinstance(value, Mapping):
        raise InvalidInputError("proposal", "must be an object")
    unknown = [str(key)[:64] for key in value if key not in _KEYS]
    if unknown:
        raise InvalidInputError(unknown[0], f"is not one of {', '.join(_KEYS)}")
    patch = SummaryPatch.parse({group: value[group] for group in SECTIONS if value.get(group) is not None})
    updates: dict[str, Mapping[str, Any]] = {}
    for place, document in enumerate(_listed(value, _UPDATE)):
        with located(f"{_UPDATE}[{place}]"):
            if not isinstance(document, Mapping):
                raise InvalidInputError("", "must be an object")
            changes = read_changes(document)
            fact_id = _checked_id("id", changes.pop("id", None))
            if fact_id in updates:
                raise InvalidInputError("id", "is named more than once")
            updates[fact_id] = changes
    removals = [_checked_id(f"{_REMOVE}[{n}]", item) for n, item in enumerate(_listed(value, _REMOVE))]
    return Proposal(patch, read_facts(value.get(_NEW), _NEW), updates, tuple(removals))


def _listed(value: Mapping[str, Any], key: str) -> Sequence[Any]:
    items = value.get(key)
    if items is None:
        return ()
    if not isinstance(items, list | tuple):
        raise InvalidInputError(key, "must be a list")
    return items


def _checked_id(field: str, value: Any) -> str:
    if not is_fact_id(value):
        raise InvalidInputError(field, "must be the id of a fact")
    return str(value)


def changes_of(proposal: Proposal, snapshot: Snapshot, admission: Admission) -> ChangeSet:
    """Returns the change set that brings a proposal about on the snapshot that it was made of.

    Ids that are not there are passed over: a model may well name some. A new fact gets an id of its own;
    below the threshold, or with a text that is there, it is left out. The cap evicts as everywhere, but only
    where a fact is new.

    Raises:
        InvalidInputError: Names the update with a value that breaks its rule.
    """
    removed = {fact_id for fact_id in proposal.removals if fact_id in snapshot.by_id}
    kept: dict[str, Fact] = {fact.id: fact for fact in snapshot.facts if fact.id not in removed}
    updated: dict[str, FactDraft] = {}
    for place, (fact_id, changes) in enumerate(proposal.updates.items()):
        if fact_id in kept:
            with located(f"{_UPDATE}[{place}]"):
                updated[fact_id] = kept[fact_id].draft(**changes)
    outcome: dict[str, Fact | FactDraft] = {**kept, **updated}
    added = _admitted(proposal, outcome, admission)
    outcome |= added
    evicted = _evicted(outcome, admission.max_facts) if added else set()
    agent = snapshot.scope.agent
    changed = {fact_id: draft for fact_id, draft in updated.items() if fact_id not in evicted}
    proposed = ChangeSet(
        upserts=(
            *(Upsert(agent, draft, Unchanged(snapshot.by_id[FactId(key)])) for key, draft in changed.items()),
            *(Upsert(agent, draft) for fact_id, draft in added.items() if fact_id not in evicted),
        ),
        deletes=deletions(snapshot.by_id[FactId(fact_id)] for fact_id in sorted(removed)),
        summaries=proposal.summaries if proposal.summaries.sections else None,
    )
    gone = [snapshot.by_id[FactId(fact_id)] for fact_id in sorted(evicted - added.keys())]
    return with_evictions(proposed, snapshot, gone, admission.max_facts) if gone else proposed


def _admitted(
    proposal: Proposal, present: Mapping[str, Fact | FactDraft], admission: Admission
) -> dict[str, FactDraft]:
    texts = {each.content.casefold() for each in present.values()}
    admitted: dict[str, FactDraft] = {}
    for draft in proposal.new:
        text = draft.content.casefold()
        if draft.confidence >= admission.threshold and text not in texts:
            texts.add(text)
            fact_id = admission.new_id()
            admitted[fact_id] = replace(draft, id=fact_id, source=admission.source, created_at=None)
    return admitted


def _evicted(outcome: Mapping[str, Fact | FactDraft], max_facts: int) -> set[str]:
    ranked = sorted(outcome, key=lambda fact_id: (-outcome[fact_id].confidence, fact_id))
    return set(ranked[max_facts:])
