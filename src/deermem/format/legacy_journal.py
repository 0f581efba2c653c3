"""`.memory.journal.json` of the predecessor, which is read and never written.

    {"operationId": "…", "state": "prepared" | "committed", "agentName": "…" | null,
     "expectedRevision": 11, "nextRevision": 12, "factIds": ["…", …],
     "oldEntries": {id: {"path": "agents/{agent}/facts/{shard}/{id}.md"}, …}}

`factIds` names every fact that the operation touches, `oldEntries` those that were there before. Copies of
these and of `memory.json` lie in `.recovery/{operationId}/`.

The predecessor allowed ids of any length. An id too long for a file name stopped it after the journal was
written, for good; no file can have that name, so such an id is passed over here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from deermem.errors import Corruption, InvalidInputError
from deermem.format.layout import FACT_SUFFIX, fact_parts
from deermem.format.strict_json import load_object
from deermem.model.identity import AgentName, FactId, stored_agent_name
from deermem.model.rules import MAX_COUNT

MAX_LEGACY_JOURNAL_BYTES: Final = 8_000_000
_MAX_ENTRIES: Final = 100_000

_PREPARED: Final = "prepared"
_COMMITTED: Final = "committed"
_OPERATION = re.compile(r"[A-Za-z0-9_-]{1,128}")
_FACT_ID = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_ID: Final = 255 - len(FACT_SUFFIX)


@dataclass(frozen=True, slots=True)
class LegacyJournal:
    """Tells how far an operation of the predecessor came, and what it touches.

    `operation` is one plain path component. `old_paths` has the facts that were there before; every path is
    that of the fact, of this agent. Ids may be longer than version 2 allows, and one may be `readme`.
    """

    operation: str
    committed: bool
    agent: AgentName | None
    expected_revision: int
    next_revision: int
    fact_ids: tuple[FactId, ...]
    old_paths: Mapping[FactId, tuple[str, ...]]


def is_legacy_journal(document: Mapping[str, Any]) -> bool:
    """Tells whether a journal is the predecessor's."""
    return (
        "format" not in document
        and "operationId" in document
        and document.get("state") in (_PREPARED, _COMMITTED)
    )


def is_like_legacy_journal(data: bytes) -> bool:
    """Tells whether bytes can be the predecessor's journal of many facts, without parsing them."""
    return (
        len(data) <= MAX_LEGACY_JOURNAL_BYTES
        and b'"operationId"' in data
        and data.count(b"{") + data.count(b"[") <= _MAX_ENTRIES
    )


def decode_legacy_journal(data: bytes, path: str) -> LegacyJournal:
    """Reads a journal of the predecessor.

    Raises:
        Corruption: The document breaks a rule; the reason names the key.
    """
    if len(data) > MAX_LEGACY_JOURNAL_BYTES:
        raise Corruption(path, f"is larger than {MAX_LEGACY_JOURNAL_BYTES:,} bytes")
    document = load_object(data, path)
    if not is_legacy_journal(document):
        raise Corruption(path, "is no journal of the predecessor")
    try:
        return _read(document)
    except InvalidInputError as error:
        raise Corruption(path, str(error)) from None


def _read(document: Mapping[str, Any]) -> LegacyJournal:
    operation = document["operationId"]
    if not isinstance(operation, str) or not _OPERATION.fullmatch(operation):
        raise InvalidInputError("operationId", "is not a plain file name")
    agent, listed = _agent(document.get("agentName")), document.get("factIds")
    if listed and agent is None:
        raise InvalidInputError("agentName", "is missing")
    expected = _revision("expectedRevision", document.get("expectedRevision"))
    following = _revision("nextRevision", document.get("nextRevision"))
    if following != expected + 1:
        raise InvalidInputError("nextRevision", "is not the one after expectedRevision")
    fact_ids = _fact_ids(listed)
    old_paths = _old_paths(document.get("oldEntries"), agent)
    if not old_paths.keys() <= set(fact_ids):
        raise InvalidInputError("oldEntries", "has a fact that factIds does not name")
    committed = document["state"] == _COMMITTED
    return LegacyJournal(operation, committed, agent, expected, following, fact_ids, old_paths)


def _agent(value: Any) -> AgentName | None:
    if value is None:
        return None
    agent = stored_agent_name(value.lower()) if isinstance(value, str) else None
    if agent is None:
        raise InvalidInputError("agentName", "is no agent name")
    return agent


def _revision(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise InvalidInputError(name, "must be an integer of at least 0")
    return value


def _fact_ids(value: Any) -> tuple[FactId, ...]:
    if not isinstance(value, list):
        raise InvalidInputError("factIds", "must be a list")
    found: dict[FactId, None] = {}
    for number, item in enumerate(value):
        if not isinstance(item, str) or not _FACT_ID.fullmatch(item):
            raise InvalidInputError(f"factIds[{number}]", "is no fact id")
        if len(item) <= _LONGEST_ID:
            found[FactId(item)] = None
    return tuple(found)


def _old_paths(value: Any, agent: AgentName | None) -> Mapping[FactId, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise InvalidInputError("oldEntries", "must be an object")
    found: dict[FactId, tuple[str, ...]] = {}
    for key, entry in value.items():
        if agent is None or len(key) > _LONGEST_ID or not _FACT_ID.fullmatch(key):
            raise InvalidInputError("oldEntries", "has a key that is no fact id")
        parts = fact_parts(agent, FactId(key))
        if not isinstance(entry, dict) or entry.get("path") != "/".join(parts):
            raise InvalidInputError("oldEntries", f"{key} has a path that is not that of its fact")
        found[FactId(key)] = parts
    return MappingProxyType(found)
