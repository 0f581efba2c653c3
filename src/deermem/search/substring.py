"""The substring search: what a search is without an adapter, and whenever an adapter fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import nsmallest
from typing import Any, Final
from unicodedata import is_normalized, normalize

from deermem.errors import InvalidInputError
from deermem.model.fact import Fact
from deermem.model.rules import check_utf8
from deermem.model.snapshot import Snapshot
from deermem.search.filters import fact_filter
from deermem.search.port import MAX_TOP_K, NO_FILTERS, SUBSTRING, Hit

MAX_QUERY_BYTES: Final = 100_000


def check_query(query: Any) -> str:
    """Returns the query without white space at both ends.

    Raises:
        InvalidInputError: It is no text, blank, or too long.
    """
    if not isinstance(query, str) or not query.strip():
        raise InvalidInputError("query", "must be a non-empty string")
    if check_utf8("query", query) > MAX_QUERY_BYTES:
        raise InvalidInputError("query", f"is larger than {MAX_QUERY_BYTES:,} bytes")
    return query.strip()


def check_top_k(top_k: Any) -> int:
    """Returns the limit of a search.

    Raises:
        InvalidInputError: It is not an integer from 1 to 1,000.
    """
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MAX_TOP_K:
        raise InvalidInputError("top_k", f"must be an integer from 1 to {MAX_TOP_K:,}")
    return top_k


def substring_search(
    snapshots: Iterable[Snapshot], query: str, top_k: int, filters: Mapping[str, object] = NO_FILTERS
) -> list[Hit]:
    """Finds the facts whose content or title contains the query, in any case.

    The highest confidence comes first, equals in the order of their ids. Filters are applied before
    `top_k`. Text that only differs in how Unicode composes its characters is the same text.

    Raises:
        InvalidInputError: The query, the limit or a filter breaks its rule.
    """
    wanted, limit, accepts = _fold(check_query(query)), check_top_k(top_k), fact_filter(filters)
    found = (
        fact
        for snapshot in snapshots
        for fact in snapshot.facts
        if accepts(fact) and (wanted in _fold(fact.content) or wanted in _fold(fact.title))
    )
    return [Hit(fact, fact.confidence, SUBSTRING) for fact in nsmallest(limit, found, key=_rank)]


def _rank(fact: Fact) -> tuple[float, str, str, str]:
    return -fact.confidence, fact.id, fact.scope.user.bucket or "", fact.scope.agent


def _fold(text: str) -> str:
    folded = text.casefold()
    return folded if folded.isascii() or is_normalized("NFC", folded) else normalize("NFC", folded)
