"""Answers reads: gets, searches and lists of namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    Result,
    SearchItem,
    SearchOp,
)

from deermem.errors import InvalidInputError
from deermem.integrations.langgraph.items import Stored, find
from deermem.integrations.langgraph.matching import fits, matches
from deermem.integrations.langgraph.namespaces import (
    Labels,
    Layout,
    Reach,
    label_of,
    user_of,
)
from deermem.model.fact import Fact
from deermem.model.identity import AgentName, FactId, Scope, UserId, looks_encoded
from deermem.model.snapshot import Snapshot
from deermem.repository import MemoryRepository
from deermem.search.port import MAX_TOP_K, SUBSTRING
from deermem.search.substring import substring_search

_ALL: Final = "*"
Read = GetOp | SearchOp | ListNamespacesOp
Found = tuple[Labels, Stored]


class Listing:
    """Reads each user once, however many operations ask.

    Args:
        repository: Where to read.
        layout: What namespaces mean.
        across_users: Whether one operation may look at the memories of several users.
    """

    def __init__(self, repository: MemoryRepository, layout: Layout, *, across_users: bool) -> None:
        self._repository = repository
        self._layout = layout
        self._across_users = across_users
        self._snapshots: dict[str | None, dict[AgentName, Snapshot]] = {}
        self._point = False

    def expect(self, ops: Iterable[Read]) -> None:
        """Says which operations will come: a single get needs no more than its fact."""
        expected = list(ops)
        self._point = len(expected) == 1 and isinstance(expected[0], GetOp)

    def answer(self, op: Read) -> Result:
        """Returns the result of one operation."""
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        return self._namespaces(op)

    def _get(self, op: GetOp) -> Item | None:
        place, key = self._layout.place(tuple(op.namespace)), str(op.key)
        if place is None:
            return None
        stored = find(place.scope, place.rest, key, self._fact)
        if stored is None:
            return None
        return Item(
            namespace=tuple(op.namespace),
            key=key,
            value=stored.value(),
            created_at=stored.created_at,
            updated_at=stored.updated_at,
        )

    def _fact(self, scope: Scope, fact_id: FactId) -> Fact | None:
        if self._point:
            return self._repository.get_fact(scope, fact_id)
        return self._snapshot(scope).by_id.get(fact_id)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        reach = self._layout.reach(tuple(op.namespace_prefix))
        if reach is None:
            return []
        found = [*self._below(reach)]
        if op.filter:
            found = [each for each in found if matches(each[1].value(), op.filter)]
        scores: dict[tuple[str | None, str, str], float] = {}
        if op.query and op.query.strip():
            found, scores = self._ranked(op, found)
        else:
            found.sort(key=lambda each: (each[0], each[1].key))
            found.sort(key=lambda each: each[1].updated_at, reverse=True)
        return [
            SearchItem(
                namespace=namespace,
                key=stored.key,
                value=stored.value(),
                created_at=stored.created_at,
                updated_at=stored.updated_at,
                score=scores.get(_identity(stored.fact)),
            )
            for namespace, stored in found[op.offset : op.offset + op.limit]
        ]

    def _ranked(
        self, op: SearchOp, found: list[Found]
    ) -> tuple[list[Found], dict[tuple[str | None, str, str], float]]:
        """Returns what of `found` the query finds, in its order, and the scores that an adapter gave."""
        if op.offset + op.limit > MAX_TOP_K:
            raise InvalidInputError("limit and offset", f"of a search with a query end at {MAX_TOP_K:,}")
        query = (op.query or "").strip()
        by_scope: dict[Scope, list[Fact]] = {}
        for _, stored in found:
            by_scope.setdefault(stored.fact.scope, []).append(stored.fact)
        if not by_scope:
            return [], {}
        hits = self._repository.search_facts(query, list(by_scope), top_k=MAX_TOP_K)
        ranked_by_adapter = any(hit.match_type != SUBSTRING for hit in hits)
        if not ranked_by_adapter and hits:
            # Only what the prefix and the filter left, or the limit could hide it.
            manifests = {scope: self._snapshot(scope).manifest for scope in by_scope}
            left = [Snapshot.of(scope, manifests[scope], facts) for scope, facts in by_scope.items()]
            hits = substring_search(left, query, MAX_TOP_K)
        known = {_identity(each[1].fact): each for each in found}
        scores = {_identity(hit.fact): hit.score for hit in hits} if ranked_by_adapter else {}
        return [known[_identity(hit.fact)] for hit in hits if _identity(hit.fact) in known], scores

    def _namespaces(self, op: ListNamespacesOp) -> list[Labels]:
        conditions = op.match_conditions or ()
        reach = self._layout.everything()
        for condition in conditions:
            if condition.match_type == "prefix":
                path = tuple(condition.path)
                narrower = self._layout.reach(path[: path.index(_ALL)] if _ALL in path else path)
                if narrower is None:
                    return []
                if narrower.user is not None:
                    reach = replace(narrower, rest=())
        found = {namespace for namespace, _ in self._below(reach)}
        kept = [each for each in found if all(fits(each, condition) for condition in conditions)]
        if op.max_depth is not None:
            kept = list({each[: op.max_depth] for each in kept})
        return sorted(kept)[op.offset : op.offset + op.limit]

    def _below(self, reach: Reach) -> Iterator[Found]:
        """Yields what lies below a prefix, with its whole namespace."""
        for user, label in self._users(reach):
            for agent, snapshot in self._agents(user, reach.agent).items():
                for fact in snapshot.facts:
                    stored = Stored.of(fact)
                    if stored.rest[: len(reach.rest)] == reach.rest and not stored.is_hidden_in(snapshot):
                        yield self._layout.namespace(label, agent, stored.rest), stored

    def _users(self, reach: Reach) -> Iterator[tuple[UserId, str]]:
        if reach.user is not None:
            yield reach.user, reach.label
            return
        if not self._across_users:
            raise InvalidNamespaceError(
                "The prefix names no user, and this store does not look across users "
                "(DeerMemStore(..., across_users=True) does)."
            )
        for bucket in self._repository.list_users():
            label = self._label(bucket)
            if label is not None:
                yield user_of(label), label

    def _label(self, bucket: str) -> str | None:
        """Returns the label of a bucket's user; the name of an encoded bucket does not tell it."""
        if not looks_encoded(bucket):
            return label_of(bucket)
        for snapshot in self._agents(UserId.parse(bucket), None).values():
            for fact in snapshot.facts:
                label = Stored.of(fact).user_label
                if label is not None and _means(label, bucket):
                    self._snapshots.pop(bucket, None)  # it was read under another name of the user
                    return label
        return None

    def _agents(self, user: UserId, agent: AgentName | None) -> dict[AgentName, Snapshot]:
        agents = self._repository.list_agents(user.raw) if agent is None else (agent,)
        known = self._snapshots.setdefault(user.bucket, {})
        missing = [Scope(user, each) for each in agents if each not in known]
        if missing:
            for snapshot in self._repository.snapshots(missing):
                known[snapshot.scope.agent] = snapshot
        return {each: known[each] for each in agents}

    def _snapshot(self, scope: Scope) -> Snapshot:
        return self._agents(scope.user, scope.agent)[scope.agent]


def _identity(fact: Fact) -> tuple[str | None, str, str]:
    return fact.scope.user.bucket, fact.scope.agent, fact.id


def _means(label: str, bucket: str) -> bool:
    try:
        return user_of(label).bucket == bucket
    except InvalidNamespaceError:
        return False
