"""`.memory.journal.json` of the predecessor, which is read and never written.

    {"operationId": "…", "state": "prepared" | "committed", "agentName": "…" | null,
     "expectedRevision": 11, "nextRevision": 12, "factIds": ["…", …],
     "oldEntries": {id: {"path": "agents/{agent}/facts/{shard}/{id}.md"}, …}}

`factIds` names every fact that the operation touches, `oldEntries` those that were there before. Copies of
these and of `memory.json` lie in `.recovery/{operationId}/`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from deermem.errors import Corruption, InvalidInputError
from deermem.format.layout import parse_fact_parts
from deermem.format.strict_json import load_object
from deermem.model.identity import AgentName, FactId, parse_fact_id, stored_agent_name
from deermem.model.rules import MAX_COUNT

MAX_LEGACY_JOURNAL_BYTES: Final = 32_000_000

_PREPARED: Final = "prepared"
_COMMITTED: Final = "committed"
_OPERATION = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True, slots=True)
class LegacyJournal:
    """Tells how far an operation of the predecessor came, and what it touches.

    `operation` is one plain path component. `old_paths` has the facts that were there before; every path is
    that of the fact, of this agent.
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
    agent = _agent(document.get("agentName"))
    expected = _revision("expectedRevision", document.get("expectedRevision"))
    following = _revision("nextRevision", document.get("nextRevision"))
    if following != expected + 1:
        raise InvalidInputError("nextRevision", "is not the one after expectedRevision")
    fact_ids = _fact_ids(document.get("factIds"))
    old_paths = _old_paths(document.get("oldEntries"), agent)
    if fact_ids and agent is None:
        raise InvalidInputError("agentName", "is missing")
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
        try:
            found[parse_fact_id(item)] = None
        except InvalidInputError as error:
            raise InvalidInputError(f"factIds[{number}]", error.reason) from None
    return tuple(found)


def _old_paths(value: Any, agent: AgentName | None) -> Mapping[FactId, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise InvalidInputError("oldEntries", "must be an object")
    found: dict[FactId, tuple[str, ...]] = {}
    for key, entry in value.items():
        path = entry.get("path") if isinstance(entry, dict) else None
        parts = tuple(path.split("/")) if isinstance(path, str) else ()
        if parse_fact_parts(parts) != (agent, key):
            raise InvalidInputError("oldEntries", "has a path that is not that of its fact")
        found[FactId(key)] = parts
    return MappingProxyType(found)
