"""P8: several processes write the facts of one user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.bench import Bench
from benchmarks.children import Writing, write_together
from benchmarks.measuring import Spread, ratios
from benchmarks.results import Result
from benchmarks.samples import build_scope, new_contents
from deermem import MemoryRepository, Scope
from deermem.model.identity import FactId

_SCOPE: Final = Scope.of("alice", "assistant")
_WRITERS: Final = (1, 4, 8)
_LOCK_TIMEOUT: Final = 60.0


@dataclass(frozen=True, slots=True)
class Updates:
    """Lets each writer update facts that no other writer touches."""

    root: Path
    ids: tuple[FactId, ...]

    def begin(self, number: int) -> Callable[[], object]:
        """Opens the store as one of the writers."""
        repository = MemoryRepository(self.root, lock_timeout=_LOCK_TIMEOUT)
        own = cycle(self.ids[number :: max(_WRITERS)])
        contents = new_contents()
        return lambda: repository.edit_fact(_SCOPE, next(own), {"content": next(contents)})


def measure(bench: Bench) -> Iterator[Result]:
    """Measures 1, 4 and 8 writers in each round."""
    with bench.folder() as folder:
        work = Updates(folder / "store", tuple(build_scope(folder / "store", _SCOPE, 100)))
        bench.settle()
        runs: dict[int, list[Writing]] = {writers: [] for writers in _WRITERS}
        for _ in range(bench.scale.long_rounds):
            for writers in _WRITERS:
                runs[writers].append(write_together(work, writers, bench.scale.seconds))
    alone = [run.rate for run in runs[1]]
    for writers in _WRITERS[1:]:
        rates = [run.rate for run in runs[writers]]
        yield Result(
            "P8",
            f"{writers} processes write one user: commits a second",
            "one process",
            median(rates),
            median(alone),
            ratios(rates, alone),
            bar=0.7,
            at_least=True,
            unit="1/s",
        )
    for writers in _WRITERS:
        yield _waits(writers, runs[writers])


def _waits(writers: int, runs: list[Writing]) -> Result:
    """Compares the longest call with the usual one; the run that was worst counts."""
    longest, usual = [max(run.calls) for run in runs], [median(run.calls) for run in runs]
    each = [most / middle for most, middle in zip(longest, usual, strict=True)]
    spread = Spread.of(each)
    who = "1 process writes" if writers == 1 else f"{writers} processes write"
    return Result(
        "P8",
        f"{who} one user: longest wait of the worst run",
        "median wait",
        max(longest),
        median(usual),
        Spread(spread.low, max(each), spread.high),
        bar=20.0 if writers > 1 else None,
        note=f"median of the runs {spread.middle:.1f}",
    )
