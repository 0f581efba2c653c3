"""An adapter that remembers what it was told and does on request what adapters must not do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deermem.model.fact import Fact
from deermem.model.identity import FactId, Scope
from deermem.search.port import AdapterHit, IndexRecord
from tests.search.adapters import DictAdapter


class WatchedAdapter(DictAdapter):
    """Writes each call into `calls`, then runs what `before` holds for the method.

    `answer` replaces what a search finds. `clashes` counts calls that change a user's index while
    another one does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []
        self.before: dict[str, Callable[[], object]] = {}
        self.answer: Any = None
        self.clashes = 0
        self._at_it: dict[str | None, int] = {}
        self._guard = threading.Lock()

    def told(self, method: str) -> list[tuple[Any, ...]]:
        """Returns the arguments of all calls of one method."""
        return [call[1:] for call in self.calls if call[0] == method]

    def upsert(self, fact: Fact, /, *, scope: Scope, path: str) -> None:
        self._note([scope], "upsert", fact.id, scope, path)
        super().upsert(fact, scope=scope, path=path)
        self._leave([scope])

    def remove(self, fact_id: FactId, /, *, scope: Scope) -> None:
        self._note([scope], "remove", fact_id, scope)
        super().remove(fact_id, scope=scope)
        self._leave([scope])

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
        self._note([], "search", query, tuple(scopes), top_k, mode, dict(filters))
        if self.answer is not None:
            return self.answer  # type: ignore[no-any-return]  # garbage is what it is for
        return super().search(query, scopes=scopes, top_k=top_k, mode=mode, filters=filters)

    def clear(self, *, scopes: Sequence[Scope]) -> None:
        self._note(scopes, "clear", tuple(scopes))
        super().clear(scopes=scopes)
        self._leave(scopes)

    def rebuild(self, records: Iterable[IndexRecord], /, *, scopes: Sequence[Scope]) -> None:
        given = list(records)
        paths = tuple((record.fact.id, record.scope, record.path) for record in given)
        self._note(scopes, "rebuild", paths, tuple(scopes))
        super().clear(scopes=scopes)
        for record in given:
            self.facts[record.scope, record.fact.id] = record.fact
        self._leave(scopes)

    def close(self) -> None:
        self._note([], "close")
        super().close()

    def _note(self, scopes: Sequence[Scope], method: str, *arguments: Any) -> None:
        self.calls.append((method, *arguments))
        if method in self.before:
            self.before[method]()
        with self._guard:
            for scope in scopes:
                bucket = scope.user.bucket
                self._at_it[bucket] = self._at_it.get(bucket, 0) + 1
                self.clashes += self._at_it[bucket] > 1

    def _leave(self, scopes: Sequence[Scope]) -> None:
        with self._guard:
            for scope in scopes:
                self._at_it[scope.user.bucket] -= 1
