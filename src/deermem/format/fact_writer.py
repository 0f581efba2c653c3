"""A fact as its document, always in the one canonical form.

    document = "---" LF [intended] front "---" LF LF "# " title LF LF content LF
    front    = one entry a line, in the order of the plan (section 5), then unknown entries in theirs

The content stands in the body byte for byte; all quoting is in the front matter.
"""

from __future__ import annotations

from deermem.errors import InvalidInputError
from deermem.format.fact_envelope import (
    FENCE,
    INTENDED_MARKERS,
    MAX_FILE_BYTES,
    has_conflict,
)
from deermem.format.fact_fields import KNOWN_KEYS, SOURCE_KEYS
from deermem.format.yaml_text import entry, float_text, scalar
from deermem.model.fact import SCHEMA_VERSION, ExtraField, Fact, Source

# Too short to break a limit that the parts have not been checked for.
_SURELY_READABLE = 8_192


def encode_fact(fact: Fact) -> bytes:
    """Returns the document of a fact.

    Raises:
        InvalidInputError: The document could not be read back: it is too large, or an unknown field
            has the name of a known one, occurs twice, or holds what YAML cannot.
    """
    try:
        front = _front_matter(fact)
        if fact.extra or fact.source.extra or len(front) > _SURELY_READABLE:
            _check_readable(front, fact)
        text = f"{FENCE}\n{front}{FENCE}\n\n# {fact.title}\n\n{fact.content}\n"
        if has_conflict(text):
            text = f"{FENCE}\n{INTENDED_MARKERS}{text[len(FENCE) + 1 :]}"
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError("fact", "contains a lone surrogate") from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInputError("fact", f"is larger than {MAX_FILE_BYTES:,} bytes")
    return data


def _check_readable(front: str, fact: Fact) -> None:
    """Refuses what the reader would: unknown fields are somebody else's text, and limits are the reader's."""
    # PyYAML takes long to import and is rarely needed.
    from deermem.format import yaml_nodes, yaml_tree

    try:
        keys = yaml_tree.parse_front_matter(front).entries.keys() - KNOWN_KEYS
    except yaml_nodes.UnreadableYaml as error:
        field = "extra" if fact.extra or fact.source.extra else "fact"
        raise InvalidInputError(field, f"cannot be written: {error.reason}") from None
    if keys != {field.key for field in fact.extra} or not front.endswith("\n"):
        raise InvalidInputError("extra", "has source text that is not an entry of its key")


def _front_matter(fact: Fact) -> str:
    extension = fact.category_extension
    user = fact.scope.user.raw
    return (
        f"id: {scalar(fact.id)}\n"
        f"schemaVersion: {SCHEMA_VERSION}\n"
        f"category: {fact.category}\n"
        f"{'' if extension is None else f'categoryExtension: {scalar(extension)}{chr(10)}'}"
        f"topics: {_texts(fact.topics)}\n"
        f"confidence: {float_text(fact.confidence)}\n"
        f"status: {fact.status}\n"
        f"user_id: {'null' if user is None else scalar(user)}\n"
        f"agent_name: {scalar(fact.scope.agent)}\n"
        f"{_source(fact.source)}"
        f"createdAt: {scalar(fact.created_at)}\n"
        f"updatedAt: {scalar(fact.updated_at)}\n"
        f"revision: {fact.revision}\n"
        f"consolidatedFrom: {_texts(fact.consolidated_from)}\n"
        f"{_optional_fields(fact)}"
        f"{_extra_fields(fact.extra, KNOWN_KEYS)}"
    )


def _texts(items: tuple[str, ...]) -> str:
    return f"[{', '.join(map(scalar, items))}]"


def _source(source: Source) -> str:
    thread = "null" if source.thread_id is None else scalar(source.thread_id)
    extra = _extra_fields(source.extra, SOURCE_KEYS, "  ") if source.extra else ""
    return f"source:\n  type: {scalar(source.type)}\n  threadId: {thread}\n{extra}"


def _optional_fields(fact: Fact) -> str:
    text = ""
    if fact.consolidated_at is not None:
        text = f"consolidatedAt: {scalar(fact.consolidated_at)}\n"
    if fact.expected_valid_days is not None:
        text += f"expected_valid_days: {fact.expected_valid_days}\n"
    if fact.source_error is not None:
        text += f"sourceError: {scalar(fact.source_error)}\n"
    if fact.last_confirmed_at is not None:
        text += f"lastConfirmedAt: {scalar(fact.last_confirmed_at)}\n"
    if fact.confirmation_count is not None:
        text += f"confirmationCount: {fact.confirmation_count}\n"
    return text


def _extra_fields(extra: tuple[ExtraField, ...], taken: frozenset[str], indent: str = "") -> str:
    keys = {field.key for field in extra}
    if len(keys) < len(extra) or not keys.isdisjoint(taken):
        raise InvalidInputError("extra", "has a key twice, or the key of a known field")
    return "".join(
        [
            field.yaml if field.yaml and not indent else entry(field.key, field.json, indent=indent)
            for field in extra
        ]
    )
