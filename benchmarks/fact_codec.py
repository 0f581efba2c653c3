"""Fact documents against the disk: what reading and writing them costs beside opening the files.

Run it with `python -m benchmarks.fact_codec`. The floor is "scandir, then `open(path, 'rb').read()` of each
file"; each line is a ratio to it (bar P6 allows a cold read 3 in all). Floor and codec alternate within a
round; the result is the median of the rounds. Nothing is written but a temporary directory.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from deermem.format.fact_markdown import decode_fact, decode_text, encode_fact
from deermem.model.fact import Fact, FactDraft, Source, next_fact
from deermem.model.identity import FactId, Scope

FACTS = 2_000
ROUNDS = 7
SCOPE = Scope.of("alice", "research-agent")
WORDS = [
    "the",
    "user",
    "prefers",
    "small",
    "modules",
    "and",
    "asks",
    "for",
    "tests",
    "before",
    "code",
    "today",
]


def sample_facts(count: int, seed: int = 7) -> list[Fact]:
    """Returns facts with 300 to 600 bytes of content and every usual field."""
    chance = random.Random(seed)  # noqa: S311 - a sample, not a secret
    return [sample_fact(chance, number) for number in range(count)]


def sample_fact(chance: random.Random, number: int) -> Fact:
    """Returns one fact."""
    size, content = chance.randint(300, 600), ""
    while len(content) < size:
        content += chance.choice(WORDS) + " "
    draft = FactDraft(
        content=content[:size],
        id=FactId(f"fact_{number:08x}"),
        category=chance.choice(["constraint", "preference", "goal"]),
        topics=tuple(chance.sample(WORDS, 2)),
        confidence=chance.randint(0, 100) / 100,
        source=Source.parse(f"thread_{number}"),
    )
    return next_fact(draft, SCOPE, "2026-07-19T08:15:30.123456Z", None)


def read_all(directory: Path) -> list[tuple[str, bytes]]:
    """Is the floor: opens and reads every file."""
    found = []
    for entry in os.scandir(directory):
        with open(entry.path, "rb") as file:
            found.append((entry.name, file.read()))
    return found


def seconds(work: Callable[[], object]) -> float:
    """Returns how long one run takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def measure(directory: Path, facts: list[Fact]) -> dict[str, float]:
    """Returns the median ratio of each kind of work to the floor."""
    for fact in facts:
        (directory / f"{fact.id}.md").write_bytes(encode_fact(fact))
    documents = [(FactId(name.removesuffix(".md")), data) for name, data in read_all(directory)]
    works: dict[str, Callable[[], object]] = {
        "decode": lambda: [
            decode_fact(data, path="", scope=SCOPE, fact_id=fact_id) for fact_id, data in documents
        ],
        "decode, full parser": lambda: [
            decode_text(data.decode(), "", SCOPE, fact_id) for fact_id, data in documents
        ],
        "encode": lambda: [encode_fact(fact) for fact in facts],
        "read and decode": lambda: [
            decode_fact(data, path="", scope=SCOPE, fact_id=FactId(name.removesuffix(".md")))
            for name, data in read_all(directory)
        ],
    }
    ratios: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        floor = seconds(lambda: read_all(directory))
        for name, work in works.items():
            ratios[name].append(seconds(work) / floor)
    return {name: statistics.median(values) for name, values in ratios.items()}


def main() -> None:
    """Prints one ratio a line."""
    with tempfile.TemporaryDirectory() as directory:
        for name, ratio in measure(Path(directory), sample_facts(FACTS)).items():
            sys.stdout.write(f"{name:<20} {ratio:6.2f} x reading the files\n")


if __name__ == "__main__":
    main()
