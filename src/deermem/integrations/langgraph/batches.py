"""A batch of LangGraph's operations: reads of one state of each user, then one transaction of each.

As in LangGraph's own stores, the reads of a batch show what was there before its puts, and of several puts
to one key the last counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    validate_op_namespace,
)

from deermem.errors import InvalidInputError
from deermem.integrations.langgraph.items import Draft, draft_of, find
from deermem.integrations.langgraph.listing import Listing, Read
from deermem.integrations.langgraph.matching import check_filter
from deermem.integrations.langgraph.namespaces import Labels, Layout, fact_id_of
from deermem.model.changes import ChangeSet, Delete, Unchanged, Upsert
from deermem.model.identity import Scope, UserId
from deermem.repository import MemoryRepository
from deermem.storage.view import View


@dataclass(frozen=True, slots=True)
class Write:
    """Is a put that was checked; without a draft it deletes."""

    scope: Scope
    rest: Labels
    key: str
    draft: Draft | None


class Batch:
    """Checks operations when it is made, before anything is read or written.

    Raises:
        InvalidNamespaceError: A namespace is a text, a label breaks LangGraph's rules, or the layout does not
            fit a put.
        InvalidInputError: A value, a key or a filter breaks its rule.
        NotImplementedError: A put has a time to live.
    """

    def __init__(self, ops: Iterable[Op], layout: Layout, *, across_users: bool) -> None:
        self._ops = list(ops)
        self._layout = layout
        self._across_users = across_users
        self._writes: dict[tuple[Scope, Labels, str], Write] = {}
        self._reads: list[tuple[int, Read]] = []
        for index, op in enumerate(self._ops):
            self._take(index, op)

    @property
    def writes(self) -> bool:
        """Whether the batch may have to wait for a writer's turn."""
        return bool(self._writes)

    def run(self, repository: MemoryRepository) -> list[Result]:
        """Reads, then writes; returns one result for each operation."""
        results: list[Result] = [None] * len(self._ops)
        listing = Listing(repository, self._layout, across_users=self._across_users)
        listing.expect(op for _, op in self._reads)
        for index, op in self._reads:
            results[index] = listing.answer(op)
        by_user: dict[str | None, list[Write]] = {}
        for write in self._writes.values():
            by_user.setdefault(write.scope.user.bucket, []).append(write)
        for writes in by_user.values():
            _commit(repository, writes[0].scope.user, writes)
        return results

    def _take(self, index: int, op: Op) -> None:
        validate_op_namespace(op)
        _refuse_texts(op)
        if isinstance(op, PutOp):
            self._take_put(op)
            return
        if not isinstance(op, GetOp | SearchOp | ListNamespacesOp):
            raise ValueError(f"Unknown operation type: {type(op)}")  # noqa: TRY004 - as LangGraph's stores do
        if isinstance(op, SearchOp):
            if op.filter:
                check_filter(op.filter)
            if op.query and not isinstance(op.query, str):
                raise InvalidInputError("query", "must be a text")
        if isinstance(op, SearchOp | ListNamespacesOp):
            for number in (op.limit, op.offset):
                if not isinstance(number, int) or number < 0:
                    raise InvalidInputError("limit and offset", "must be whole numbers of at least 0")
        self._reads.append((index, op))

    def _take_put(self, op: PutOp) -> None:
        if op.ttl is not None:
            raise NotImplementedError("TTL is not supported by DeerMemStore; set ttl=None.")
        place = self._layout.place(tuple(op.namespace))
        if place is None:
            if op.value is None:
                return  # nothing can be there
            raise InvalidNamespaceError(
                f"The namespace {op.namespace} does not begin as the layout {self._layout.labels} says."
            )
        key = str(op.key)
        fact_id_of(place.rest, key)
        draft = None if op.value is None else draft_of(place.rest, key, op.value, place.label)
        address = (place.scope, place.rest, key)
        self._writes.pop(address, None)
        self._writes[address] = Write(place.scope, place.rest, key, draft)


def _refuse_texts(op: Op) -> None:
    """Refuses "alice" for ("alice",): its labels would be letters, and `a` the user of all such names."""
    given: list[object] = []
    if isinstance(op, SearchOp):
        given = [op.namespace_prefix]
    elif isinstance(op, ListNamespacesOp):
        given = [condition.path for condition in op.match_conditions or ()]
    elif isinstance(op, GetOp | PutOp):
        given = [op.namespace]
    for labels in given:
        if isinstance(labels, str):
            raise InvalidNamespaceError(f"A namespace is a tuple of labels: ({labels!r},), not {labels!r}.")


def _commit(repository: MemoryRepository, user: UserId, writes: Sequence[Write]) -> None:
    def decide(view: View) -> ChangeSet:
        upserts: list[Upsert] = []
        deletes: list[Delete] = []
        for write in writes:
            stored = find(write.scope, write.rest, write.key, view.fact)
            agent = write.scope.agent
            if write.draft is None:
                if stored is not None:
                    deletes.append(Delete(agent, stored.fact.id, Unchanged(stored.fact)))
            elif stored is None:
                upserts.append(Upsert(agent, write.draft.new(fact_id_of(write.rest, write.key))))
            else:
                upserts.append(Upsert(agent, write.draft.over(stored.fact), Unchanged(stored.fact)))
        return ChangeSet(upserts=tuple(upserts), deletes=tuple(deletes))

    repository.commit(user, decide)
