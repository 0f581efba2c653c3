"""P7: a snapshot is read again after somebody else changed one of its facts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.floors import stat_files
from benchmarks.measuring import PROCESSOR, Side, interleave
from benchmarks.results import Result
from benchmarks.samples import build_scope, new_contents
from deermem import MemoryRepository, Scope, Snapshot
from deermem.format.layout import bucket_parts, facts_parts

_SCOPE: Final = Scope.of("alice", "assistant")


class ChangedStore:
    """Is a scope that a writer changes without the reader's knowledge.

    The writer is a second repository with a cache of its own; the reader learns of its commits
    from the disk alone, as it would of another process's.
    """

    def __init__(self, root: Path, facts: int) -> None:
        self._ids = cycle(build_scope(root, _SCOPE, facts))
        self._contents = new_contents()
        self._writer = MemoryRepository(root, cache_bytes=0)
        self._reader = MemoryRepository(root)
        self._facts = str(root.joinpath(*bucket_parts(_SCOPE.user), *facts_parts(_SCOPE.agent)))
        self.read()

    def change(self) -> None:
        """Changes one fact."""
        self._writer.edit_fact(_SCOPE, next(self._ids), {"content": next(self._contents)})

    def read(self) -> Snapshot:
        """Reads all facts."""
        return self._reader.snapshot(_SCOPE)

    def stat(self) -> None:
        """Asks the disk which facts changed, which is the floor."""
        stat_files(self._facts)


def measure(bench: Bench) -> Iterator[Result]:
    """Measures beside a twin of the store, so that the floor too comes right after a commit."""
    scale = bench.scale
    facts = scale.sized(1_000)
    with bench.folder() as folder:
        store, twin = ChangedStore(folder / "store", facts), ChangedStore(folder / "twin", facts)
        bench.settle()
        sides = [Side("read", store.read, store.change), Side("floor", twin.stat, twin.change)]
        medians = interleave(sides, rounds=scale.rounds, samples=scale.samples, clock=PROCESSOR)
    work = f"snapshot after one of {facts:,} facts changed"
    yield Result.timed("P7", work, "scandir and stat each file", medians["read"], medians["floor"], bar=2.0)
