"""Documents to drafts and summaries, for what somebody else wrote.

`None` means that nothing is said. Whose the memory is comes from the call, so a `scope` in a document is
ignored, and so are revisions and the time of the last change. Keys that no fact has are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.format.fact_fields import KNOWN_KEYS
from deermem.format.fact_markdown import encode_fact
from deermem.format.strict_json import dump_compact
from deermem.model.fact import (
    ACTIVE,
    CONVERSATION,
    SCHEMA_VERSION,
    UNKNOWN_SOURCE,
    ExtraField,
    FactDraft,
    Source,
    next_fact,
)
from deermem.model.identity import FactId, Scope
from deermem.model.manifest import MANIFEST_VERSION
from deermem.model.rules import OTHER, check_optional_text, check_utf8
from deermem.model.summaries import (
    MAX_SUMMARY_BYTES,
    SECTIONS,
    Section,
    SectionKey,
    Summaries,
    SummaryPatch,
)

MAX_EXTRA_DEPTH: Final = 50
MAX_EXTRA_ITEMS: Final = 10_000
MAX_EXTRA_INTEGER: Final = 10**100

DOCUMENT_PARTS: Final = ("version", "user", "history", "facts")
_VERSIONS: Final = (None, "1.0", MANIFEST_VERSION)
_DRAFT_FIELDS: Final = {
    "id": "id",
    "title": "title",
    "content": "content",
    "topics": "topics",
    "confidence": "confidence",
    "createdAt": "created_at",
    "consolidatedFrom": "consolidated_from",
    "consolidatedAt": "consolidated_at",
    "expected_valid_days": "expected_valid_days",
    "sourceError": "source_error",
    "lastConfirmedAt": "last_confirmed_at",
    "confirmationCount": "confirmation_count",
}
_NOT_EXTRA: Final = KNOWN_KEYS | _DRAFT_FIELDS.keys() | {"scope"}
_SOME_TIME: Final = "1970-01-01T00:00:00Z"


def read_document(document: Any) -> tuple[tuple[FactDraft, ...], Summaries]:
    """Reads a whole document: what its facts propose, and all six summaries, empty where it has none.

    Other keys of it, and summaries of other names, are left out. Where it has nothing but those it is
    something else: taken for an empty document it would delete a memory.

    Raises:
        InvalidInputError: Names the value that breaks its rule, such as `facts[3].confidence`.
    """
    document = _mapping("memory_data", document)
    if all(document.get(part) is None for part in DOCUMENT_PARTS):
        raise InvalidInputError("memory_data", f"must have at least one of {', '.join(DOCUMENT_PARTS)}")
    version = document.get("version")
    if not isinstance(version, str | None) or version not in _VERSIONS:
        raise InvalidInputError("version", f"is not one of 1.0, {MANIFEST_VERSION}")
    return read_facts(document.get("facts"), "facts"), read_summaries(document)


def read_facts(documents: Any, name: str) -> tuple[FactDraft, ...]:
    """Reads a list of facts, in which no id occurs twice.

    Raises:
        InvalidInputError: Names the place and the key, such as `facts[3].confidence`.
    """
    if documents is None:
        return ()
    if isinstance(documents, str | bytes) or not isinstance(documents, Sequence):
        raise InvalidInputError(name, "must be a list")
    drafts: list[FactDraft] = []
    places: dict[str, int] = {}
    for place, document in enumerate(documents):
        with located(f"{name}[{place}]"):
            draft = _read_fact(_mapping("", document))
            if draft.id is not None and places.setdefault(draft.id, place) != place:
                raise InvalidInputError("id", f"is the id of {name}[{places[draft.id]}] too")
        drafts.append(draft)
    return tuple(drafts)


def _read_fact(document: Mapping[str, Any]) -> FactDraft:
    if document.get("schemaVersion") not in (None, 1, SCHEMA_VERSION):
        raise InvalidInputError("schemaVersion", f"is not one of 1, {SCHEMA_VERSION}")
    if document.get("status") not in (None, ACTIVE):
        raise InvalidInputError("status", f"must be {ACTIVE}")
    extra = tuple(_read_extra(document))
    draft = FactDraft(**{"content": None, **read_changes(document), "extra": extra})
    if extra:  # what no fact document can hold is found here, where its place is known
        encode_fact(next_fact(draft.with_id(draft.id or FactId("x")), Scope.of(None), _SOME_TIME, None))
    return draft


def _read_extra(document: Mapping[str, Any]) -> Iterator[ExtraField]:
    for key, value in document.items():
        if not isinstance(key, str):
            raise InvalidInputError("", "has a key that is no string")
        if key not in _NOT_EXTRA:
            yield ExtraField(key, _json(key, value))


def read_changes(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a document says of a fact, as fields of `FactDraft`, and nothing of the others.

    Raises:
        InvalidInputError: The source has a wrong shape; all else is left to `FactDraft`.
    """
    changes = {field: document[key] for key, field in _DRAFT_FIELDS.items() if document.get(key) is not None}
    category, extension = document.get("category"), document.get("categoryExtension")
    if extension is not None and category in (None, OTHER):
        category = extension
    if category is not None:
        changes["category"] = category
    if document.get("source") is not None:
        changes["source"] = _read_source(document["source"])
    return changes


