"""Plans: pure functions from a snapshot to the change set that follows from it.

Each depends on the complete set of facts (plan section 8), so it is computed anew on each snapshot
and never replayed on a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from deermem.errors import DuplicateFact, FactNotFoundError
from deermem.model.changes import ANYTHING, TRIM, ChangeSet, Delete, Unchanged, Upsert
from deermem.model.fact import Fact, FactDraft, Source, next_fact
from deermem.model.identity import FactId
from deermem.model.snapshot import Snapshot
from deermem.model.summaries import Summaries, SummaryPatch

Plan = Callable[[Snapshot], ChangeSet]


def facts_over_cap(facts: Iterable[Fact], max_facts: int) -> tuple[Fact, ...]:
    """Returns the facts that a cap evicts.

    The highest confidence stays; among equals the earlier in id order stays (contract section 6).
    """
    ranked = sorted(facts, key=lambda fact: (-fact.confidence, fact.id))
    return tuple(ranked[max_facts:])


def trim(snapshot: Snapshot, max_facts: int) -> ChangeSet:
    """Deletes what the cap evicts."""
    return ChangeSet(deletes=deletions(facts_over_cap(snapshot.facts, max_facts)))


def with_evictions(
    changes: ChangeSet, snapshot: Snapshot, evicted: Iterable[Fact], max_facts: int
) -> ChangeSet:
    """Returns a change set that also deletes what a cap evicts.

    A memory that held more than its cap, since another program or another setting filled it, loses more
    than comes. Who adds one fact does not expect that, so it can be taken back.
    """
    evictions = deletions(evicted)
    return replace(
        changes,
        deletes=(*changes.deletes, *evictions),
        evicts=tuple(delete.key for delete in evictions),
        keeps=TRIM if len(snapshot.facts) > max_facts else changes.keeps,
    )


def find_duplicate(snapshot: Snapshot, content: str) -> Fact | None:
    """Returns the fact with the same text, compared without outer white space and case."""
    wanted = content.strip().casefold()
    return next((fact for fact in snapshot.facts if fact.content.casefold() == wanted), None)


def create(snapshot: Snapshot, draft: FactDraft, now: str, max_facts: int | None) -> ChangeSet:
    """Adds a fact, keeps the cap, and refuses a text that is there already.

    When the cap evicts the new fact itself, the change set has no upsert.

    Raises:
        DuplicateFact: The scope holds the same text.
    """
    same = find_duplicate(snapshot, draft.content)
    if same is not None:
        raise DuplicateFact(fact_id=same.id)
    upsert = Upsert(snapshot.scope.agent, draft)
    if max_facts is None or len(snapshot.facts) < max_facts:
        return ChangeSet(upserts=(upsert,))
    new = next_fact(draft, snapshot.scope, now, None)
    evicted = facts_over_cap((*snapshot.facts, new), max_facts)
    added = ChangeSet(upserts=() if new in evicted else (upsert,))
    return with_evictions(added, snapshot, (fact for fact in evicted if fact is not new), max_facts)


def consolidate(snapshot: Snapshot, fact_ids: Iterable[FactId], draft: FactDraft) -> ChangeSet:
    """Replaces several facts by one that names them in `consolidatedFrom`.

    The draft may have the id of one of the facts that it replaces.

    Raises:
        FactNotFoundError: One of the facts is not there.
    """
    replaced: list[Fact] = []
    for fact_id in dict.fromkeys(fact_ids):
        fact = snapshot.by_id.get(fact_id)
        if fact is None:
            raise FactNotFoundError(fact_id)
        replaced.append(fact)
    origins = dict.fromkeys((*draft.consolidated_from, *(fact.id for fact in replaced)))
    values = {name: getattr(draft, name) for name in FactDraft.__dataclass_fields__}
    merged = FactDraft(**{**values, "consolidated_from": tuple(origins), "source": Source("consolidation")})
    kept = next((fact for fact in replaced if fact.id == draft.id), None)
    upsert = (
        Upsert(snapshot.scope.agent, merged)
        if kept is None
        else Upsert(snapshot.scope.agent, merged, Unchanged(kept))
    )
    return ChangeSet(
        upserts=(upsert,),
        deletes=deletions(fact for fact in replaced if fact is not kept),
    )


def replace_all(snapshot: Snapshot, drafts: Iterable[FactDraft], summaries: Summaries) -> ChangeSet:
    """Sets the scope's facts and the six summaries to those given (import).

    A fact with a known id keeps its creation time and gets the next revision.
    """
    upserts = tuple(Upsert(snapshot.scope.agent, draft, ANYTHING) for draft in drafts)
    kept = {upsert.draft.id for upsert in upserts}
    return ChangeSet(
        upserts=upserts,
        deletes=deletions(fact for fact in snapshot.facts if fact.id not in kept),
        summaries=SummaryPatch.replace_all(summaries),
        keeps="import",
    )


def deletions(facts: Iterable[Fact]) -> tuple[Delete, ...]:
    """Returns what deletes facts, each as it was seen."""
    return tuple(Delete(fact.scope.agent, fact.id, Unchanged(fact)) for fact in facts)
