"""What reader and writer of fact documents share: the known keys, and values that are kept only once."""

from __future__ import annotations

from typing import Final

from deermem.model.fact import CONVERSATION, MANUAL_SOURCE, PLAIN_SOURCES, UNKNOWN_SOURCE, Source
from deermem.model.rules import CATEGORIES

SOURCE_KEYS: Final = frozenset(["type", "threadId"])
KNOWN_KEYS: Final = frozenset(
    [
        "id",
        "schemaVersion",
        "category",
        "categoryExtension",
        "topics",
        "confidence",
        "status",
        "user_id",
        "agent_name",
        "source",
        "createdAt",
        "updatedAt",
        "revision",
        "consolidatedFrom",
        "consolidatedAt",
        "expected_valid_days",
        "sourceError",
        "lastConfirmedAt",
        "confirmationCount",
    ]
)

# A cached fact refers to these objects instead of holding its own.
SHARED_CATEGORIES: Final = {category: category for category in sorted(CATEGORIES)}
SHARED_TYPES: Final = {name: name for name in (CONVERSATION, *sorted(PLAIN_SOURCES))}
SHARED_SOURCES: Final = {name: Source(name) for name in sorted(PLAIN_SOURCES)} | {
    source.type: source for source in (MANUAL_SOURCE, UNKNOWN_SOURCE)
}