def _read_source(value: Any) -> Source:
    """Reads the historical string, or a mapping as fact documents have it."""
    if not isinstance(value, Mapping):
        return Source.parse(value)
    thread = check_optional_text("source.threadId", value.get("threadId"))
    kind = check_optional_text("source.type", value.get("type"))
    return Source(kind or (CONVERSATION if thread else UNKNOWN_SOURCE.type), thread)


def read_summaries(document: Mapping[str, Any]) -> Summaries:
    """Reads `user` and `history`; what is missing is empty, and unknown summaries are ignored.

    Raises:
        InvalidInputError: Names the key, such as `user.workContext.summary`.
    """
    sections: dict[SectionKey, Section] = {}
    for group, names in SECTIONS.items():
        if document.get(group) is None:
            continue
        children = _mapping(group, document[group])
        for name in names:
            if children.get(name) is not None:
                sections[group, name] = _read_section(group, name, children[name])
    return Summaries.of(sections)


def _read_section(group: str, name: str, value: Any) -> Section:
    where = f"{group}.{name}"
    value = {"summary": value} if isinstance(value, str) else _mapping(where, value)
    known = {key: value.get(key) for key in ("summary", "updatedAt")}
    try:
        section = SummaryPatch.parse({group: {name: known}}).sections[group, name]
    except InvalidInputError as error:
        raise InvalidInputError(error.field.removeprefix("summaries."), error.reason) from None
    rest = {key: item for key, item in value.items() if key not in known}
    extra = _json(where, rest) if rest else ""
    if len(extra) > MAX_SUMMARY_BYTES:
        raise InvalidInputError(where, f"holds more than {MAX_SUMMARY_BYTES:,} characters of unknown keys")
    return Section(section.summary, section.updated_at, extra)


@contextmanager
def located(place: str) -> Iterator[None]:
    """Names the place in what is said to be wrong with a value inside the block."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{place}.{error.field}".rstrip("."), error.reason) from None


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInputError(name, "must be an object")
    return value


def _json(name: str, value: Any) -> str:
    """Returns a foreign value as JSON text, level by level, so that no depth and no size costs much."""
    level, items = [value], 0
    for _ in range(MAX_EXTRA_DEPTH):
        items += len(level)
        if not level:
            return dump_compact(value)
        if items > MAX_EXTRA_ITEMS:
            raise InvalidInputError(name, f"has more than {MAX_EXTRA_ITEMS:,} parts")
        level = [part for each in level for part in _parts(name, each)]
    raise InvalidInputError(name, "is nested too deeply")


def _parts(name: str, value: Any) -> Sequence[Any]:
    """Returns what a JSON value consists of, one level down."""
    match value:
        case dict() if all(isinstance(key, str) for key in value):
            return [*value, *value.values()]
        case list():
            return value
        case None | bool():
            return ()
        case str():
            check_utf8(name, value)
            return ()
        case int() if abs(value) < MAX_EXTRA_INTEGER:
            return ()
        case float() if math.isfinite(value):
            return ()
    raise InvalidInputError(name, "holds what is no JSON")
