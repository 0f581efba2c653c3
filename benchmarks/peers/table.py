"""The peers as results of a run, and as a table that has one column for each of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.bench import Bench
from benchmarks.machine import version_of
from benchmarks.peers.costs import Cost, costs, installed
from benchmarks.peers.own import Own
from benchmarks.results import Result
from benchmarks.table import as_markdown, figure

ROW: Final = "PEERS"
_SIZES: Final = (100, 1_000, 10_000)
_PACKAGES: Final = ("langgraph-checkpoint-sqlite", "diskcache")


@dataclass(frozen=True, slots=True)
class PeerResult(Result):
    """Compares DeerMem (the product) with a peer (the floor) in one operation; below 1 DeerMem is faster."""

    operation: str = ""
    facts: int = 0


def measure(bench: Bench) -> Iterator[Result]:
    """Measures all operations at three sizes."""
    for facts in sorted({bench.scale.sized(size) for size in _SIZES}):
        yield from compared(costs(bench, facts))


def compared(found: Iterable[Cost]) -> Iterator[PeerResult]:
    """Compares DeerMem, which comes first in each operation, with the others."""
    own: Cost | None = None
    for cost in found:
        if own is None or cost.peer == Own.name:
            own = cost
            continue
        yield PeerResult.timed(
            ROW,
            f"{cost.operation}, {cost.facts:,} facts, against {cost.peer}",
            cost.peer,
            own.rounds,
            cost.rounds,
            operation=cost.operation,
            facts=cost.facts,
        )


def matrix(results: Sequence[PeerResult]) -> list[list[str]]:
    """Returns a header and one line for each operation and size; the quickest store of a line is in bold.

    Behind a peer's time stands how many times as long as DeerMem's it is.
    """
    peers = list(dict.fromkeys(result.floor_work for result in results))
    lines: dict[tuple[str, int], dict[str, PeerResult]] = {}
    for result in results:
        lines.setdefault((result.operation, result.facts), {})[result.floor_work] = result
    order = {operation: number for number, operation in enumerate(dict.fromkeys(key[0] for key in lines))}
    rows = [["operation", "facts", Own.name, *peers]]
    for (operation, facts), line in sorted(lines.items(), key=lambda each: (order[each[0][0]], each[0][1])):
        own = next(iter(line.values())).product
        best = min(own, *(result.floor for result in line.values()))
        cells = [_bold(figure(own, "s"), own == best)]
        for peer in peers:
            result = line[peer]
            time = _bold(figure(result.floor, "s"), result.floor == best)
            cells.append(f"{time} ({_times(1 / result.ratio.middle)})")
        rows.append([operation, f"{facts:,}", *cells])
    return rows


def _times(ratio: float) -> str:
    """Returns a ratio in two digits, or whole if it is large."""
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}"


def _bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text


def markdown(results: Sequence[PeerResult]) -> str:
    """Returns the table for the documents, and what each store keeps."""
    keeps = [f"- {peer.name}: {peer.keeps}.\n" for peer in installed()]
    return "".join([as_markdown(matrix(results)), "\n", *keeps])


def versions() -> dict[str, str]:
    """Returns what is compared with, by name."""
    return {"sqlite": sqlite3.sqlite_version, **{name: version_of(name) for name in _PACKAGES}}
