"""Front matter of any origin as the fields of a fact.

A missing key and a null mean the same. Text fields take a scalar's text as it stands in the file, so
`user_id: 123`, `agent_name: no`, `threadId: 1e3` and unquoted dates are text; numbers follow the YAML 1.2
core schema, and a quoted number is text. `schemaVersion`, `category`, `topics`, `confidence`, `status`,
`source` and `consolidatedFrom` have defaults, a missing `user_id` is the user without an id and a missing
`agent_name` the default agent; whatever else is missing is corruption.

The predecessor writes what it was not given as an empty text. So a blank category is a missing one, a blank
topic is none, and an empty time is the other one of the two; if nobody knows either, it is `NO_TIME`.
"""

from __future__ import annotations

from typing import Final

from deermem.errors import InvalidInputError
from deermem.format.fact_fields import (
    KNOWN_KEYS,
    SHARED_CATEGORIES,
    SHARED_SOURCES,
    SHARED_TYPES,
    SOURCE_KEYS,
)
from deermem.format.strict_json import dump_compact
from deermem.format.yaml_nodes import Node, Scalar, Sequence, UnreadableYaml
from deermem.format.yaml_tree import FrontMatter, parse_front_matter
from deermem.model.fact import (
    ACTIVE,
    CONVERSATION,
    DEFAULT_CONFIDENCE,
    SCHEMA_VERSION,
    UNKNOWN_SOURCE,
    ExtraField,
    Fact,
    Source,
)
from deermem.model.identity import DEFAULT_AGENT, FactId, Scope, parse_agent_name, safe_user_id
from deermem.model.rules import (
    OTHER,
    check_category,
    check_confidence,
    check_content,
    check_count,
    check_optional_count,
    check_optional_text,
    check_texts,
    derive_title,
    split_category,
)
from deermem.model.timestamps import parse_timestamp

# The time of a fact that came without one: no clock is asked, so that every read shows the same.
NO_TIME: Final = "1970-01-01T00:00:00Z"


class OtherVersion(ValueError):
    """Says that a document has a newer schema; `args[0]` is its version."""


def read_fact(front: FrontMatter, title: str | None, content: str, scope: Scope, fact_id: FactId) -> Fact:
    """Returns the fact of a document that lies in `scope` under the name of `fact_id`.

    Raises:
        InvalidInputError: Names the field that breaks its rule.
        UnreadableYaml: A value cannot be read.
        OtherVersion: The document has a newer schema.
    """
    fields = front.entries
    _check_version(fields)
    if _required(fields, "id") != fact_id:
        raise InvalidInputError("id", "is not the name of the file")
    _check_scope(fields, scope)
    content = check_content(content)
    category, extension = _category(fields)
    created_at, updated_at = _times(fields)
    confidence = _value(fields, "confidence")
    return Fact(
        id=fact_id,
        scope=scope,
        content=content,
        title=title or derive_title(content),
        revision=check_count("revision", _value(fields, "revision")),
        created_at=created_at,
        updated_at=created_at if updated_at == created_at else updated_at,
        category=category,
        category_extension=extension,
        topics=_texts(fields, "topics"),
        confidence=DEFAULT_CONFIDENCE if confidence is None else check_confidence(confidence),
        status=_status(fields),
        source=_source(fields.get("source")),
        consolidated_from=_texts(fields, "consolidatedFrom"),
        consolidated_at=_timestamp(fields, "consolidatedAt"),
        expected_valid_days=check_optional_count(
            "expected_valid_days", _value(fields, "expected_valid_days")
        ),
        source_error=check_optional_text("sourceError", _text(fields, "sourceError")),
        last_confirmed_at=_timestamp(fields, "lastConfirmedAt"),
        confirmation_count=check_optional_count("confirmationCount", _value(fields, "confirmationCount")),
        extra=_extra_fields(front),
    )


def _check_version(fields: dict[str, Node]) -> None:
    version = _value(fields, "schemaVersion")
    if version is None or (version == SCHEMA_VERSION and type(version) is int):
        return
    if type(version) is int and version > SCHEMA_VERSION:
        raise OtherVersion(str(version))
    raise InvalidInputError("schemaVersion", f"is not {SCHEMA_VERSION}")


def _check_scope(fields: dict[str, Node], scope: Scope) -> None:
    user, raw = _text(fields, "user_id"), scope.user.raw
    if user != raw and (None in (user, raw) or safe_user_id(user or "") != scope.user.bucket):
        raise InvalidInputError("user_id", "is missing" if user is None else "is another user's")
    agent = _text(fields, "agent_name")
    if agent is None and scope.agent != DEFAULT_AGENT:
        raise InvalidInputError("agent_name", "is missing")
    if agent not in (None, scope.agent) and (
        scope.agent == DEFAULT_AGENT or parse_agent_name(agent) != scope.agent
    ):
        raise InvalidInputError("agent_name", "is another agent's")


