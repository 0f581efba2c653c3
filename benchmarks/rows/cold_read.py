"""P6: a process that has nothing cached reads a scope; the system has the files in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.floors import read_files
from benchmarks.measuring import PROCESSOR, Side, interleave
from benchmarks.results import Result
from benchmarks.samples import build_scope
from deermem import MemoryRepository, Scope
from deermem.format.layout import bucket_parts, facts_parts

_SCOPE: Final = Scope.of("alice", "assistant")
_CACHE_BYTES: Final = 1_000_000_000
_FLOOR: Final = "scandir, open and read each file"
_LINEAR: Final = 1.2


class ColdReads:
    """Reads one scope, each time with a repository that never saw it."""

    def __init__(self, root: Path, facts: int) -> None:
        build_scope(root, _SCOPE, facts)
        self._root = root
        self._facts = str(root.joinpath(*bucket_parts(_SCOPE.user), *facts_parts(_SCOPE.agent)))
        self._renew()

    def _renew(self) -> None:
        self._repository = MemoryRepository(self._root, cache_bytes=_CACHE_BYTES)

    def sides(self, name: str) -> list[Side]:
        """Returns the read and its floor."""
        return [
            Side(name, lambda: self._repository.snapshot(_SCOPE), self._renew),
            Side(f"{name}: floor", lambda: read_files(self._facts)),
        ]


def measure(bench: Bench) -> Iterator[Result]:
    """Measures two sizes, and whether the cost of a fact stays the same."""
    scale = bench.scale
    with bench.folder() as folder:
        sizes = sorted({scale.sized(1_000), scale.sized(10_000)})
        stores = {facts: ColdReads(folder / f"of {facts}", facts) for facts in sizes}
        bench.settle()
        medians: dict[str, list[float]] = {}
        for facts, store in stores.items():
            samples = scale.fewer(facts // 250 + 1)
            medians |= interleave(
                store.sides(str(facts)), rounds=scale.rounds, samples=samples, clock=PROCESSOR
            )
    for facts in sizes:
        work = f"cold snapshot, {facts:,} facts"
        yield Result.timed("P6", work, _FLOOR, medians[str(facts)], medians[f"{facts}: floor"], bar=3.0)
    few, many = sizes[0], sizes[-1]
    yield Result.timed(
        "P6",
        f"cold snapshot, a fact of {many:,}",
        f"a fact of {few:,}",
        [time / many for time in medians[str(many)]],
        [time / few for time in medians[str(few)]],
        bar=_LINEAR,
    )
