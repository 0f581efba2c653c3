"""Facts to measure with: 300 to 600 bytes of English text, with full front matter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from time import time_ns
from typing import Final

from deermem import Fact, FactDraft, Scope, Source
from deermem.format.fact_markdown import encode_fact
from deermem.format.layout import DEFAULT_MANIFEST, bucket_parts, fact_parts, shard_of
from deermem.format.manifest_json import encode_manifest
from deermem.model.identity import FactId
from deermem.model.manifest import Manifest
from deermem.model.rules import CATEGORIES, derive_title
from deermem.model.summaries import SECTION_KEYS, Section, Summaries

NOW: Final = "2026-07-19T08:15:30.123456Z"
_SHORTEST: Final = 300
_SPREAD: Final = 210
_CATEGORIES: Final = sorted(CATEGORIES - {"other"})
_TOPICS: Final = ("python", "runtime", "travel", "food", "release planning", "hardware", "family", "music")
_SENTENCES: Final = (
    "Deploys go out on Tuesday mornings, and never on the day before a holiday.",
    "The staging cluster runs the same minor version of the database as production.",
    "Answers should begin with the result and give the reasons afterwards.",
    "Meetings before ten are fine as long as they are announced the evening before.",
    "The team keeps its design notes beside the code and reviews them in the same way.",
    "Long train journeys are for reading, so no calls are planned on those days.",
    "Dishes with peanuts are out of the question; everything else is welcome.",
    "Code samples are wanted with type annotations and without a framework.",
    "The budget for new hardware is settled once a year, at the end of September.",
    "Numbers in reports are given with units and with the date they were taken on.",
    "A failing test is fixed or removed on the same day; it is never just skipped.",
    "The weekly summary is written for people who were not in any of the meetings.",
    "Data of customers stays in the region in which it was collected.",
)
_SUMMARY: Final = (
    "Works on storage for small teams and prefers plain files that can be read without a program."
)


def content_of(number: int) -> str:
    """Returns the text of a fact; different numbers give different texts."""
    wanted = _SHORTEST + number * 37 % _SPREAD
    text = f"Note {number}."
    for step in count(number):
        if len(text) >= wanted:
            return text
        text += " " + _SENTENCES[step * 5 % len(_SENTENCES)]
    raise AssertionError("unreachable")


def new_contents() -> Iterator[str]:
    """Yields texts that no earlier call has yielded, in this process or another: each is a change."""
    return map(content_of, count(time_ns()))


def draft_of(number: int, fact_id: FactId | None = None) -> FactDraft:
    """Returns a draft of the fact with this number."""
    return FactDraft(
        content=content_of(number),
        id=fact_id,
        category=_CATEGORIES[number % len(_CATEGORIES)],
        topics=(_TOPICS[number % 8], _TOPICS[(number + 3) % 8]),
        confidence=round(0.5 + number % 50 / 100, 2),
        source=Source("conversation", f"thread_{number % 997:04}"),
    )


def fact_of(number: int, fact_id: FactId, scope: Scope) -> Fact:
    """Returns a stored fact, without the checks that a draft costs."""
    content = content_of(number)
    return Fact(
        id=fact_id,
        scope=scope,
        content=content,
        title=derive_title(content),
        revision=1,
        created_at=NOW,
        updated_at=NOW,
        category=_CATEGORIES[number % len(_CATEGORIES)],
        topics=(_TOPICS[number % 8], _TOPICS[(number + 3) % 8]),
        confidence=round(0.5 + number % 50 / 100, 2),
        source=Source("conversation", f"thread_{number % 997:04}"),
    )


def fact_id(number: int) -> FactId:
    """Returns an id of the form that the repository gives to new facts."""
    return FactId(f"fact_{number * 0x9E3779B97F4A7C15 % 2**64:016x}")


def unused_ids(facts: int, shards: set[str] | None = None) -> list[FactId]:
    """Returns some ids that no fact of a built scope has, those of the given shards alone if any."""
    candidates = (fact_id(number) for number in count(facts + 1_000_000))
    return list(islice((one for one in candidates if shards is None or shard_of(one) in shards), 2_000))


def manifest_bytes(*, revision: int = 1, summaries: bool = True) -> bytes:
    """Returns a `memory.json` whose six summaries say one sentence each, or nothing."""
    sections = dict.fromkeys(SECTION_KEYS, Section(_SUMMARY, NOW)) if summaries else {}
    return encode_manifest(Manifest(revision, NOW, Summaries.of(sections)))


def build_scope(root: Path, scope: Scope, facts: int, *, summaries: bool = True) -> list[FactId]:
    """Lays down a scope as the repository would have left it, but without a single sync.

    Returns:
        The ids of its facts.
    """
    bucket = root.joinpath(*bucket_parts(scope.user))
    ids = [fact_id(number) for number in range(facts)]
    made: set[Path] = set()
    for number, one in enumerate(ids):
        path = bucket.joinpath(*fact_parts(scope.agent, one))
        if path.parent not in made:
            _make(path.parent)
            made.add(path.parent)
        write_file(path, encode_fact(fact_of(number, one, scope)))
    _make(bucket)
    write_file(bucket / DEFAULT_MANIFEST, manifest_bytes(summaries=summaries))
    return ids


def _make(folder: Path) -> None:
    for path in (*reversed(folder.parents), folder):
        path.mkdir(mode=0o700, exist_ok=True)


def write_file(path: Path | str, data: bytes) -> None:
    """Writes a file with the store's mode, without a sync."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
