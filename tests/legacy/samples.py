"""What earlier releases kept in `memory.json`: whole documents, and facts of every looseness."""

from __future__ import annotations

import json
from typing import Any, Final

Document = dict[str, Any]

GERMAN: Final = "fact_1a2b3c4d"
FRIDAYS: Final = "fact_5e6f7a8b"
PYTHON: Final = "fact_9c0d1e2f"
LISBON: Final = "fact_c3d4e5f6"


def document_bytes(document: Any) -> bytes:
    """Returns JSON as every earlier release wrote it."""
    return json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8")


def summaries(**texts: str) -> Document:
    """Returns `user` and `history`, empty but for the sections that are named."""
    groups = {
        "user": ("workContext", "personalContext", "topOfMind"),
        "history": ("recentMonths", "earlierContext", "longTermBackground"),
    }
    return {
        group: {
            name: {
                "summary": texts.get(name, ""),
                "updatedAt": "2026-03-28T10:30:00Z" if name in texts else "",
            }
            for name in names
        }
        for group, names in groups.items()
    }


def v1_document(facts: Any, **texts: str) -> Document:
    """Returns a document of version 1.0."""
    return {
        "version": "1.0",
        "lastUpdated": "2026-03-28T10:30:00.123456Z",
        **summaries(**texts),
        "facts": facts,
    }


def v2_document(revision: int, **texts: str) -> Document:
    """Returns a document of version 2.0 without facts."""
    head = {"version": "2.0", "revision": revision, "lastUpdated": "2026-07-26T08:15:30.123456Z"}
    return {**head, **summaries(**texts)}


PLAIN_FACTS: Final[list[Document]] = [
    {
        "id": GERMAN,
        "content": "Prefers answers in German.",
        "category": "preference",
        "confidence": 0.95,
        "createdAt": "2026-03-01T08:15:30.123456Z",
        "source": "thread_42",
    },
    {
        "id": FRIDAYS,
        "content": "Never deploys on Fridays.",
        "category": "workflow",
        "confidence": 1,
        "createdAt": "2026-03-02T08:15:30Z",
        "source": "unknown",
    },
]


ENRICHED_FACTS: Final[list[Document]] = [
    {
        "id": PYTHON,
        "content": "Uses Python 3.12, nicht 3.11: für immer.",
        "category": "correction",
        "confidence": 0.9,
        "createdAt": "2026-06-01T08:15:30.123456Z",
        "source": "thread_44",
        "sourceError": "said 3.11",
        "expected_valid_days": 90,
    },
    {
        "id": LISBON,
        "content": "Lives in Lisbon.\n\nMoved there in 2024.",
        "category": "identity",
        "confidence": 0.8,
        "createdAt": "2026-05-01T08:15:30Z",
        "consolidatedAt": "2026-06-02T08:15:30.123456Z",
        "source": "consolidation",
        "consolidatedFrom": ["fact_old1", "fact_old2"],
    },
    {
        "id": GERMAN,
        "content": "Prefers answers in German.",
        "category": "preference",
        "confidence": 0.7,
        "createdAt": "2026-03-01T08:15:30Z",
        "source": "manual",
        "lastConfirmedAt": "2026-06-03T08:15:30Z",
        "confirmationCount": 3,
    },
]

