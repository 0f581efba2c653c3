"""A fact of version 1 as the draft of a fact (contract section 4).

    field             what version 1 has                  becomes
    content           no string, blank, over the limit    refused
    id                missing or not allowed              `fact_` and 32 hex digits; `legacyId`
    title             several lines, over 160 characters  one line, cut; `legacyTitle`
    category          null, blank, no string              `context`; `legacyCategory`
    confidence        null, a boolean, no number          0.5; `legacyConfidence`
                      a number in a string                the number
                      out of range                        0 or 1; `legacyConfidence`
    topics,           one string                          a list of it
    consolidatedFrom  items that are no text              the others; the list as `legacyTopics`, …
    source            neither string nor mapping          `unknown`; `legacySource`
    createdAt         missing or not readable             the document's `lastUpdated`, else now
    status            anything but `active`               refused
    schemaVersion     above 2                             refused
    revision,         there or not                        `legacyRevision` if not 1, `legacyUpdatedAt` if
    updatedAt                                             not `createdAt`
    scope, user_id,   another scope than the document's   `legacyScope`, `legacyUserId`, `legacyAgentName`
    agent_name
    all others        not what the field can hold         nothing; `legacy…`

Null and blank mean missing. Unknown keys are kept. A fact that cannot be kept whole is refused whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.format.fact_fields import KNOWN_KEYS, SHARED_TYPES, SOURCE_KEYS
from deermem.format.legacy_document import LegacyFact
from deermem.format.legacy_json import kept_json, shown
from deermem.format.legacy_values import (
    Remainder,
    is_text,
    read_confidence,
    read_count,
    read_moment,
    read_text,
    read_texts,
    read_title,
)
from deermem.model.fact import (
    ACTIVE,
    CONVERSATION,
    SCHEMA_VERSION,
    UNKNOWN_SOURCE,
    ExtraField,
    FactDraft,
    Source,
)
from deermem.model.identity import FactId, Scope, is_fact_id, safe_user_id
from deermem.model.rules import DEFAULT_CATEGORY, OTHER, check_content

_FIELDS: Final = KNOWN_KEYS | {"title", "content", "scope"}


def read_legacy_fact(value: Any, place: str, scope: Scope, created_at: str | None) -> LegacyFact:
    """Reads one fact.

    Args:
        value: The fact as JSON.
        place: Where it stands in the document.
        scope: Whose fact it becomes.
        created_at: When it was created if it does not say so; `None` leaves that to the migration.

    Raises:
        InvalidInputError: Names the field for which it cannot become a fact.
    """
    if not isinstance(value, dict):
        raise InvalidInputError("", "is not an object")
    if not is_text(value.get("content")):
        raise InvalidInputError("content", "must be a non-empty string")
    content = check_content(value["content"])
    _check_live(value)
    rest = Remainder({*_FIELDS, *value})
    fact_id = value.get("id")
    if not is_fact_id(fact_id):
        rest.keep_original("id", fact_id)
        fact_id = generated_id(scope, fact_id, content)
    created_at = read_moment("createdAt", value.get("createdAt"), rest) or created_at
    consolidated_from = read_texts("consolidatedFrom", value.get("consolidatedFrom"), rest)
    consolidated_at = read_moment("consolidatedAt", value.get("consolidatedAt"), rest)
    title = read_title(value.get("title"), rest)
    draft = FactDraft(
        content,
        id=fact_id,
        title=title,
        category=_category(value, rest),
        topics=read_texts("topics", value.get("topics"), rest),
        confidence=read_confidence(value.get("confidence"), rest),
        source=_source(value.get("source"), rest),
        created_at=created_at,
        consolidated_from=consolidated_from,
        consolidated_at=consolidated_at or (created_at if consolidated_from else None),
        expected_valid_days=read_count("expected_valid_days", value.get("expected_valid_days"), rest),
        source_error=read_text("sourceError", value.get("sourceError"), rest),
        last_confirmed_at=read_moment("lastConfirmedAt", value.get("lastConfirmedAt"), rest),
        confirmation_count=read_count("confirmationCount", value.get("confirmationCount"), rest),
        extra=_extra(value, created_at, scope, rest),
    )
    return LegacyFact(place, draft, title is not None)


def generated_id(scope: Scope, original: Any, content: str, occurrence: int = 0) -> FactId:
    """Returns the id of a fact whose own is missing or not allowed.

    It is the same on every run, and whether the user is known by the raw id or by the bucket.

    Args:
        scope: Whose fact it becomes.
        original: The id that it had; missing ones and blank ones are all the same.
        content: The content as it will be stored.
        occurrence: Counts the facts before it that agree in all this and yet differ.
    """
    if not original or (isinstance(original, str) and not original.strip()):
        original = None
    parts = [scope.user.bucket or "", scope.agent, original, content]
    if occurrence:
        parts.append(occurrence)
    text = json.dumps(parts, separators=(",", ":"), sort_keys=True)
    return FactId(f"fact_{sha256(text.encode('ascii')).hexdigest()[:32]}")


def _check_live(value: Mapping[str, Any]) -> None:
    version = value.get("schemaVersion")
    if isinstance(version, int | float) and version > SCHEMA_VERSION:
        raise InvalidInputError("schemaVersion", f"is newer than {SCHEMA_VERSION}")
    if value.get("status") not in (None, "", ACTIVE):
        raise InvalidInputError("status", f"must be {ACTIVE}")


def _category(value: Mapping[str, Any], rest: Remainder) -> str:
    category = read_text("category", value.get("category"), rest)
    extension = read_text("categoryExtension", value.get("categoryExtension"), rest)
    if extension is not None and category in (None, OTHER):
        return extension
    if extension is not None:
        rest.keep_original("categoryExtension", extension)
    return category or DEFAULT_CATEGORY


def _source(value: Any, rest: Remainder) -> Source:
    if isinstance(value, dict):
        return _structured_source(value, rest)
    text = read_text("source", value, rest)
    return UNKNOWN_SOURCE if text is None else Source.parse(text)


def _structured_source(value: dict[str, Any], rest: Remainder) -> Source:
    thread = read_text("source", value.get("threadId"), Remainder(set()))
    kind = value.get("type")
    if kind in (None, ""):
        kind = CONVERSATION if thread else UNKNOWN_SOURCE.type
    sound = isinstance(kind, str) and kind in SHARED_TYPES and value.get("threadId") in (None, "", thread)
    if not sound:
        rest.keep_original("source", value)
        return Source(CONVERSATION, thread) if thread else UNKNOWN_SOURCE
    extra = [
        ExtraField(key, kept_json(f"source.{shown(key)}", item))
        for key, item in value.items()
        if key not in SOURCE_KEYS
    ]
    return Source(kind, thread, tuple(extra))


def _extra(
    value: Mapping[str, Any], created_at: str | None, scope: Scope, rest: Remainder
) -> tuple[ExtraField, ...]:
    """Returns the kept keys: first the unknown ones, then what the fields could not hold."""
    if value.get("schemaVersion") not in (None, 1, SCHEMA_VERSION):
        rest.keep_original("schemaVersion", value["schemaVersion"])
    if value.get("revision") != 1:
        rest.keep_original("revision", value.get("revision"))
    updated_at = read_moment("updatedAt", value.get("updatedAt"), rest)
    if updated_at not in (None, created_at):
        rest.keep_original("updatedAt", updated_at)
    _keep_scope(value, scope, rest)
    unknown = Remainder(set())
    for key, item in value.items():
        if key not in _FIELDS:
            unknown.keep(key, item)
    return (*unknown.fields, *rest.fields)


def _keep_scope(value: Mapping[str, Any], scope: Scope, rest: Remainder) -> None:
    named = value.get("scope")
    if not (
        isinstance(named, dict)
        and named.keys() <= {"userId", "agentName"}
        and _is_user(named.get("userId"), scope)
        and _is_agent(named.get("agentName"), scope)
    ):
        rest.keep_original("scope", named)
    if not _is_user(value.get("user_id"), scope):
        rest.keep_original("user_id", value["user_id"])
    if not _is_agent(value.get("agent_name"), scope):
        rest.keep_original("agent_name", value["agent_name"])


def _is_user(name: Any, scope: Scope) -> bool:
    if name is None:
        return True
    try:
        return safe_user_id(name) == scope.user.bucket
    except InvalidInputError:
        return False


def _is_agent(name: Any, scope: Scope) -> bool:
    return name is None or (isinstance(name, str) and name.lower() == scope.agent)
