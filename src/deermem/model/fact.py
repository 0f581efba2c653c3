"""The fact: a stored statement, and the draft that proposes one."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.model.identity import FactId, Scope, parse_fact_id
from deermem.model.rules import (
    DEFAULT_CATEGORY,
    check_category,
    check_confidence,
    check_content,
    check_optional_count,
    check_optional_text,
    check_text,
    check_texts,
    check_title,
    derive_title,
    is_derived_title,
    split_category,
)
from deermem.model.timestamps import normalise_timestamp

SCHEMA_VERSION: Final = 2
ACTIVE: Final = "active"
DEFAULT_CONFIDENCE: Final = 0.5
CONVERSATION: Final = "conversation"
PLAIN_SOURCES: Final = frozenset(["manual", "consolidation", "import", "unknown"])


@dataclass(frozen=True, slots=True)
class ExtraField:
    """Keeps a front-matter key that the store does not know.

    `json` is the value as JSON text and decides equality. `yaml` is the whole entry (key and value,
    ending in a line feed) as it stood in the file, empty when it did not come from a file.
    """

    key: str
    json: str
    yaml: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Source:
    """Says where a fact comes from: `conversation` with a thread id, or one of `PLAIN_SOURCES`."""

    type: str = "unknown"
    thread_id: str | None = None
    extra: tuple[ExtraField, ...] = ()

    @classmethod
    def parse(cls, value: Any) -> Source:
        """Reads the historical string: a plain source's name, or else a conversation's thread id.

        Raises:
            InvalidInputError: The value is neither a string, a `Source` nor `None`.
        """
        if isinstance(value, Source):
            return value
        if value is None or value == "":
            return UNKNOWN_SOURCE
        text = check_text("source", value)
        return cls(text) if text in PLAIN_SOURCES else cls(CONVERSATION, text)

    def __str__(self) -> str:
        return self.thread_id if self.type == CONVERSATION and self.thread_id else self.type


UNKNOWN_SOURCE: Final = Source()
MANUAL_SOURCE: Final = Source("manual")


@dataclass(frozen=True, slots=True)
class Fact:
    """Is one stored statement at one revision.

    Time stamps are ISO 8601 text as stored. `category` is one of `rules.CATEGORIES`; a category of
    the user's own is `other` with `category_extension`.
    """

    id: FactId
    scope: Scope
    content: str
    title: str
    revision: int
    created_at: str
    updated_at: str
    category: str = DEFAULT_CATEGORY
    category_extension: str | None = None
    topics: tuple[str, ...] = ()
    confidence: float = DEFAULT_CONFIDENCE
    status: str = ACTIVE
    source: Source = UNKNOWN_SOURCE
    consolidated_from: tuple[str, ...] = ()
    consolidated_at: str | None = None
    expected_valid_days: int | None = None
    source_error: str | None = None
    last_confirmed_at: str | None = None
    confirmation_count: int | None = None
    extra: tuple[ExtraField, ...] = ()

    def draft(self, **changes: Any) -> FactDraft:
        """Proposes this fact with some fields changed; a derived title is derived again.

        Args:
            **changes: Fields of `FactDraft`.

        Raises:
            InvalidInputError: A changed field breaks its rule.
        """
        values = {f.name: getattr(self, f.name) for f in fields(FactDraft)}
        for name in changes:
            if name not in values or name == "id":
                raise InvalidInputError(str(name), "is no field of a fact that can be changed")
        if is_derived_title(self.title, self.content):
            values["title"] = None
        values["category"] = self.category_extension or self.category
        return FactDraft(**{**values, **changes})

    def same_meaning(self, other: Fact) -> bool:
        """Tells whether two facts differ in nothing but revision and time stamps.

        One user may be known by the raw id and by the name of the bucket; that is no difference.
        """
        place, other_place = ((scope.user.bucket, scope.agent) for scope in (self.scope, other.scope))
        return place == other_place and _substance_of(self) == _substance_of(other)


_substance_of: Final[Callable[[Fact], tuple[Any, ...]]] = attrgetter(
    *(f.name for f in fields(Fact) if f.name not in ("scope", "revision", "created_at", "updated_at"))
)


@dataclass(frozen=True, slots=True)
class FactDraft:
    """Proposes what a fact should say; construction checks every rule of contract section 2.

    `title=None` derives the title from the content. `id=None` asks for a new id. `category` is one
    of `rules.CATEGORIES` or the user's own. `source` may be the historical string. `created_at` is
    honoured only where the fact does not exist yet. `extra=None` keeps the unknown keys that the fact has.

    Raises:
        InvalidInputError: Names the field that breaks its rule.
    """

    content: str
    id: str | None = None
    title: str | None = None
    category: str = DEFAULT_CATEGORY
    topics: tuple[str, ...] = ()
    confidence: float = DEFAULT_CONFIDENCE
    source: Source = UNKNOWN_SOURCE
    created_at: str | None = None
    consolidated_from: tuple[str, ...] = ()
    consolidated_at: str | None = None
    expected_valid_days: int | None = None
    source_error: str | None = None
    last_confirmed_at: str | None = None
    confirmation_count: int | None = None
    extra: tuple[ExtraField, ...] | None = None

    def __post_init__(self) -> None:
        checked = {
            "content": check_content(self.content),
            "id": None if self.id is None else parse_fact_id(self.id),
            "title": check_title(self.title),
            "category": check_category(self.category),
            "topics": check_texts("topics", self.topics),
            "confidence": check_confidence(self.confidence),
            "source": Source.parse(self.source),
            "consolidated_from": check_texts("consolidatedFrom", self.consolidated_from),
            "created_at": _optional_timestamp("createdAt", self.created_at),
            "consolidated_at": _optional_timestamp("consolidatedAt", self.consolidated_at),
            "last_confirmed_at": _optional_timestamp("lastConfirmedAt", self.last_confirmed_at),
            "expected_valid_days": check_optional_count("expected_valid_days", self.expected_valid_days),
            "confirmation_count": check_optional_count("confirmationCount", self.confirmation_count),
            "source_error": check_optional_text("sourceError", self.source_error),
            "extra": None if self.extra is None else tuple(self.extra),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def with_id(self, fact_id: str) -> FactDraft:
        """Returns the same draft for a fact with this id."""
        draft = copy(self)  # not `replace`, which checks every field again
        object.__setattr__(draft, "id", parse_fact_id(fact_id))
        return draft


def _optional_timestamp(name: str, value: str | None) -> str | None:
    return None if value is None or value == "" else normalise_timestamp(value, name)


def next_fact(draft: FactDraft, scope: Scope, now: str, before: Fact | None, *, renewed_at: int = 0) -> Fact:
    """Returns what a draft makes of the fact that is there now.

    The first revision of a new fact is 1; a change of substance adds 1. A draft that changes
    nothing returns `before` itself.

    Args:
        draft: The proposed values; its id is set.
        scope: Where the fact lives.
        now: The time of the commit, as stored.
        before: The fact at present, or `None` when there is none.
        renewed_at: The least revision to give, also to a new fact and to a draft that changes nothing;
            0 asks for none. It keeps a number that others saw from coming back with an old text.
    """
    if draft.id is None:
        raise InvalidInputError("id", "is missing")
    category, extension = split_category(draft.category)
    consolidated_at = draft.consolidated_at
    if draft.consolidated_from and consolidated_at is None:
        kept = None if before is None else _optional_timestamp("consolidatedAt", before.consolidated_at)
        consolidated_at = kept or now
    proposed = Fact(
        id=FactId(draft.id),
        scope=scope,
        content=draft.content,
        title=draft.title or derive_title(draft.content),
        revision=1,
        created_at=draft.created_at or now,
        updated_at=now,
        category=category,
        category_extension=extension,
        topics=draft.topics,
        confidence=draft.confidence,
        source=draft.source,
        consolidated_from=draft.consolidated_from,
        consolidated_at=consolidated_at,
        expected_valid_days=draft.expected_valid_days,
        source_error=draft.source_error,
        last_confirmed_at=draft.last_confirmed_at,
        confirmation_count=draft.confirmation_count,
        extra=draft.extra or (),
    )
    if before is None:
        return replace(proposed, revision=renewed_at) if renewed_at else proposed
    proposed = replace(proposed, created_at=before.created_at, scope=before.scope)
    proposed = _with_unknown_keys(proposed, draft, before)
    if proposed.same_meaning(_as_written(before, consolidated_at)) and not renewed_at:
        return before
    created_at = normalise_timestamp(before.created_at, "createdAt")
    return replace(
        proposed, scope=scope, revision=max(before.revision + 1, renewed_at), created_at=created_at
    )


def _as_written(fact: Fact, consolidated_at: str | None) -> Fact:
    """Returns a fact with its time stamps as the store writes them.

    Another program's way to write a moment, or a missing time of consolidation, is no difference.
    """
    if fact.consolidated_at is None and fact.last_confirmed_at is None and not fact.consolidated_from:
        return fact
    missing = consolidated_at if fact.consolidated_from else None
    return replace(
        fact,
        consolidated_at=_optional_timestamp("consolidatedAt", fact.consolidated_at) or missing,
        last_confirmed_at=_optional_timestamp("lastConfirmedAt", fact.last_confirmed_at),
    )


def _with_unknown_keys(proposed: Fact, draft: FactDraft, before: Fact) -> Fact:
    """Keeps the unknown keys of a fact where the draft says nothing of them (contract section 2)."""
    if draft.extra is None:
        proposed = replace(proposed, extra=before.extra)
    same_source = (draft.source.type, draft.source.thread_id) == (before.source.type, before.source.thread_id)
    return replace(proposed, source=before.source) if same_source and not draft.source.extra else proposed
