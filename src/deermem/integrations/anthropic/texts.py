"""A file's text as a fact's content, and back to the last character.

A fact's content has no white space at its ends and is never empty. What a file has there lies in the
front matter, below the key `memoryFile`:

    memoryFile: "{'path':'notes/tea.md','after':'%0A'}"    the content is the text without the line feed
    memoryFile: "{'path':'empty.txt','blank':'%0A%20'}"    the content is "(empty file)"

A fact that was not made here has no such entry: its text is its content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from deermem.errors import InvalidInputError
from deermem.integrations.anthropic.paths import FACTS, Parts, fact_id_of, fact_parts
from deermem.integrations.front_matter import edges_of, entry_field, entry_of, surrounded, with_entry
from deermem.model.fact import ExtraField, Fact, FactDraft
from deermem.model.rules import MAX_CONTENT_BYTES, check_title, check_utf8

EXTRA_KEY: Final = "memoryFile"
BLANK: Final = "(empty file)"
MAX_BLANKS: Final = 10_000


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """Is a fact as the model sees it."""

    fact: Fact
    parts: Parts
    text: str

    @classmethod
    def of(cls, fact: Fact) -> MemoryFile:
        """Reads a fact's entry."""
        entry = entry_of(fact, EXTRA_KEY)
        if entry is None:
            return cls(fact, fact_parts(fact.id, None), fact.content)
        path, blank = entry.get("path"), entry.get("blank")
        parts = fact_parts(fact.id, path if isinstance(path, str) else None)
        if isinstance(blank, str) and fact.content == BLANK:
            return cls(fact, parts, unquote(blank))
        return cls(fact, parts, surrounded(entry, fact.content))

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
    return FactDraft(
        content, id=fact_id_of(parts), title=_title_of(parts), extra=() if entry is None else (entry,)
    )


def changed_draft(file: MemoryFile, text: str) -> FactDraft:
    """Proposes another text for a file; whatever else the fact says stays."""
    content, entry = _stored(file.parts, text)
    return file.fact.draft(content=content, extra=with_entry(file.fact, EXTRA_KEY, entry))


def moved_draft(file: MemoryFile, parts: Parts) -> FactDraft:
    """Proposes the file at another path: the fact with another id and all that it says."""
    content, entry = _stored(parts, file.text)
    draft = file.fact.draft(
        content=content,
        title=_title_of(parts),
        created_at=file.fact.created_at,
        extra=with_entry(file.fact, EXTRA_KEY, entry),
    )
    fact_id = fact_id_of(parts)
    if fact_id is None:
        raise InvalidInputError("path", "cannot be a file")
    return draft.with_id(fact_id)


def _stored(parts: Parts, text: str) -> tuple[str, ExtraField | None]:
    if check_utf8("text", text) > MAX_CONTENT_BYTES:
        raise InvalidInputError("text", f"is larger than {MAX_CONTENT_BYTES:,} bytes")
    content = text.strip()
    entry: dict[str, str] = {} if parts[0] == FACTS else {"path": "/".join(parts)}
    if content:
        entry.update(edges_of(text, content))
    else:
        content, entry["blank"] = BLANK, quote(text, safe="")
    if len(text) - len(content) > MAX_BLANKS:
        raise InvalidInputError("text", f"has more than {MAX_BLANKS:,} blanks at its ends")
    return content, entry_field(EXTRA_KEY, entry) if entry else None


def _title_of(parts: Parts) -> str | None:
    """Returns the path where it can be a title; a fact below `/memories/facts` has one of its own."""
    if parts[0] == FACTS:
        return None
    try:
        return check_title("/".join(parts))
    except InvalidInputError:
        return None
