"""P14: everything of a user is cleared in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Final

from benchmarks.bench import Bench
from benchmarks.floors import DurableRemovals
from benchmarks.measuring import Side, interleave
from benchmarks.results import Result
from benchmarks.samples import build_scope
from deermem import MemoryRepository, Scope
from deermem.format.layout import bucket_parts, facts_parts

_SCOPE: Final = Scope.of("alice", "assistant")


class Cleared:
    """Is a store that is filled before each time that it is cleared."""

    def __init__(self, bench: Bench, root: Path, facts: int) -> None:
        self._bench = bench
        self._root = root
        self._number_of_facts = facts
        self._fill()

    def _fill(self) -> None:
        if self._root.exists():
            rmtree(self._root)
        build_scope(self._root, _SCOPE, self._number_of_facts)
        self._bench.settle()
        self._repository = MemoryRepository(self._root)
        shards = self._root.joinpath(*bucket_parts(_SCOPE.user), *facts_parts(_SCOPE.agent))
        self._removals = DurableRemovals(shards)

    def product(self) -> Side:
        """Returns the store's way."""
        return Side("clear", lambda: self._repository.clear_all(_SCOPE.user.raw), self._fill)

    def floor(self) -> Side:
        """Returns the cheapest way."""
        return Side("floor", self._remove, self._fill)

    def _remove(self) -> None:
        self._removals()  # the one that was made by the last filling


def measure(bench: Bench) -> Iterator[Result]:
    """Measures one clear and one floor a round."""
    facts = bench.scale.sized(10_000)
    with bench.folder() as folder:
        store, floor = (Cleared(bench, folder / name, facts) for name in ("store", "floor"))
        sides = [store.product(), floor.floor()]
        medians = interleave(sides, rounds=bench.scale.rounds, samples=1)
    yield Result.timed(
        "P14",
        f"clear all of {facts:,} facts",
        "unlink each file, fsync each folder",
        medians["clear"],
        medians["floor"],
        bar=3.0,
    )
