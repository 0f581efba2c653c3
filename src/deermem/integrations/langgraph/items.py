"""How a value becomes a fact that people can read, and comes back exactly.

A value with a text in `content`, `text` or `memory` becomes a fact with that text; the other fields lie in
the front matter, below the key `langgraph`. Any other value, and one with more beside its text than a
front matter should hold, becomes a fact whose content is the value as JSON.

`category`, `confidence` and `topics` of a value are also the fact's own. What another program changes of a
fact (its text or one of these) shows in the value. A fact that was not made here has the value
`{"content", "category", "confidence", "topics", "source"}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.integrations.front_matter import (
    edges_of,
    entry_field,
    entry_of,
    surrounded,
    with_entry,
)
from deermem.integrations.langgraph.namespaces import Labels, candidates, fact_id_of
from deermem.model.fact import ExtraField, Fact, FactDraft
from deermem.model.identity import FactId, Scope
from deermem.model.rules import (
    MAX_CONTENT_BYTES,
    check_category,
    check_confidence,
    check_texts,
    check_title,
    check_utf8,
)
from deermem.model.snapshot import Snapshot
from deermem.model.timestamps import parse_timestamp

EXTRA_KEY: Final = "langgraph"
TEXT_FIELDS: Final = ("content", "text", "memory")
MAX_DEPTH: Final = 100
_MAX_FRONT_CHARACTERS: Final = 16_000


@dataclass(frozen=True, slots=True)
class Draft:
    """Is a checked value: the content, the front-matter entry, and the fields that are the fact's own."""

    content: str
    extra: ExtraField
    own: Mapping[str, Any]
    title: str | None = None

    def new(self, fact_id: FactId) -> FactDraft:
        """Proposes the value as a new fact."""
        return FactDraft(self.content, id=fact_id, title=self.title, extra=(self.extra,), **self.own)

    def over(self, fact: Fact) -> FactDraft:
        """Proposes the value in place of a fact's; what the value does not speak of stays."""
        title = {} if self.title is None else {"title": self.title}
        return fact.draft(
            content=self.content, extra=with_entry(fact, EXTRA_KEY, self.extra), **title, **self.own
        )


@dataclass(frozen=True, slots=True)
class Stored:
    """Is a fact as LangGraph sees it; `user_label` is `None` where the fact does not tell."""

    fact: Fact
    rest: Labels
    key: str
    user_label: str | None
    entry: Mapping[str, Any] | None

    @classmethod
    def of(cls, fact: Fact) -> Stored:
        """Reads a fact's entry; one that is not of this fact's id counts for nothing."""
        entry = entry_of(fact, EXTRA_KEY)
        if entry is None:
            return cls(fact, (), fact.id, None, None)
        rest, key, user = entry.get("namespace", []), entry.get("key"), entry.get("user")
        labels = isinstance(rest, list) and all(isinstance(label, str) for label in rest)
        if not labels or not isinstance(key, str) or not isinstance(entry.get("value", {}), dict):
            return cls(fact, (), fact.id, None, None)
        if not _is_of(fact, tuple(rest), key):
            return cls(fact, (), fact.id, None, None)
        return cls(fact, tuple(rest), key, user if isinstance(user, str) else None, entry)

    @property
    def created_at(self) -> datetime:
        """When the fact came into being."""
        return parse_timestamp(self.fact.created_at, "createdAt")

    @property
    def updated_at(self) -> datetime:
        """When the fact was last changed."""
        return parse_timestamp(self.fact.updated_at, "updatedAt")

    def is_hidden_in(self, snapshot: Snapshot) -> bool:
        """Tells whether another fact lies at the same key and comes first: see `candidates`."""
        usual = fact_id_of(self.rest, self.key) if self.fact.id == self.key else self.fact.id
        if usual == self.fact.id or usual not in snapshot.by_id:
            return False
        first = Stored.of(snapshot.by_id[usual])
        return (first.rest, first.key) == (self.rest, self.key)

    def value(self) -> dict[str, Any]:
        """Returns the value: a dictionary of this object's own, which may be handed out once."""
        fact = self.fact
        if self.entry is None:
            return {
                "content": fact.content,
                "category": _category(fact),
                "confidence": fact.confidence,
                "topics": [*fact.topics],
                "source": str(fact.source),
            }
        field = self.entry.get("text")
        if isinstance(field, str):
            value = {field: None, **self.entry.get("value", {})}
            value[field] = surrounded(self.entry, fact.content)
        else:
            value = _json_object(fact.content)
        for name, wanted in own_fields(value).items():
            current = _CURRENT[name](fact)
            if current != wanted:
                value[name] = [*current] if isinstance(current, tuple) else current
        return value


