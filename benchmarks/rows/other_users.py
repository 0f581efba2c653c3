"""P9: several processes write the facts of different users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.children import Work, write_together
from benchmarks.results import Result
from benchmarks.rows.point_writes import replacements
from benchmarks.samples import build_scope, new_contents
from deermem import MemoryRepository, Scope
from deermem.model.identity import FactId

_WRITERS: Final = 4
_AGENT: Final = "assistant"


@dataclass(frozen=True, slots=True)
class OwnUser:
    """Lets each writer update the facts of a user of its own."""

    root: Path
    ids: tuple[FactId, ...]

    def begin(self, number: int) -> Callable[[], object]:
        """Opens the store as one of the writers."""
        repository = MemoryRepository(self.root)
        scope, ids, contents = scope_of(number), cycle(self.ids), new_contents()
        return lambda: repository.edit_fact(scope, next(ids), {"content": next(contents)})


@dataclass(frozen=True, slots=True)
class OwnFloor:
    """Lets each writer replace three files in a folder of its own."""

    root: Path

    def begin(self, number: int) -> Callable[[], object]:
        """Makes the folder of one of the writers."""
        return replacements(self.root / f"{number}-{len(list(self.root.iterdir()))}")


def scope_of(number: int) -> Scope:
    """Returns the scope of one of the writers."""
    return Scope.of(f"user{number}", _AGENT)


def measure(bench: Bench) -> Iterator[Result]:
    """Measures how both the store and the floor of P1 scale, in each round."""
    rates: dict[tuple[str, int], list[float]] = {}
    with bench.folder() as folder:
        ids: list[FactId] = []
        for number in range(_WRITERS):
            ids = build_scope(folder / "store", scope_of(number), 100)
        (folder / "floor").mkdir()
        works: dict[str, Work] = {
            "store": OwnUser(folder / "store", tuple(ids)),
            "floor": OwnFloor(folder / "floor"),
        }
        bench.settle()
        for _ in range(bench.scale.long_rounds):
            for name, work in works.items():
                for writers in (1, _WRITERS):
                    run = write_together(work, writers, bench.scale.seconds / 2)
                    rates.setdefault((name, writers), []).append(run.rate)
    store, floor = (
        [four / one for four, one in zip(rates[name, _WRITERS], rates[name, 1], strict=True)]
        for name in ("store", "floor")
    )
    yield Result.timed(
        "P9",
        f"{_WRITERS} processes write a user each: scaling of commits from 1 to {_WRITERS}",
        "scaling of the floor of P1",
        store,
        floor,
        bar=0.8,
        at_least=True,
        unit="",
    )
