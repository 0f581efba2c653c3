"""What a version-1 document holds, in the terms of version 2."""

from __future__ import annotations

from dataclasses import dataclass

from deermem.model.fact import ExtraField, FactDraft
from deermem.model.identity import FactId
from deermem.model.summaries import Summaries


@dataclass(frozen=True, slots=True)
class LegacyFact:
    """Is a version-1 fact that can become a fact.

    `draft` has an id, all unknown keys, and a time of creation if the document says anything of it.
    `titled` tells whether the source gave a title.
    """

    place: str
    draft: FactDraft
    titled: bool


@dataclass(frozen=True, slots=True)
class LegacyReference:
    """Points at the Markdown file of a fact.

    `parts` is the path below the directory that the document lies in. It leads neither upwards nor out,
    unless a part is a link. `content_hash` is the file's SHA-256 in lower-case hex digits, where known.
    """

    place: str
    fact_id: FactId
    parts: tuple[str, ...]
    content_hash: str | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Tells what version 2 cannot hold, and why.

    `field` is the key at fault, empty for the value as a whole. `text` is the whole value at `place` as
    compact JSON; where the last key of the place was shortened, an object of that one entry.
    """

    place: str
    field: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class LegacyDocument:
    """Holds everything that a version-1 document says.

    `version` is as found, empty when there was none; `revision` is 0 when there was none; `last_updated`
    is as the store writes it, empty when there was none that can be read.
    """

    version: str
    revision: int
    last_updated: str
    summaries: Summaries
    extra: tuple[ExtraField, ...]
    facts: tuple[LegacyFact, ...]
    references: tuple[LegacyReference, ...]
    refusals: tuple[Refusal, ...]
