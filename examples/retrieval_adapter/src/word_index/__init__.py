"""Finds facts by their words, in memory: a complete retrieval adapter for DeerMem."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence

from deermem.model.fact import Fact
from deermem.model.identity import FactId, Scope
from deermem.search.filters import fact_filter
from deermem.search.port import AdapterHit, IndexRecord

_WORD = re.compile(r"\w+")
_Entry = tuple[Fact, frozenset[str]]


class WordIndex:
    """Ranks facts by how many words of the query they contain, then by confidence.

    One lock guards everything. It is never held while the store is called, so it cannot deadlock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scopes: dict[Scope, dict[FactId, _Entry]] = {}

    def upsert(self, fact: Fact, /, *, scope: Scope, path: str) -> None:  # noqa: ARG002 - facts come whole
        """Indexes a fact under its id, in place of an older version."""
        entry = _entry_of(fact)
        with self._lock:
            self._scopes.setdefault(scope, {})[fact.id] = entry

    def remove(self, fact_id: FactId, /, *, scope: Scope) -> None:
        """Forgets a fact if it is there."""
        with self._lock:
            self._scopes.get(scope, {}).pop(fact_id, None)

    def search(
        self,
        query: str,
        /,
        *,
        scopes: Sequence[Scope],
        top_k: int,
        mode: str,  # noqa: ARG002 - there is only one way to search here
        filters: Mapping[str, object],
    ) -> list[AdapterHit]:
        """Scores each fact that matches the filters by the share of the query's words in it."""
        wanted, accepts = _words(query), fact_filter(filters)
        with self._lock:
            entries = [(scope, entry) for scope in scopes for entry in self._scopes.get(scope, {}).values()]
        ranked = []
        for scope, (fact, words) in entries:
            shared = len(wanted & words)
            if shared and accepts(fact):
                hit = AdapterHit(fact.id, scope, shared / len(wanted), match_type="words")
                ranked.append((-hit.score, -fact.confidence, fact.id, hit))
        ranked.sort(key=lambda each: each[:3])
        return [each[3] for each in ranked[:top_k]]

    def clear(self, *, scopes: Sequence[Scope]) -> None:
        """Forgets these scopes."""
        with self._lock:
            for scope in scopes:
                self._scopes.pop(scope, None)

    def rebuild(self, records: Iterable[IndexRecord], /, *, scopes: Sequence[Scope]) -> None:
        """Indexes the records, then puts them in place of what these scopes held."""
        fresh: dict[Scope, dict[FactId, _Entry]] = {scope: {} for scope in scopes}
        for record in records:
            fresh[record.scope][record.fact.id] = _entry_of(record.fact)
        with self._lock:
            self._scopes.update(fresh)

    def close(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._scopes.clear()


def _entry_of(fact: Fact) -> _Entry:
    return fact, _words(f"{fact.title} {fact.content}")


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
