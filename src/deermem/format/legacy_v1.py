"""`memory.json` of version 1, which is read and never written.

    {"version": "1.0", "lastUpdated": "…", "user": {…}, "history": {…},
     "facts": [{"id": "…", "content": "…", "category": "…", "confidence": 0.9, "createdAt": "…",
                "source": "…"}, …]}

Later documents have a `revision`, and `facts` may be `{id: {"path": "…", "contentHash": "sha256:…"}}`,
then also with version 2.0. Keys that the store does not know are kept at every level.

Nothing is lost silently: each fact becomes a `LegacyFact`, a `LegacyReference` or a `Refusal`, but for a
fact that says the same as one before it with the same id. A fact with the same id that says something else
is refused, and the refusal names both; where the id is a generated one it gets another instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from deermem.errors import InvalidInputError, UnsupportedFormat
from deermem.format.fact_markdown import encode_fact
from deermem.format.legacy_document import LegacyDocument, LegacyFact, LegacyReference, Refusal
from deermem.format.legacy_facts import generated_id, read_legacy_fact
from deermem.format.legacy_json import MAX_LEGACY_BYTES, entry_text, load_legacy_object, shown, verbatim
from deermem.format.legacy_summaries import read_legacy_summaries, without_unknown_sections
from deermem.format.legacy_values import Remainder, read_moment, read_revision
from deermem.format.legacy_version import LEGACY_VERSIONS, is_legacy_manifest, version_text
from deermem.format.manifest_json import encode_manifest
from deermem.model.fact import ExtraField, Fact, next_fact
from deermem.model.identity import FactId, Scope, is_fact_id, parse_fact_id
from deermem.model.manifest import MANIFEST_VERSION, Manifest
from deermem.model.summaries import SECTIONS, Summaries

__all__ = [
    "MAX_LEGACY_BYTES",
    "LegacyDocument",
    "LegacyFact",
    "LegacyReference",
    "Refusal",
    "decode_legacy",
    "is_legacy_manifest",
]

_T = TypeVar("_T")

_KNOWN: Final = ("version", "revision", "lastUpdated", "facts", *SECTIONS)
_MAX_PATH: Final = 1_000
_PART = re.compile(r"(?!\.\.?$)[^/\\:\x00-\x1f\x7f]{1,255}")
_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


def decode_legacy(data: bytes, path: str, scope: Scope, now: str) -> LegacyDocument:
    """Reads a document of version 1, or one of version 2.0 with facts in it.

    Args:
        data: The whole file.
        path: What errors call the file.
        scope: Whose facts they become.
        now: When facts were created that nothing says it of.

    Raises:
        Corruption: The file is no JSON object, or beyond the limits.
        UnsupportedFormat: The document is of another version.
    """
    document = load_legacy_object(data, path)
    version = version_text(document)
    if version not in (*LEGACY_VERSIONS, MANIFEST_VERSION):
        raise UnsupportedFormat(path, shown(version), LEGACY_VERSIONS[-1])
    return _read(document, version, scope, now)


def _read(document: dict[str, Any], version: str, scope: Scope, now: str) -> LegacyDocument:
    refusals: list[Refusal] = []
    rest = Remainder(set(document))
    for key, value in document.items():
        if key not in _KNOWN:
            try:
                rest.keep(key, value)
            except InvalidInputError as error:
                refusals.append(Refusal(shown(key), "", error.reason, entry_text(key, value)))
    number = _head("revision", document, read_revision, rest, refusals) or 0
    moment = _head("lastUpdated", document, read_moment, rest, refusals) or ""
    summaries, extra = _fitting(read_legacy_summaries(document, refusals), tuple(rest.fields), now, refusals)
    facts = _Facts(scope, moment or None, now, refusals)
    facts.add_all(document.get("facts"))
    return LegacyDocument(
        version,
        number,
        moment,
        summaries,
        extra,
        tuple(facts.facts),
        tuple(facts.references),
        tuple(refusals),
    )


def _head(
    name: str,
    document: Mapping[str, Any],
    read: Callable[[str, Any, Remainder], _T],
    rest: Remainder,
    refusals: list[Refusal],
) -> _T | None:
    value = document.get(name)
    try:
        return read(name, value, rest)
    except InvalidInputError as error:
        refusals.append(Refusal(name, "", error.reason, verbatim(value)))
        return None


def _fitting(
    summaries: Summaries, extra: tuple[ExtraField, ...], now: str, refusals: list[Refusal]
) -> tuple[Summaries, tuple[ExtraField, ...]]:
    """Refuses first the unknown keys, then the unknown sections, until `memory.json` can hold the rest."""
    if _fits(summaries, extra, now):
        return summaries, extra
    refusals += [Refusal(shown(kept.key), "", "is too much for memory.json", kept.json) for kept in extra]
    if _fits(summaries, (), now):
        return summaries, ()
    return without_unknown_sections(summaries, refusals), ()


def _fits(summaries: Summaries, extra: tuple[ExtraField, ...], now: str) -> bool:
    try:
        encode_manifest(Manifest(1, now, summaries, extra))
    except InvalidInputError:
        return False
    return True


@dataclass(slots=True)
class _Facts:
    """Reads the facts of one document one after the other."""

    scope: Scope
    created_at: str | None
    now: str
    refusals: list[Refusal]
    facts: list[LegacyFact] = field(default_factory=list)
    references: list[LegacyReference] = field(default_factory=list)
    _places: dict[str, str] = field(default_factory=dict)
    _meanings: set[Fact] = field(default_factory=set)
    _occurrences: dict[str, int] = field(default_factory=dict)

    def add_all(self, facts: Any) -> None:
        if isinstance(facts, list):
            for number, value in enumerate(facts):
                self._add(value, f"facts[{number}]")
        elif isinstance(facts, dict):
            for key, entry in facts.items():
                self._refer(key, entry)
        elif facts is not None:
            self._refuse("facts", "", "is neither a list nor an object", verbatim(facts))

    def _refuse(self, place: str, name: str, reason: str, text: str) -> None:
        self.refusals.append(Refusal(place, name, reason, text))

    def _add(self, value: Any, place: str) -> None:
        try:
            fact = read_legacy_fact(value, place, self.scope, self.created_at)
            stored = next_fact(fact.draft, self.scope, self.now, None)
            encode_fact(stored)
        except InvalidInputError as error:
            self._refuse(place, error.field, error.reason, verbatim(value))
            return
        meaning = replace(stored, created_at="", updated_at="")
        if meaning in self._meanings:
            return
        if stored.id in self._places:
            if is_fact_id(value.get("id")):
                first = self._places[stored.id]
                self._refuse(place, "id", f"is the id of {first} too, which differs", verbatim(value))
                return
            fact = self._renumbered(fact, value.get("id"))
        self._meanings.add(meaning)
        self._places[str(fact.draft.id)] = place
        self.facts.append(fact)

    def _renumbered(self, fact: LegacyFact, original: Any) -> LegacyFact:
        base = str(fact.draft.id)
        fact_id = FactId(base)
        while fact_id in self._places:
            self._occurrences[base] = self._occurrences.get(base, 0) + 1
            fact_id = generated_id(self.scope, original, fact.draft.content, self._occurrences[base])
        return replace(fact, draft=fact.draft.with_id(fact_id))

    def _refer(self, key: str, entry: Any) -> None:
        place = f"facts.{shown(key)}"
        try:
            self.references.append(_reference(key, entry, place))
        except InvalidInputError as error:
            self._refuse(place, error.field, error.reason, entry_text(key, entry))


def _reference(key: str, entry: Any, place: str) -> LegacyReference:
    if not isinstance(entry, dict):
        raise InvalidInputError("", "is not an object")
    parts, content_hash = _parts(entry.get("path")), _content_hash(entry.get("contentHash"))
    return LegacyReference(place, parse_fact_id(key), parts, content_hash)


def _parts(path: Any) -> tuple[str, ...]:
    parts = tuple(path.split("/")) if isinstance(path, str) and len(path) <= _MAX_PATH else ()
    if not parts or not all(_PART.fullmatch(part) for part in parts):
        raise InvalidInputError("path", "is no relative path to a file")
    return parts


def _content_hash(value: Any) -> str | None:
    if value is None or value == "":
        return None
    match = _HASH.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InvalidInputError("contentHash", "is no SHA-256")
    return match[1].lower()
