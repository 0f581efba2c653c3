"""What an imported document may say, as JSON Schema: for readers and programs.

The store itself checks documents, and names what breaks a rule.
"""

from __future__ import annotations

from typing import Any, Final

from deermem.model.fact import ACTIVE, SCHEMA_VERSION
from deermem.model.identity import MAX_FACT_ID
from deermem.model.rules import MAX_CONTENT_BYTES, MAX_COUNT, MAX_LIST_ITEMS, MAX_TEXT, MAX_TITLE
from deermem.model.summaries import MAX_SUMMARY_BYTES

Schema = dict[str, Any]

NOT_BLANK: Final = r"\S"


# No `maxLength`: programs that make examples of it and a pattern choke on numbers of this size.
CONTENT: Final[Schema] = {
    "description": f"Not blank, and at most {MAX_CONTENT_BYTES:,} bytes.",
    "pattern": NOT_BLANK,
}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT: Final[Schema] = {"type": "string", "maxLength": MAX_TEXT, "pattern": NOT_BLANK}
# An empty one counts as none.
_OPTIONAL_TEXT: Final[Schema] = {"anyOf": [_TEXT, {"const": ""}]}
_SOURCE: Final[Schema] = {
    "anyOf": [
        _TEXT,
        {"const": ""},
        {"type": "object", "properties": dict.fromkeys(("type", "threadId"), _or_null(_OPTIONAL_TEXT))},
    ]
}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT, "maxItems": MAX_LIST_ITEMS}
_TIME: Final[Schema] = {"type": "string", "anyOf": [{"format": "date-time"}, {"const": ""}]}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": MAX_COUNT}

_FACT_KEYS: Final[dict[str, Schema]] = {
    "id": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": MAX_FACT_ID},
    "title": {"type": "string", "pattern": r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$", "maxLength": MAX_TITLE},
    "category": _TEXT,
    "categoryExtension": {"description": "Counts where the category is other, or there is none."},
    "topics": _TEXTS,
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    "source": _SOURCE,
    "sourceError": _OPTIONAL_TEXT,
    "createdAt": _TIME,
    "consolidatedAt": _TIME,
    "lastConfirmedAt": _TIME,
    "consolidatedFrom": _TEXTS,
    "confirmationCount": _COUNT,
    "expected_valid_days": _COUNT,
    "schemaVersion": {"enum": [1, SCHEMA_VERSION]},
    "status": {"const": ACTIVE},
}
FACTS: Final[Schema] = {
    "description": "The ids must differ. Keys that no fact has are kept.",
    "items": {
        "type": "object",
        "required": ["content"],
        "properties": {
            "content": {"type": "string", **CONTENT},
            **{key: _or_null(schema) for key, schema in _FACT_KEYS.items()},
        },
    },
}


def sections(*names: str) -> Schema:
    """Returns the schema of a group of summaries; others are ignored."""
    summary = {"type": "string", "maxLength": MAX_SUMMARY_BYTES}
    section = {
        "anyOf": [
            summary,
            {
                "type": "object",
                "properties": {"summary": _or_null(summary), "updatedAt": _or_null(_TIME)},
            },
            {"type": "null"},
        ]
    }
    return {"properties": dict.fromkeys(names, section)}
