r"""A file's text as a fact's content, and back to the last character.

A fact's content has no white space at its ends and is never empty. What a file has there lies in the
front matter, below the key `memoryFile`:

    memoryFile: {path: notes/tea.md, after: "\n"}    the content is the text without the line feed
    memoryFile: {path: empty.txt, blank: "\n \n"}    the content is "(empty file)"

A fact that was not made here has no such entry: its text is its content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.format.strict_json import dump_compact
from deermem.integrations.anthropic.paths import FACTS, Parts, fact_id_of, fact_parts
from deermem.model.fact import ExtraField, Fact, FactDraft
from deermem.model.rules import MAX_CONTENT_BYTES, check_title, check_utf8

EXTRA_KEY: Final = "memoryFile"
BLANK: Final = "(empty file)"
MAX_EDGE: Final = 10_000


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """Is a fact as the model sees it."""

    fact: Fact
    parts: Parts
    text: str

    @classmethod
    def of(cls, fact: Fact) -> MemoryFile:
        """Reads a fact's entry."""
        entry = next((json.loads(field.json) for field in fact.extra if field.key == EXTRA_KEY), None)
        if not isinstance(entry, dict):
            return cls(fact, fact_parts(fact.id, None), fact.content)
        parts = fact_parts(fact.id, _text_of(entry, "path", None))
        blank = _text_of(entry, "blank", None)
        if blank is not None and fact.content == BLANK:
            return cls(fact, parts, blank)
        before, after = _text_of(entry, "before", ""), _text_of(entry, "after", "")
        return cls(fact, parts, f"{before}{fact.content}{after}")

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.text.encode())


def new_draft(parts: Parts, text: str) -> FactDraft:
    """Proposes a new file.

    Raises:
        InvalidInputError: The text is too large, or UTF-8 cannot hold it.
    """
    content, entry = _stored(parts, text)
    return FactDraft(content, id=fact_id_of(parts), title=_title_of(parts), extra=entry)


def changed_draft(file: MemoryFile, text: str) -> FactDraft:
    """Proposes another text for a file; whatever else the fact says stays."""
    content, entry = _stored(file.parts, text)
    return file.fact.draft(content=content, extra=_with_entry(file.fact, entry))


def moved_draft(file: MemoryFile, parts: Parts) -> FactDraft:
    """Proposes the file at another path: the fact with another id and all that it says."""
    content, entry = _stored(parts, file.text)
    draft = file.fact.draft(
        content=content,
        title=_title_of(parts),
        created_at=file.fact.created_at,
        extra=_with_entry(file.fact, entry),
    )
    fact_id = fact_id_of(parts)
    if fact_id is None:
        raise InvalidInputError("path", "cannot be a file")
    return draft.with_id(fact_id)


def _stored(parts: Parts, text: str) -> tuple[str, tuple[ExtraField, ...]]:
    if check_utf8("text", text) > MAX_CONTENT_BYTES:
        raise InvalidInputError("text", f"is larger than {MAX_CONTENT_BYTES:,} bytes")
    content = text.strip()
    entry: dict[str, str] = {} if parts[0] == FACTS else {"path": "/".join(parts)}
    if content:
        before, _, after = text.partition(content)
    else:
        content, before, after = BLANK, "", ""
        entry["blank"] = text
    edges = {"before": before, "after": after}
    entry.update({name: edge for name, edge in edges.items() if edge})
    if any(len(edge) > MAX_EDGE for edge in (before, after, entry.get("blank", ""))):
        raise InvalidInputError("text", f"has more than {MAX_EDGE:,} blanks at one end")
    return content, (ExtraField(EXTRA_KEY, dump_compact(entry)),) if entry else ()


def _with_entry(fact: Fact, entry: tuple[ExtraField, ...]) -> tuple[ExtraField, ...]:
    kept = {field.key: field for field in fact.extra}
    if entry:
        kept[EXTRA_KEY] = entry[0]
    else:
        kept.pop(EXTRA_KEY, None)
    return tuple(kept.values())


def _title_of(parts: Parts) -> str | None:
    """Returns the path where it can be a title; a fact below `/memories/facts` has one of its own."""
    if parts[0] == FACTS:
        return None
    try:
        return check_title("/".join(parts))
    except InvalidInputError:
        return None


def _text_of(entry: Mapping[str, Any], name: str, otherwise: Any) -> Any:
    value = entry.get(name, otherwise)
    return value if isinstance(value, str) else otherwise
