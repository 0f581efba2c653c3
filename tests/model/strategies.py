"""Hypothesis strategies of the model's values, and short ways to build them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from deermem import Fact, FactDraft, Scope, Snapshot, Source
from deermem.model.fact import next_fact
from deermem.model.identity import FactId
from deermem.model.manifest import Manifest

SCOPE = Scope.of("alice")
NOW = "2026-07-19T00:00:00Z"
LATER = "2026-07-20T00:00:00Z"

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)
IDS = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True).map(FactId)
CONFIDENCES = st.floats(0, 1)
DRAFTS = st.builds(
    FactDraft,
    content=TEXT,
    id=IDS,
    category=st.sampled_from(["goal", "context", "my own"]),
    topics=st.lists(TEXT, max_size=2).map(tuple),
    confidence=CONFIDENCES,
    source=st.none() | st.sampled_from(["manual", "thread_1"]),
    consolidated_from=st.lists(IDS, max_size=2).map(tuple),
    expected_valid_days=st.none() | st.integers(1, 9),
    source_error=st.none() | TEXT,
)


def fact(fact_id: str, content: str = "text", **fields: Any) -> Fact:
    """Returns a stored fact at revision 1."""
    return next_fact(FactDraft(content, id=FactId(fact_id), **fields), SCOPE, NOW, None)


def snapshot(*facts: Fact, revision: int = 5) -> Snapshot:
    """Returns a snapshot of these facts."""
    return Snapshot.of(SCOPE, Manifest(revision, NOW), facts)


MANUAL = Source("manual")
