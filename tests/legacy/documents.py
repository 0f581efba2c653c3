"""Hypothesis strategies of version-1 documents, and short ways to read one."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from deermem import Fact, Scope
from deermem.format.legacy_v1 import LegacyDocument, LegacyFact, Refusal, decode_legacy
from deermem.model.fact import next_fact
from tests.legacy.samples import Document, document_bytes

SCOPE = Scope.of("alice")
NOW = "2026-07-19T00:00:00Z"
LAST_UPDATED = "2026-03-28T10:30:00Z"

# As Python's json wrote and read them: with lone surrogates, NaN, infinities and integers of any length.
TEXT = st.text(st.characters(), max_size=12)
NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, 10**150, -(10**150), 2**53, 0.5])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MOMENTS = st.sampled_from(
    [
        "2026-03-01T08:15:30Z",
        "2026-03-01T08:15:30+00:00Z",
        "2026-03-01 08:15",
        "2026-03-01",
        "soon",
        "",
        1772352930,
    ]
)
IDS = st.sampled_from(["fact_a", "fact_b", "FACT_A", "note:1", "事实", "", "readme", 7])
CONTENTS = st.sampled_from(["One.", "Two.", " One. ", "---\n# a", "\r\n\x85\u2028x", "", " "]) | TEXT


def _often(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return usual | usual | usual | JSON


_FACT_FIELDS = {
    "id": _often(IDS),
    "title": _often(TEXT | st.just("word " * 60)),
    "category": _often(st.sampled_from(["goal", "my own", "", "other"])),
    "categoryExtension": _often(st.just("my own")),
    "topics": _often(st.lists(TEXT, max_size=3) | TEXT),
    "confidence": _often(NUMBERS | st.sampled_from(["0.5", "2", "high"])),
    "status": _often(st.just("active")),
    "schemaVersion": _often(st.sampled_from([1, 2])),
    "source": _often(
        st.sampled_from(
            ["manual", "thread_1", {"type": "import"}, {"type": "conversation", "threadId": "t", "x": 1}]
        )
    ),
    "createdAt": _often(MOMENTS),
    "updatedAt": _often(MOMENTS),
    "revision": _often(st.integers(0, 3)),
    "consolidatedFrom": _often(st.lists(TEXT, max_size=3)),
    "consolidatedAt": _often(MOMENTS),
    "expected_valid_days": _often(st.integers(-1, 90) | st.just("30")),
    "sourceError": _often(TEXT),
    "lastConfirmedAt": _often(MOMENTS),
    "confirmationCount": _often(st.integers(0, 3)),
    "scope": _often(st.sampled_from([{"userId": "alice", "agentName": "__default__"}, {"userId": "bob"}])),
    "user_id": _often(st.sampled_from(["alice", "bob"])),
    "agent_name": _often(st.sampled_from(["__default__", "coder"])),
    "legacyTitle": JSON,
    "color": JSON,
}
FACTS: st.SearchStrategy[Document] = st.builds(
    lambda fields, content, unknown: {**unknown, **fields, "content": content},
    st.fixed_dictionaries({}, optional=_FACT_FIELDS),
    _often(CONTENTS),
    st.dictionaries(TEXT, JSON, max_size=2),
)
REFERENCES = st.fixed_dictionaries(
    {"path": _often(st.sampled_from(["facts/fa/fact_a.md", "../fact_a.md", "/fact_a.md"]))},
    optional={"contentHash": _often(st.sampled_from(["", "sha256:" + "a" * 64])), "revision": JSON},
)
SECTIONS = _often(
    TEXT
    | st.fixed_dictionaries(
        {}, optional={"summary": _often(TEXT), "updatedAt": _often(MOMENTS), "weight": JSON}
    )
)
_SUMMARIES = _often(
    st.dictionaries(
        st.sampled_from(["workContext", "topOfMind", "earlierContext", "own"]) | TEXT, SECTIONS, max_size=3
    )
)
FACT_LISTS = st.lists(_often(FACTS), max_size=6)
DOCUMENTS: st.SearchStrategy[Document] = st.builds(
    lambda unknown, fields: {**unknown, **fields},
    st.dictionaries(TEXT, JSON, max_size=2),
    st.fixed_dictionaries(
        {
            "facts": FACT_LISTS
            | FACT_LISTS
            | st.dictionaries(
                _often(IDS.map(str)).filter(lambda k: isinstance(k, str)), REFERENCES, max_size=3
            )
        },
        optional={
            "version": st.sampled_from([None, "1.0", "1", 1, 1.0, "2.0"]),
            "revision": _often(st.integers(0, 9)),
            "lastUpdated": _often(MOMENTS),
            "user": _SUMMARIES,
            "history": _SUMMARIES,
        },
    ),
)


def decode(document: Any, scope: Scope = SCOPE, now: str = NOW) -> LegacyDocument:
    """Reads a document as it would stand in a file."""
    return decode_legacy(document_bytes_of(document), "memory.json", scope, now)


def document_bytes_of(document: Any) -> bytes:
    """Returns JSON of any value, as the predecessor wrote it; lone surrogates are escaped."""
    try:
        return document_bytes(document)
    except UnicodeEncodeError:
        return json.dumps(document).encode("ascii")


def read(**fields: Any) -> LegacyDocument:
    """Reads a document with one fact of these fields."""
    fact = {"id": "fact_a", "content": "One.", **fields}
    return decode({"version": "1.0", "lastUpdated": LAST_UPDATED, "facts": [fact]})


def fact_of(document: LegacyDocument) -> LegacyFact:
    """Returns the one fact of a document in which nothing was refused."""
    assert document.refusals == ()
    [fact] = document.facts
    return fact


def refusal_of(document: LegacyDocument) -> Refusal:
    """Returns the one refusal of a document."""
    [refusal] = document.refusals
    return refusal


def stored(fact: LegacyFact, scope: Scope = SCOPE) -> Fact:
    """Returns the fact that a migration would store."""
    return next_fact(fact.draft, scope, NOW, None)


def kept(fact: LegacyFact) -> dict[str, Any]:
    """Returns the keys that are kept beside the fields."""
    return {extra.key: json.loads(extra.json) for extra in fact.draft.extra or ()}


def short(value: object) -> str:
    """Names a test's argument so that `1` and `"1"` differ."""
    return f"{type(value).__name__} {value!r:.30}"