# Every looseness of a version-1 fact that migrates without help (contract section 4, and beyond it).
LOOSE_FACTS: Final[list[Document]] = [
    {"id": "fact_loose01", "content": "null confidence", "confidence": None},
    {"id": "fact_loose02", "content": "a boolean as confidence", "confidence": True},
    {"id": "fact_loose03", "content": "a word as confidence", "confidence": "high"},
    {"id": "fact_loose04", "content": "a number in a string as confidence", "confidence": "0.75"},
    {"id": "fact_loose05", "content": "confidence in percent", "confidence": 85},
    {"id": "fact_loose06", "content": "negative confidence", "confidence": -0.5},
    {"id": "fact_loose07", "content": "no number as confidence", "confidence": float("nan")},
    {"content": "no id"},
    {"id": None, "content": "null id"},
    {"id": "", "content": "empty id"},
    {"id": 17, "content": "number as id"},
    {"id": "note:2026-03-01", "content": "colon in the id"},
    {"id": "事实一", "content": "Chinese id"},
    {"id": "x" * 129, "content": "long id"},
    {"id": "README", "content": "id of a note about the files"},
    {"id": "fact_loose16", "content": "no category"},
    {"id": "fact_loose17", "content": "null category", "category": None},
    {"id": "fact_loose18", "content": "empty category", "category": ""},
    {"id": "fact_loose19", "content": "own category", "category": "食べ物"},
    {"id": "fact_loose20", "content": "number as category", "category": 3},
    {"id": "fact_loose21", "content": "one string of topics", "topics": "python"},
    {"id": "fact_loose22", "content": "mixed topics", "topics": ["python", 3.12, None]},
    {"id": "fact_loose23", "content": "number as source", "source": 12345},
    {"id": "fact_loose24", "content": "structured source", "source": {"type": "manual", "threadId": None}},
    {"id": "fact_loose25", "content": "odd source", "source": {"type": "import-tool", "threadId": 7}},
    {"id": "fact_loose26", "content": "no time", "createdAt": ""},
    {"id": "fact_loose27", "content": "words as time", "createdAt": "last Tuesday"},
    {"id": "fact_loose28", "content": "double zone", "createdAt": "2026-03-01T08:15:30+00:00Z"},
    {"id": "fact_loose29", "content": "another zone", "createdAt": "2026-03-01T10:15:30+02:00"},
    {"id": "fact_loose30", "content": "no zone", "createdAt": "2026-03-01 08:15:30"},
    {"id": "fact_loose31", "content": "seconds as time", "createdAt": 1772352930},
    {"id": "fact_loose32", "content": "no days of validity", "expected_valid_days": 0},
    {"id": "fact_loose33", "content": "days of validity in words", "expected_valid_days": "a month"},
    {"id": "fact_loose34", "content": "days of validity in a string", "expected_valid_days": "30"},
    {"id": "fact_loose35", "content": "odd error", "sourceError": {"said": "3.11"}},
    {"id": "fact_loose36", "content": "one id as list", "consolidatedFrom": "fact_old1"},
    {"id": "fact_loose37", "content": "title of two lines", "title": "First\nsecond"},
    {"id": "fact_loose38", "content": "long title", "title": "word " * 60},
    {"id": "fact_loose39", "content": "  blanks around it \n"},
    {"id": "fact_loose40", "content": "# A heading\n---\nand a line of dashes"},
    {"id": "fact_loose41", "content": "unknown keys", "color": "green", "nested": {"a": [1, None, 2.5]}},
    {"id": "fact_loose42", "content": "huge number", "size": 10**200},
    {"id": "fact_loose43", "content": "line ends\r\nof\x85all\u2028kinds"},
    {
        "id": "fact_loose44",
        "content": "revision and change",
        "revision": 3,
        "updatedAt": "2026-03-09T00:00:00Z",
    },
]


# What version 2 cannot hold, and the field that a refusal names.
REFUSED_FACTS: Final[list[tuple[Any, str]]] = [
    ("a fact that is a string", ""),
    (None, ""),
    ({"id": "fact_none"}, "content"),
    ({"id": "fact_null", "content": None}, "content"),
    ({"id": "fact_blank", "content": " \n"}, "content"),
    ({"id": "fact_list", "content": ["a", "b"]}, "content"),
    ({"id": "fact_archived", "content": "Not active any more.", "status": "archived"}, "status"),
    ({"id": "fact_future", "content": "Of a later release.", "schemaVersion": 3}, "schemaVersion"),
    ({"id": GERMAN, "content": "Prefers answers in English."}, "id"),
]


AGENT_FACTS: Final[list[Document]] = [
    {
        "id": PYTHON,
        "content": "Uses Python 3.12, nicht 3.11: für immer.",
        "category": "correction",
        "confidence": 0.9,
        "createdAt": "2026-06-01T08:15:30.123456Z",
        "source": "thread_44",
    }
]