def _scalar(fields: dict[str, Node], name: str) -> Scalar | None:
    node = fields.get(name)
    if node is None or isinstance(node, Scalar):
        return node
    raise InvalidInputError(name, "must be a single value, not a list or a mapping")


def _text(fields: dict[str, Node], name: str) -> str | None:
    node = _scalar(fields, name)
    return None if node is None else node.string()


def _required(fields: dict[str, Node], name: str) -> str:
    text = _text(fields, name)
    if text is None:
        raise InvalidInputError(name, "is missing")
    return text


def _value(fields: dict[str, Node], name: str) -> object:
    node = _scalar(fields, name)
    return None if node is None else node.value()


def _timestamp(fields: dict[str, Node], name: str) -> str | None:
    text = _text(fields, name)
    if text is not None:
        parse_timestamp(text, name)
    return text


def _times(fields: dict[str, Node]) -> tuple[str, str]:
    """Returns when the fact was made and when it was changed."""
    created, updated = (
        _required(fields, name) and _timestamp(fields, name) for name in ("createdAt", "updatedAt")
    )
    return created or updated or NO_TIME, updated or created or NO_TIME


def _texts(fields: dict[str, Node], name: str) -> tuple[str, ...]:
    node = fields.get(name)
    if isinstance(node, Sequence):
        items = [_item(name, item) for item in node.items]
        return check_texts(name, [item for item in items if item is None or item.strip()])
    text = _text(fields, name)
    return check_texts(name, (text,) if text and not text.isspace() else ())


def _item(name: str, node: Node) -> str | None:
    if isinstance(node, Scalar):
        return node.string()
    raise InvalidInputError(name, "must be a list of strings")


def _category(fields: dict[str, Node]) -> tuple[str, str | None]:
    text = check_category((_text(fields, "category") or "").strip() or None)
    extension = check_optional_text("categoryExtension", _text(fields, "categoryExtension"))
    if extension is not None:
        extension = extension.strip()
        if text not in (OTHER, extension):
            raise InvalidInputError("categoryExtension", f"needs the category {OTHER}")
        text = extension
    category, extension = split_category(text)
    return SHARED_CATEGORIES[category], extension


def _status(fields: dict[str, Node]) -> str:
    if _text(fields, "status") not in (None, ACTIVE):
        raise InvalidInputError("status", f"must be {ACTIVE}")
    return ACTIVE


def _source(node: Node | None) -> Source:
    if node is None:
        return UNKNOWN_SOURCE
    if isinstance(node, Scalar):
        source = Source.parse(node.string())
        return SHARED_SOURCES.get(source.type, source) if source.thread_id is None else source
    if isinstance(node, Sequence):
        raise InvalidInputError("source", "must be a mapping or a string")
    thread = check_optional_text("threadId", _text(node.entries, "threadId"))
    kind = _text(node.entries, "type")
    if kind is None:
        kind = CONVERSATION if thread else UNKNOWN_SOURCE.type
    if kind not in SHARED_TYPES:
        raise InvalidInputError("source", f"has a type that is not one of {', '.join(sorted(SHARED_TYPES))}")
    extra = tuple(_extra_field(key, item) for key, item in node.entries.items() if key not in SOURCE_KEYS)
    if thread is None and not extra and kind in SHARED_SOURCES:
        return SHARED_SOURCES[kind]
    return Source(SHARED_TYPES[kind], thread, extra)


def _extra_fields(front: FrontMatter) -> tuple[ExtraField, ...]:
    extra = [
        _extra_field(key, node, front.sources.get(key, ""))
        for key, node in front.entries.items()
        if key not in KNOWN_KEYS
    ]
    if any(field.yaml for field in extra) and not _stands_alone(extra):
        extra = [ExtraField(field.key, field.json) for field in extra]
    return tuple(extra)


def _extra_field(key: str, node: Node, source: str = "") -> ExtraField:
    return ExtraField(key, dump_compact(node.value()), source)


def _stands_alone(extra: list[ExtraField]) -> bool:
    """Tells whether the entries still read the same without the known ones around them."""
    text = "".join([field.yaml for field in extra])
    if not text.endswith("\n"):
        return False
    try:
        alone = parse_front_matter(text).entries
        return [(key, dump_compact(node.value())) for key, node in alone.items()] == [
            (field.key, field.json) for field in extra
        ]
    except UnreadableYaml:
        return False
