"""Facts and queries that adapters are tested with, and how the store would hand them over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deermem.model.fact import Fact, FactDraft, next_fact
from deermem.model.identity import FactId, Scope
from deermem.search.port import DEFAULT_MODE, NO_FILTERS, AdapterHit, IndexRecord, RetrievalAdapter

HERE: Final = Scope.of("alice")
OTHER_AGENT: Final = Scope.of("alice", "research-agent")
OTHER_USER: Final = Scope.of("bob")
ELSEWHERE: Final = (OTHER_AGENT, OTHER_USER)

SCRIPTS: Final = (
    "喜欢在早上喝绿茶",
    "夕方に散歩するのが好き",
    "يفضل القهوة بدون سكر",
    "מעדיף לעבוד בלילה",
    "ชอบอาหารรสเผ็ด",
    "Straße in Köln, cafe\u0301 in Orléans",
    "ships on Fridays 🦌🚢",
)
HOSTILE_TEXTS: Final = (
    '"',
    "'",
    '"unbalanced',
    "'; DROP TABLE facts; --",
    "%_%",
    "tea AND",
    "NOT",
    "NEAR(",
    "((((",
    "*",
    "tea*",
    "-tea",
    "content:tea",
    "[a-z",
    "(?P<x",
    "\\",
    "\x00",
    "a\x00b",
    "\u202e\u200b\ufeff",
    "🦌",
    "../../etc",
    "{tea} $tea ${tea}",
    "tea " * 5_000,
    "(" * 10_000,
)


def make_fact(fact_id: str, content: str, scope: Scope = HERE, **fields: Any) -> Fact:
    """Builds a fact at revision 1; `fields` are those of `FactDraft`."""
    draft = FactDraft(content=content, id=FactId(fact_id), **fields)
    return next_fact(draft, scope, "2026-07-19T00:00:00Z", None)


def record_of(fact: Fact, scope: Scope | None = None) -> IndexRecord:
    """Builds the record that a rebuild hands over for a fact."""
    scope = scope or fact.scope
    return IndexRecord(fact, scope, f"users/{scope.user}/agents/{scope.agent}/facts/00/{fact.id}.md")


def put(adapter: RetrievalAdapter, fact: Fact, scope: Scope | None = None) -> None:
    """Tells an adapter of a fact as the store does."""
    record = record_of(fact, scope)
    adapter.upsert(fact, scope=record.scope, path=record.path)


def find(
    adapter: RetrievalAdapter,
    query: str,
    scopes: Sequence[Scope] = (HERE,),
    *,
    top_k: int = 100,
    mode: str = DEFAULT_MODE,
    filters: Mapping[str, object] = NO_FILTERS,
) -> list[AdapterHit]:
    """Asks an adapter as the store does."""
    return list(adapter.search(query, scopes=scopes, top_k=top_k, mode=mode, filters=filters))


def ids(hits: list[AdapterHit]) -> list[FactId]:
    """Returns the ids of hits, in their order."""
    return [hit.fact_id for hit in hits]
