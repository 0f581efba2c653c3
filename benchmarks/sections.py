"""What can be measured beside the rows, and how what was found is shown."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks import table
from benchmarks.peers import table as peer_table
from benchmarks.peers.table import PeerResult
from benchmarks.results import Result
from benchmarks.rows import ROWS, Row

PEERS: Final = peer_table.ROW

# Too long for every run, or not about a bar: each has an option of its own.
SECTIONS: Final[dict[str, Row]] = {PEERS: peer_table.measure}
OPTIONS: Final = {PEERS: "compare with other stores (as a run without options does, beside the rows)"}
ALL: Final[dict[str, Row]] = {**ROWS, **SECTIONS}
USUAL: Final = (*ROWS, PEERS)


def show(results: Sequence[Result], before: Mapping[tuple[str, str], float] | None = None) -> None:
    """Prints the results as one table, and the peers as another."""
    peers, others = _parted(results)
    if others or before is not None:
        table.show([*others, *peers] if before is not None else others, before)
    if peers:
        sys.stdout.write("\nbehind a peer's time: how many times as long as DeerMem's it is\n")
        sys.stdout.write(table.plain(peer_table.matrix(peers)))


def markdown(results: Sequence[Result]) -> str:
    """Returns the tables for the documents."""
    peers, others = _parted(results)
    parts = [table.markdown(others)] if others else []
    if peers:
        parts.append(peer_table.markdown(peers))
    return "\n".join(parts)


def _parted(results: Sequence[Result]) -> tuple[list[PeerResult], list[Result]]:
    peers = [result for result in results if isinstance(result, PeerResult)]
    return peers, [result for result in results if not isinstance(result, PeerResult)]
