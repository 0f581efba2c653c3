"""The fast reader: one pattern for what `fact_writer` writes.

It declines whatever it is not sure of, and the full parser decides. It never raises, and where it gives a
fact, the full parser gives the same one. Every repetition in the pattern is possessive or short, so a
document that does not match costs one pass.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Final

from deermem.format.fact_fields import KNOWN_KEYS, SHARED_CATEGORIES, SHARED_SOURCES, SHARED_TYPES
from deermem.format.strict_json import dump_compact
from deermem.format.yaml_text import NULLS, core_value
from deermem.model.fact import ACTIVE, ExtraField, Fact, Source
from deermem.model.identity import FactId, Scope, safe_user_id
from deermem.model.rules import CATEGORIES, MAX_CONTENT_BYTES, OTHER

# In characters. Longer texts could break a limit on bytes, which only the full parser checks.
MAX_FRONT: Final = 3_000
MAX_WIDE_FRONT: Final = 900

_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_PLAIN = r"[A-Za-z_][A-Za-z0-9_.-]*+(?: [A-Za-z0-9_.-]++)*+"
_QUOTED = rf'"[^"\\{_CONTROL}\ufeff\ufffe\uffff]*+"'
_SCALAR = f"(?:{_QUOTED}|{_PLAIN})"
_LIST = rf"\[((?:{_SCALAR}(?:, {_SCALAR})*+)?+)\]"
_TIME = r'"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6}+)?+Z)"'
_COUNT = "([1-9][0-9]{0,14}+)"

_DOCUMENT = re.compile(
    "---\n"
    f"id: ({_SCALAR})\n"
    "schemaVersion: 2\n"
    "category: ([a-z]++)\n"
    f"(?:categoryExtension: ({_SCALAR})\n)?+"
    f"topics: {_LIST}\n"
    "confidence: (0\\.[0-9]{1,20}+|1\\.0)\n"
    "status: active\n"
    f"user_id: ({_SCALAR})\n"
    f"agent_name: ({_SCALAR})\n"
    "source:\n"
    "  type: ([a-z]++)\n"
    f"  threadId: ({_SCALAR})\n"
    f"createdAt: {_TIME}\n"
    f"updatedAt: {_TIME}\n"
    f"revision: {_COUNT}\n"
    f"consolidatedFrom: {_LIST}\n"
    f"(?:consolidatedAt: {_TIME}\n)?+"
    f"(?:expected_valid_days: {_COUNT}\n)?+"
    f"(?:sourceError: ({_SCALAR})\n)?+"
    f"(?:lastConfirmedAt: {_TIME}\n)?+"
    f"(?:confirmationCount: {_COUNT}\n)?+"
    f"((?:[A-Za-z_][A-Za-z0-9_.-]{{0,99}}+: {_SCALAR}\n)*+)"
    "---\n\n"
    f"# ([^{_CONTROL}]{{1,160}}+)\n\n"
)
_ITEM = re.compile(_SCALAR)

# Facts of one conversation have one source, and many facts their topics: each value is made once.
_REMEMBERED: Final = 2_048


class _DeclinedError(Exception):
    """Ends the fast reading of a document."""


def read_canonical(text: str, scope: Scope, fact_id: FactId) -> Fact | None:
    """Returns the fact of a canonical document, `None` where the full parser must decide."""
    match = _DOCUMENT.match(text)
    if match is None:
        return None
    end = match.end()
    if end > MAX_WIDE_FRONT and (end > MAX_FRONT or not text[:end].isascii()):
        return None
    content = text[end:-1]
    if not content or text[-1] != "\n" or content != content.strip() or len(content) > MAX_CONTENT_BYTES // 4:
        return None
    if "=" in content and "=======" in content:  # perhaps an unfinished merge; one character is found faster
        return None
    try:
        return _fact(match, content, scope, fact_id)
    except (_DeclinedError, KeyError, ValueError):
        return None


def _fact(match: re.Match[str], content: str, scope: Scope, fact_id: FactId) -> Fact:
    (
        stem,
        category,
        extension,
        topics,
        confidence,
        user,
        agent,
        source_type,
        thread,
        created_at,
        updated_at,
        revision,
        consolidated_from,
        consolidated_at,
        valid_days,
        source_error,
        confirmed_at,
        confirmations,
        extra,
        title,
    ) = match.groups()
    if (
        _text(stem) != fact_id
        or not _is_user(user, scope)
        or _text(agent) != scope.agent
        or title != title.strip()
    ):
        raise _DeclinedError
    datetime.fromisoformat(created_at)
    if updated_at == created_at:
        updated_at = created_at
    else:
        datetime.fromisoformat(updated_at)
    for moment in (consolidated_at, confirmed_at):
        if moment is not None:
            datetime.fromisoformat(moment)
    return Fact(
        fact_id,
        scope,
        content,
        title,
        int(revision),
        created_at,
        updated_at,
        SHARED_CATEGORIES[category],
        None if extension is None else _extension(category, extension),
        _texts(topics) if topics else (),
        float(confidence),
        ACTIVE,
        _source(source_type, thread),
        _texts(consolidated_from) if consolidated_from else (),
        consolidated_at,
        None if valid_days is None else int(valid_days),
        None if source_error is None else _text(source_error),
        confirmed_at,
        None if confirmations is None else int(confirmations),
        _extra_fields(extra) if extra else (),
    )


@lru_cache(maxsize=_REMEMBERED)
def _source(source_type: str, thread: str) -> Source:
    return (
        SHARED_SOURCES[source_type] if thread == "null" else Source(SHARED_TYPES[source_type], _text(thread))
    )


def _is_user(written: str, scope: Scope) -> bool:
    if written == "null" or scope.user.raw is None:
        return written == "null" and scope.user.raw is None
    raw = _text(written)
    return raw == scope.user.raw or safe_user_id(raw) == scope.user.bucket


def _text(token: str) -> str:
    if token[0] == '"':
        token = token[1:-1]
    if token in NULLS or token.isspace():
        raise _DeclinedError
    return token


@lru_cache(maxsize=_REMEMBERED)
def _texts(tokens: str) -> tuple[str, ...]:
    items = tokens.split(", ") if '"' not in tokens else [_text(token) for token in _ITEM.findall(tokens)]
    if not NULLS.isdisjoint(items):
        raise _DeclinedError
    return tuple(items)


def _extension(category: str, token: str) -> str:
    text = _text(token)
    if category != OTHER or text in CATEGORIES or text != text.strip():
        raise _DeclinedError
    return text


def _extra_fields(lines: str) -> tuple[ExtraField, ...]:
    extra: dict[str, ExtraField] = {}
    for line in lines.splitlines(keepends=True):
        key, _, token = line[:-1].partition(": ")
        if key in extra or key in KNOWN_KEYS:
            raise _DeclinedError
        value = token[1:-1] if token[0] == '"' else core_value(token)
        extra[key] = ExtraField(key, dump_compact(value), line)
    return tuple(extra.values())
