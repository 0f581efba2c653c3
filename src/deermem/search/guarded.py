"""Calls a retrieval adapter so that nothing it does can hurt the caller."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from deermem.format.layout import bucket_parts, fact_parts
from deermem.model.changes import Delta
from deermem.model.fact import Fact
from deermem.model.identity import AgentName, FactId, Scope, UserId
from deermem.model.snapshot import Snapshot
from deermem.search.port import MAX_TOP_K, AdapterHit, IndexRecord, RetrievalAdapter

_logger = logging.getLogger(__name__)


def index_scope(scope: Scope) -> Scope:
    """Returns the scope as adapters know it: the user is named by the bucket.

    A bucket can be reached by two ids, the raw one and the encoded one, also from two processes. To
    an index they are one user.
    """
    bucket = scope.user.bucket
    return scope if scope.user.raw == bucket else Scope(UserId(bucket, bucket), scope.agent)


class GuardedAdapter:
    """Wraps an adapter: its exceptions become a line in the log and an answer that says "failed".

    The log names the scope and the class of the exception. Its message is left out, because it may
    quote what was indexed.
    """

    def __init__(self, adapter: RetrievalAdapter) -> None:
        self._adapter = adapter
        self._calls = _Calls()
        self.name = type(adapter).__qualname__

    @property
    def inside(self) -> bool:
        """Whether this thread is in the middle of a call, so that the adapter itself is the caller."""
        return self._calls.depth > 0

    def follow(self, user: UserId, delta: Delta, agents: set[AgentName]) -> set[AgentName]:
        """Tells what a commit changed in the scopes of some agents.

        Cleared scopes are told as a whole, the others fact by fact up to the first failure.

        Returns:
            The agents for which all went well.
        """
        cleared = agents.intersection(delta.cleared)
        scopes = {agent: index_scope(Scope(user, agent)) for agent in sorted(agents)}
        if cleared and self.clear(scope for agent, scope in scopes.items() if agent in cleared):
            scopes = {agent: scope for agent, scope in scopes.items() if agent not in cleared}
        deleted: dict[AgentName, list[FactId]] = {}
        for agent, fact_id in delta.deleted:
            if agent not in cleared:
                deleted.setdefault(agent, []).append(fact_id)
        written: dict[AgentName, list[Fact]] = {}
        for fact in delta.written:
            written.setdefault(fact.scope.agent, []).append(fact)
        return {
            agent
            for agent, scope in scopes.items()
            if self._change(scope, deleted.get(agent, ()), written.get(agent, ()))
        }

    def clear(self, scopes: Iterable[Scope]) -> str:
        """Forgets scopes of one user; returns the class of the error, empty if it worked."""
        known = [index_scope(scope) for scope in scopes]
        return self._attempt("clear", known, lambda: self._adapter.clear(scopes=known))

    def _change(self, scope: Scope, deleted: Iterable[FactId], written: Iterable[Fact]) -> bool:
        def tell() -> None:
            for fact_id in deleted:
                self._adapter.remove(fact_id, scope=scope)
            for fact in written:
                self._adapter.upsert(fact, scope=scope, path=_path_of(fact, scope))

        return not self._attempt("follow a commit in", [scope], tell)

    def rebuild(self, snapshot: Snapshot) -> str:
        """Replaces one scope by a snapshot; returns the class of the error, empty if it worked."""
        scope = index_scope(snapshot.scope)
        records = (IndexRecord(fact, scope, _path_of(fact, scope)) for fact in snapshot.facts)
        return self._attempt("rebuild", [scope], lambda: self._adapter.rebuild(records, scopes=[scope]))

    def search(
        self, query: str, scopes: Sequence[Scope], top_k: int, mode: str, filters: Mapping[str, object]
    ) -> list[AdapterHit] | None:
        """Returns what the adapter finds; `None` if it fails or answers with something else than hits."""
        found: list[AdapterHit] = []

        def ask() -> None:
            answer = self._adapter.search(query, scopes=scopes, top_k=top_k, mode=mode, filters=filters)
            found.extend(_check_hit(hit) for hit in islice(answer, MAX_TOP_K))

        return None if self._attempt("search", scopes, ask) else found

    def close(self) -> None:
        """Closes the adapter."""
        self._attempt("close", [], self._adapter.close)

    def _attempt(self, task: str, scopes: Sequence[Scope], call: Callable[[], None]) -> str:
        self._calls.depth += 1
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever foreign code raises, the commit stands
            reason = type(error).__name__
            where = ", ".join(map(str, scopes))
            _logger.warning("retrieval adapter %s failed to %s %s: %s", self.name, task, where, reason)
            return reason
        else:
            return ""
        finally:
            self._calls.depth -= 1


class _Calls(threading.local):
    depth = 0


def _path_of(fact: Fact, scope: Scope) -> str:
    return "/".join((*bucket_parts(scope.user), *fact_parts(scope.agent, fact.id)))


def _check_hit(hit: object) -> AdapterHit:
    if not (
        isinstance(hit, AdapterHit)
        and isinstance(hit.fact_id, str)
        and isinstance(hit.match_type, str)
        and math.isfinite(hit.score)
    ):
        raise TypeError("not an AdapterHit with a finite score")
    scope = index_scope(hit.scope)
    hash(scope)
    return replace(hit, scope=scope)
