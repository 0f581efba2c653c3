"""What the tools do to one memory; a conflict is a result that a model can act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeVar

from deermem.errors import DuplicateFact, FactConflict, FactNotFoundError
from deermem.integrations.mcp.shapes import (
    MAX_EVICTED_SHOWN,
    SHOWN_OF_MANY,
    SHOWN_OF_ONE,
    AddArguments,
    Added,
    ContextShown,
    DeleteArguments,
    Deleted,
    FactsFound,
    FactShown,
    FactsListed,
    GetArguments,
    Got,
    ListArguments,
    NoArguments,
    SearchArguments,
    StatusShown,
    UpdateArguments,
    Updated,
)
from deermem.integrations.mcp.turns import Turns
from deermem.manager import DeerMem
from deermem.model.changes import Delta
from deermem.model.fact import MANUAL_SOURCE, Fact, FactDraft
from deermem.model.identity import DEFAULT_AGENT, FactId, Scope
from deermem.repository import MemoryRepository

T = TypeVar("T")

_NEAR: Final = 3
# Comparing an id with more would take longer than the answer is worth.
_COMPARED: Final = 2_000

_GONE: Final = "There is no fact with this id; memory_search and memory_list show what there is."
_CHANGED: Final = (
    "Nothing was changed: the fact was changed meanwhile. Here it is as it is now; decide again, and repeat"
    " with its revision if you still want to."
)


@dataclass(frozen=True, slots=True)
class Memory:
    """Is the memory of one scope. Nothing blocks the event loop: the store is used in other threads.

    Args:
        manager: Where it is kept.
        scope: Whose it is.
        turns: How many calls of a user are at work at once.
        read_only: What `memory_status` tells.
    """

    manager: DeerMem
    scope: Scope
    turns: Turns
    read_only: bool = False

    async def search(self, wanted: SearchArguments) -> FactsFound:
        """Finds facts."""
        filters = {} if wanted.category is None else {"category": wanted.category}
        if not wanted.query.strip():
            return FactsFound(facts=[])
        hits = await self.read(
            lambda repository: repository.search_facts(
                wanted.query, [self.scope], top_k=wanted.limit, filters=filters
            )
        )
        return FactsFound(facts=[FactShown.of(hit.fact) for hit in hits])

    async def add(self, wanted: AddArguments) -> Added:
        """Adds a fact."""
        draft = FactDraft(
            wanted.content, category=wanted.category, confidence=wanted.confidence, source=MANUAL_SOURCE
        )
        return await self._write(lambda repository: self._added(repository, draft))

    async def update(self, wanted: UpdateArguments) -> Updated:
        """Changes a fact."""
        return await self._write(lambda repository: self._updated(repository, wanted))

    async def delete(self, wanted: DeleteArguments) -> Deleted:
        """Deletes a fact."""
        return await self._write(lambda repository: self._deleted(repository, wanted))

    async def page(self, wanted: ListArguments) -> FactsListed:
        """Returns a part of the list."""
        filters = {} if wanted.category is None else {"category": wanted.category}
        page = await self.read(
            lambda repository: repository.list_facts(
                self.scope, filters=filters, limit=wanted.limit, cursor=wanted.cursor
            )
        )
        return FactsListed(facts=[FactShown.of(fact) for fact in page.facts], next_cursor=page.next_cursor)

    async def get(self, wanted: GetArguments) -> Got:
        """Returns a fact."""

        def look(repository: MemoryRepository) -> Got:
            fact = repository.get_fact(self.scope, wanted.id)
            if fact is None:
                return Got(outcome="not_found", message=_GONE, near=self._near(repository, wanted.id))
            return Got(outcome="found", message="Found.", fact=FactShown.of(fact, SHOWN_OF_ONE))

        return await self.read(look)

    async def context(self, _: NoArguments) -> ContextShown:
        """Sums the memory up."""
        agent = None if self.scope.agent == DEFAULT_AGENT else self.scope.agent
        text = await self.turns.run(
            self.scope.user.bucket,
            lambda: self.manager.aget_context(self.scope.user.raw, agent_name=agent),
            writes=False,
        )
        return ContextShown(text=text)

    async def status(self, _: NoArguments) -> StatusShown:
        """Says how the memory stands."""
        snapshot = await self.read(lambda repository: repository.snapshot(self.scope))
        return StatusShown(
            user=self.scope.user.raw,
            agent=self.scope.agent,
            facts=len(snapshot.facts),
            max_facts=self._most,
            categories=Counter(sorted(fact.category_extension or fact.category for fact in snapshot.facts)),
            revision=snapshot.revision,
            last_updated=snapshot.manifest.last_updated,
            read_only=self.read_only,
        )

    async def read(self, look: Callable[[MemoryRepository], T]) -> T:
        """Runs something that only reads."""
        return await self._run(look, writes=False)

    async def _write(self, change: Callable[[MemoryRepository], T]) -> T:
        return await self._run(change, writes=True)

    async def _run(self, work: Callable[[MemoryRepository], T], *, writes: bool) -> T:
        return await self.turns.run(
            self.scope.user.bucket, lambda: self.manager.arun_on_store(work, writes=writes), writes=writes
        )

    def _added(self, repository: MemoryRepository, draft: FactDraft) -> Added:
        before = repository.snapshot(self.scope)  # what can fail fails before the commit
        try:
            delta, _ = repository.create_fact(self.scope, draft, max_facts=self._most)
        except DuplicateFact as error:
            same = repository.get_fact(self.scope, error.fact_id) if error.fact_id else None
            return Added(
                outcome="duplicate",
                message="Nothing was changed: a fact says this already. Use memory_update to change it.",
                fact=None if same is None else FactShown.of(same),
            )
        gone = [before.by_id[fact_id] for _, fact_id in delta.deleted if fact_id in before.by_id]
        most = SHOWN_OF_ONE if len(gone) == 1 else SHOWN_OF_MANY
        return Added(
            outcome="added" if delta.written else "evicted",
            message=_told_of_addition(delta, len(before.facts) + 1, self._most),
            fact=FactShown.of(delta.written[0]) if delta.written else None,
            evicted=[FactShown.of(fact, most) for fact in gone[:MAX_EVICTED_SHOWN]],
            evicted_count=len(delta.deleted),
        )

    @property
    def _most(self) -> int:
        return self.manager.config.max_facts

    def _updated(self, repository: MemoryRepository, wanted: UpdateArguments) -> Updated:
        fact = repository.get_fact(self.scope, wanted.id)
        if fact is None:
            return Updated(outcome="not_found", message=_GONE, near=self._near(repository, wanted.id))
        seen, text = wanted.expected_revision, wanted.expected_text
        if seen not in (None, fact.revision) or (text is not None and text.strip() != fact.content):
            return Updated(outcome="conflict", message=_CHANGED, fact=FactShown.of(fact, SHOWN_OF_ONE))
        expected = None if seen is None and text is None else fact
        try:
            delta = repository.edit_fact(self.scope, wanted.id, wanted.changes(), expected=expected)
        except FactNotFoundError:
            return Updated(outcome="not_found", message=_GONE)
        except FactConflict as conflict:
            current = self._current(repository, conflict)
            if current is None:
                return Updated(outcome="not_found", message=_GONE)
            return Updated(outcome="conflict", message=_CHANGED, fact=FactShown.of(current, SHOWN_OF_ONE))
        return _told_of_update(delta)

    def _deleted(self, repository: MemoryRepository, wanted: DeleteArguments) -> Deleted:
        fact = repository.get_fact(self.scope, wanted.id)
        if fact is None:
            return Deleted(outcome="not_found", message=_GONE, near=self._near(repository, wanted.id))
        if wanted.expected_revision not in (None, fact.revision):
            return Deleted(outcome="conflict", message=_CHANGED, fact=FactShown.of(fact, SHOWN_OF_ONE))
        expected = None if wanted.expected_revision is None else fact
        try:
            delta = repository.delete_fact(self.scope, wanted.id, expected=expected)
        except FactConflict as conflict:
            current = self._current(repository, conflict)
            if current is None:
                return Deleted(outcome="not_found", message=_GONE)
            return Deleted(outcome="conflict", message=_CHANGED, fact=FactShown.of(current, SHOWN_OF_ONE))
        if not delta.deleted:
            return Deleted(outcome="not_found", message=_GONE)
        return Deleted(outcome="deleted", message="Deleted.", fact=FactShown.of(fact, SHOWN_OF_ONE))

    def _current(self, repository: MemoryRepository, conflict: FactConflict) -> Fact | None:
        """Returns the fact that a change ran into; an edit by hand is seen only when all is read anew."""
        if conflict.expected == conflict.actual:
            return repository.reload(self.scope, accept_root=False).by_id.get(FactId(conflict.fact_id))
        return repository.get_fact(self.scope, conflict.fact_id)

    def _near(self, repository: MemoryRepository, fact_id: str) -> list[str]:
        ids = [fact.id for fact in repository.snapshot(self.scope).facts[:_COMPARED]]
        return get_close_matches(fact_id, ids, _NEAR, 0.8)


def _told_of_addition(delta: Delta, facts: int, most: int) -> str:
    """Returns what became of a new fact, and of others for its sake, in words that a model acts on.

    Args:
        delta: What was changed.
        facts: How many there would be now without a cap.
        most: The cap.
    """
    cap, lost = f"{most:,} facts", len(delta.deleted)
    if lost == 1:
        others = (
            f" The memory was full ({cap}), so the least certain fact was deleted for good: it is in"
            " `evicted`. Tell the user. If it matters more than another, delete that one and add it again."
        )
    elif lost:
        others = (
            f" The memory had more than {cap}, so the {lost:,} least certain ones were deleted for good:"
            " `evicted` has the first of them. Tell the user."
        )
    elif delta.written and facts >= most:
        others = f" The memory is full now ({cap}): the next new one takes the place of the least certain."
    else:
        others = ""
    if delta.written:
        return f"Stored.{others}"
    return (
        f"The new fact was not stored: the memory is full ({cap}), and every fact that stays is at least as"
        f" certain. Delete one that is out of date first, or give more confidence if you are sure.{others}"
    )


def _told_of_update(delta: Delta) -> Updated:
    (fact,) = delta.upserted
    shown = FactShown.of(fact, SHOWN_OF_ONE)
    if not delta.written:
        return Updated(outcome="unchanged", message="The fact says this already.", fact=shown)
    return Updated(outcome="updated", message="Changed.", fact=shown)
