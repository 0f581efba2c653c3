"""Plans for several facts at once, and for creations that may be repeated: pure functions of a snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from deermem.errors import DuplicateFact, FactNotFoundError
from deermem.gateway.errors import EVICTED, Refusal, invalid
from deermem.model.changes import ChangeSet, Upsert
from deermem.model.fact import MANUAL_SOURCE, Fact, FactDraft, next_fact
from deermem.model.identity import FactId, Scope
from deermem.model.plans import deletions, facts_over_cap, with_evictions
from deermem.model.snapshot import Snapshot

KEY_HEADER: Final = "Idempotency-Key"


def keyed_id(scope: Scope, key: str, position: int | None = None) -> FactId:
    """Returns the id of the fact that a key creates; in a batch each position has its own.

    The parts are joined as JSON, so that no two of them give the same text.
    """
    parts = [scope.user.bucket, scope.agent, key] + ([] if position is None else [position])
    return FactId(f"fact_{sha256(json.dumps(parts).encode()).hexdigest()[:32]}")


def draft_of(values: Mapping[str, Any], fact_id: FactId) -> FactDraft:
    """Returns the draft of a fact that a client asks for."""
    return FactDraft(**values, id=fact_id, source=MANUAL_SOURCE)


def check_repeated(fact: Fact, content: str) -> None:
    """Makes sure that the fact that a key created has the content that comes with the key again.

    Raises:
        Refusal: It has another one.
    """
    if fact.content != content:
        raise invalid(KEY_HEADER, "was used for a fact with another content", within="header")


def create_all(snapshot: Snapshot, drafts: Sequence[FactDraft], now: str, max_facts: int) -> ChangeSet:
    """Adds facts within the cap, all of them or none; those that a key has created already stay.

    Raises:
        DuplicateFact: A text is there already, or twice among the drafts.
        Refusal: The cap would evict one of the new facts, or a key was used for another content.
    """
    new = [draft for draft in drafts if not _is_there(snapshot, draft)]
    known: dict[str, str] = {fact.content.casefold(): fact.id for fact in snapshot.facts}
    for draft in new:
        text = draft.content.casefold()
        if text in known:
            raise DuplicateFact(fact_id=known[text])
        known[text] = draft.id or ""
    facts = [next_fact(draft, snapshot.scope, now, None) for draft in new]
    evicted = facts_over_cap((*snapshot.facts, *facts), max_facts) if facts else ()
    if any(fact.id not in snapshot.by_id for fact in evicted):
        raise Refusal(409, EVICTED)
    added = ChangeSet(upserts=tuple(Upsert(snapshot.scope.agent, draft) for draft in new))
    return with_evictions(added, snapshot, evicted, max_facts) if evicted else added


def delete_all(snapshot: Snapshot, fact_ids: Iterable[str]) -> ChangeSet:
    """Deletes the facts with these ids, all of them or none.

    Raises:
        FactNotFoundError: One of them is not there.
    """
    facts = []
    for fact_id in fact_ids:
        fact = snapshot.by_id.get(FactId(fact_id))
        if fact is None:
            raise FactNotFoundError(fact_id)
        facts.append(fact)
    return ChangeSet(deletes=deletions(facts))


def _is_there(snapshot: Snapshot, draft: FactDraft) -> bool:
    fact = None if draft.id is None else snapshot.by_id.get(FactId(draft.id))
    if fact is not None:
        check_repeated(fact, draft.content)
    return fact is not None
