"""What can be measured beside the rows, and how all that was found is shown."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks import charts, load, scaling, table
from benchmarks.peers import table as peer_table
from benchmarks.peers.table import PeerResult
from benchmarks.results import Result
from benchmarks.rows import ROWS, Row
from benchmarks.scaling import ScaleResult

PEERS: Final = peer_table.ROW

# Too long for every run, or not about a bar: each has an option of its own.
SECTIONS: Final[dict[str, Row]] = {
    PEERS: peer_table.measure,
    charts.ROW: charts.measure,
    scaling.ROW: scaling.measure,
    load.ROW: load.measure,
}
OPTIONS: Final = {
    PEERS: "compare with other stores (as a run without options does, beside the rows)",
    scaling.ROW: "how costs grow up to 100,000 facts in a scope and 1,000 users (takes long)",
    load.ROW: "64 connections read and write through the gateway for 30 seconds",
}
ALL: Final[dict[str, Row]] = {**ROWS, **SECTIONS}
USUAL: Final = (*ROWS, PEERS)


def show(results: Sequence[Result], before: Mapping[tuple[str, str], float] | None = None) -> None:
    """Prints the results as one table, and what has more than a floor as tables of their own.

    With the ratios of an earlier run everything is in the one table, beside what changed.
    """
    if before is not None:
        table.show(results, before)
        return
    peers, grown, others = _parted(results)
    if others:
        table.show(others)
    if peers:
        sys.stdout.write("\nbehind a peer's time: how many times as long as DeerMem's it is\n")
        sys.stdout.write(table.plain(peer_table.matrix(peers)))
    for part in grown:
        sys.stdout.write("\ntime of a call, and the largest size of its process\n")
        sys.stdout.write(table.plain(scaling.matrix(part)))


def markdown(results: Sequence[Result]) -> str:
    """Returns the tables for the documents."""
    peers, grown, others = _parted(results)
    parts = [table.markdown(others)] if others else []
    if peers:
        parts.append(peer_table.markdown(peers))
    parts += [table.as_markdown(scaling.matrix(part)) for part in grown]
    return "\n".join(parts)


def _parted(results: Sequence[Result]) -> tuple[list[PeerResult], list[list[ScaleResult]], list[Result]]:
    """Parts the results by the table that they belong to."""
    peers = [result for result in results if isinstance(result, PeerResult)]
    grown: dict[str, list[ScaleResult]] = {}
    for result in results:
        if isinstance(result, ScaleResult):
            grown.setdefault(result.grows_with, []).append(result)
    others = [result for result in results if not isinstance(result, PeerResult | ScaleResult)]
    return peers, list(grown.values()), others
