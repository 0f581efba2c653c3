"""P4: a snapshot is read again while nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.floors import check_and_parse
from benchmarks.measuring import PROCESSOR, Side, interleave
from benchmarks.results import Result
from benchmarks.samples import build_scope
from deermem import MemoryRepository, Scope
from deermem.format.layout import DEFAULT_MANIFEST, bucket_parts

_SCOPE: Final = Scope.of("alice", "assistant")
_CALLS: Final = 200
_CACHE_BYTES: Final = 1_000_000_000


def measure(bench: Bench) -> Iterator[Result]:
    """Measures two sizes, and a `memory.json` that has nothing to parse."""
    scale = bench.scale
    many = scale.sized(10_000)
    with bench.folder() as folder:
        stores = {
            "100 facts": (folder / "few", 100, True),
            f"{many:,} facts": (folder / "many", many, True),
            "100 facts, empty summaries": (folder / "bare", 100, False),
        }
        sides: list[Side] = []
        for name, (root, facts, summaries) in stores.items():
            build_scope(root, _SCOPE, facts, summaries=summaries)
            sides += [_read(name, root), _floor(name, root)]
        bench.settle()
        medians = interleave(
            sides, rounds=scale.rounds, samples=scale.fewer(2), calls=_CALLS, clock=PROCESSOR
        )
    for name in stores:
        work = f"cached snapshot, {name}"
        floor = "stat, open, read and parse memory.json"
        yield Result.timed("P4", work, floor, medians[name], medians[f"{name}: floor"], bar=3.0)
    few, much = medians["100 facts"], medians[f"{many:,} facts"]
    work = f"cached snapshot, {many:,} facts against 100"
    yield Result.timed("P4", work, "the same with 100 facts", much, few, bar=1.2)


def _read(name: str, root: Path) -> Side:
    repository = MemoryRepository(root, cache_bytes=_CACHE_BYTES)
    return Side(name, lambda: repository.snapshot(_SCOPE))


def _floor(name: str, root: Path) -> Side:
    path = root.joinpath(*bucket_parts(_SCOPE.user), DEFAULT_MANIFEST)
    return Side(f"{name}: floor", lambda: check_and_parse(path))
