"""The retrieval port: what the store tells a search index, and what it takes back from one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from deermem.model.fact import Fact
from deermem.model.identity import FactId, Scope

DEFAULT_MODE: Final = "auto"
DEFAULT_TOP_K: Final = 10
MAX_TOP_K: Final = 1_000
NO_FILTERS: Final[Mapping[str, object]] = MappingProxyType({})
SUBSTRING: Final = "substring"


@dataclass(frozen=True, slots=True)
class IndexRecord:
    """Is one fact as a rebuild hands it to an adapter; the fields mean what they mean in `upsert`."""

    fact: Fact
    scope: Scope
    path: str


@dataclass(frozen=True, slots=True)
class AdapterHit:
    """Is what an adapter finds: where the fact lies, not what it says.

    The store looks the fact up itself, so an index that lags behind cannot show a deleted fact or one
    of another scope. `scope` is one of those that were asked for, `score` a finite number.
    """

    fact_id: FactId
    scope: Scope
    score: float
    match_type: str = "adapter"


@dataclass(frozen=True, slots=True)
class Hit:
    """Is one result of a search.

    `match_type` is `"substring"`, with the confidence as score, or what the adapter says.
    """

    fact: Fact
    score: float
    match_type: str


@runtime_checkable
class RetrievalAdapter(Protocol):
    """Indexes facts and finds them again.

    An adapter is called from several threads, never while the store holds a lock, and for the facts
    of one user never from two threads at once except to search. It may read from the store and
    write to it. When a method returns, the next search shows its effect. An exception never undoes
    a commit: the store logs it, searches by substring, and rebuilds the scope before the next search.

    A scope names its user by the bucket (`a-b-c-<digest>` for `a@b.c`), so that it is the same in
    every process. Index by this scope and not by that of the fact.
    """

    def upsert(self, fact: Fact, /, *, scope: Scope, path: str) -> None:
        """Adds a fact or replaces the one with its id in this scope.

        Args:
            fact: The fact as committed.
            scope: Where it lies.
            path: Its file below the storage root, with `/` between the parts.
        """
        ...

    def remove(self, fact_id: FactId, /, *, scope: Scope) -> None:
        """Forgets one fact; an unknown one is no error."""
        ...

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
        """Finds facts of these scopes and of no others, best first, at most `top_k` of them.

        Args:
            query: Any text that is not blank.
            scopes: Where to look; nowhere if empty.
            top_k: The limit, applied after the filters.
            mode: A wish such as `"auto"`; an adapter that does not know it searches as it always does.
            filters: What facts must match; `deermem.search.filters` says what it means.
        """
        ...

    def clear(self, *, scopes: Sequence[Scope]) -> None:
        """Forgets every fact of these scopes and of no others."""
        ...

    def rebuild(self, records: Iterable[IndexRecord], /, *, scopes: Sequence[Scope]) -> None:
        """Replaces all that is known of these scopes by the records, which can be read once.

        Every record lies in one of the scopes. Other scopes stay as they are.
        """
        ...

    def close(self) -> None:
        """Releases what the adapter holds; nothing but another `close` follows."""
        ...
