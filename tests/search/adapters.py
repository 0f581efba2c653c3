"""An adapter that keeps every rule, for tests to break, watch or hold up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from deermem.model.fact import Fact
from deermem.model.identity import FactId, Scope
from deermem.search.filters import fact_filter
from deermem.search.port import AdapterHit, IndexRecord


class DictAdapter:
    """Keeps facts in a dictionary and finds those that contain the query."""

    def __init__(self) -> None:
        self.facts: dict[tuple[Scope, FactId], Fact] = {}
        self.closed = 0

    def upsert(self, fact: Fact, /, *, scope: Scope, path: str) -> None:
        assert path.endswith(f"{fact.id}.md")
        self.facts[scope, fact.id] = fact

    def remove(self, fact_id: FactId, /, *, scope: Scope) -> None:
        self.facts.pop((scope, fact_id), None)

    def search(
        self,
        query: str,
        /,
        *,
        scopes: Sequence[Scope],
        top_k: int,
        mode: str,
        filters: Mapping[str, object],
    ) -> Iterable[AdapterHit]:
        assert mode
        accepts, wanted = fact_filter(filters), query.casefold()
        found = [
            AdapterHit(fact.id, scope, fact.confidence)
            for (scope, _), fact in list(self.facts.items())
            if scope in scopes and accepts(fact) and wanted in fact.content.casefold()
        ]
        return sorted(found, key=lambda hit: -hit.score)[:top_k]

    def clear(self, *, scopes: Sequence[Scope]) -> None:
        for key in [key for key in list(self.facts) if key[0] in scopes]:
            self.facts.pop(key, None)

    def rebuild(self, records: Iterable[IndexRecord], /, *, scopes: Sequence[Scope]) -> None:
        self.clear(scopes=scopes)
        for record in records:
            self.facts[record.scope, record.fact.id] = record.fact

    def close(self) -> None:
        self.closed += 1