def _is_of(fact: Fact, rest: Labels, key: str) -> bool:
    """Tells whether a fact is that of an address, which its file may only pretend."""
    try:
        return fact.id in candidates(rest, key)
    except InvalidInputError:
        return False


def find(
    scope: Scope, rest: Labels, key: str, fact_of: Callable[[Scope, FactId], Fact | None]
) -> Stored | None:
    """Returns what lies at a key; `fact_of` gets a fact by its id."""
    for fact_id in candidates(rest, key):
        fact = fact_of(scope, fact_id)
        stored = None if fact is None else Stored.of(fact)
        if stored is not None and (stored.rest, stored.key) == (rest, key):
            return stored
    return None


def draft_of(rest: Labels, key: str, value: Mapping[str, Any], user_label: str) -> Draft:
    """Checks a value and returns what to store of it.

    Raises:
        InvalidInputError: Names the part that JSON cannot hold, or says that the value is too large or no
            dictionary.
    """
    plain = _plain(value, "value", 0)
    if not isinstance(plain, dict):
        raise InvalidInputError("value", f"must be a dictionary, and is of type {type(value).__name__}")
    entry: dict[str, Any] = {"namespace": [*rest], "key": key, "user": user_label}
    own = own_fields(plain)
    field = next((name for name in TEXT_FIELDS if _is_text(plain.get(name))), None)
    if field is not None:
        content = plain[field].strip()
        others = {name: item for name, item in plain.items() if name != field}
        in_front = {**entry, "text": field, **edges_of(plain[field], content), "value": others}
        if _fits_front_matter(in_front):
            return Draft(content, entry_field(EXTRA_KEY, in_front), own)
    content = _dump(plain, indent=2)
    if check_utf8("value", content) > MAX_CONTENT_BYTES:
        raise InvalidInputError("value", f"is larger than {MAX_CONTENT_BYTES:,} bytes as JSON")
    return Draft(content, entry_field(EXTRA_KEY, entry), own, _title_of(key))


def own_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what of a value is also a field of the fact, as the fact has it."""
    found: dict[str, Any] = {}
    for name, check in _CHECKS.items():
        if name in value and value[name] is not None:
            try:
                found[name] = check(value[name])
            except InvalidInputError:
                continue  # this field means something else here, and is kept as it is
    if "category" in found and found["category"] != value["category"]:
        del found["category"]
    return found


def _topics(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(_dump(value)) > _MAX_FRONT_CHARACTERS:
        raise InvalidInputError("topics", "must be a short list of strings")
    return check_texts("topics", value)


def _category(fact: Fact) -> str:
    return fact.category_extension or fact.category


_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "category": check_category,
    "confidence": check_confidence,
    "topics": _topics,
}
_CURRENT: Final[Mapping[str, Callable[[Fact], Any]]] = {
    "category": _category,
    "confidence": lambda fact: fact.confidence,
    "topics": lambda fact: fact.topics,
}


def _title_of(key: str) -> str | None:
    """Returns the key where it can be a title: the first line of JSON says nothing."""
    try:
        return check_title(key)
    except InvalidInputError:
        return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _json_object(content: str) -> dict[str, Any]:
    """Reads a content that was written as JSON; one that no longer is becomes a text."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {"content": content}
    return value if isinstance(value, dict) else {"content": content}


def _fits_front_matter(entry: Mapping[str, Any]) -> bool:
    return len(_dump(entry)) <= _MAX_FRONT_CHARACTERS


def _dump(value: Any, *, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError as error:
        raise InvalidInputError("value", f"cannot be written as JSON: {error}") from None


def _plain(value: Any, path: str, depth: int) -> Any:
    """Returns a copy of JSON's own types; a tuple becomes a list."""
    if depth > MAX_DEPTH:
        raise InvalidInputError("value", f"is nested more than {MAX_DEPTH} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        check_utf8(path, value)
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(path, f"is {value}, which JSON cannot hold")
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, path): _plain(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
    raise InvalidInputError(path, f"is of type {type(value).__name__}, which JSON cannot hold")


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise InvalidInputError(path, f"has a key of type {type(key).__name__}; JSON has only strings")
    check_utf8(path, key)
    return str.__str__(key)
