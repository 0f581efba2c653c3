"""The command: chooses rows, runs them and reports."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

from benchmarks import charts, machine, results, sections, table
from benchmarks.bench import Bench
from benchmarks.peers.table import versions
from benchmarks.results import Result
from benchmarks.scale import FULL, QUICK, Scale


def main(arguments: Sequence[str] | None = None, scale: Scale | None = None) -> int:
    """Runs the benchmarks.

    Args:
        arguments: The command line; that of the process if omitted.
        scale: Takes the place of the full scale or the quick one.

    Returns:
        0, whatever the figures are: a bar is judged by a person. 1 if a benchmark failed.
    """
    options = _parser().parse_args(arguments)
    before = results.load_ratios(options.compare) if options.compare else None
    place = Path(mkdtemp(prefix=".bench-", dir=options.dir))
    try:
        facts = {**machine.describe(place), **versions(), "urgent": options.urgent}
        table.show_machine(facts)
        if facts["file_system"] in machine.IN_MEMORY:
            _say("warning: this is memory, not a disk; name a folder on a disk with --dir")
        bench = Bench(place, scale or (QUICK if options.quick else FULL), options.chart)
        found, failures = run(bench, _chosen(options), urgent=options.urgent)
    finally:
        shutil.rmtree(place)
    sys.stdout.write("\n")
    sections.show(found, before)
    if options.markdown:
        options.markdown.write_text(sections.markdown(found), encoding="utf-8")
    if options.json:
        results.save(options.json, facts, found, failures)
    return 1 if failures else 0


def run(bench: Bench, rows: Sequence[str], *, urgent: bool = False) -> tuple[list[Result], dict[str, str]]:
    """Runs some rows; a failed one does not keep the others from running."""
    found: list[Result] = []
    failures: dict[str, str] = {}
    for row in rows:
        _say(f"measuring {row} …")
        try:
            with machine.pinned(), machine.urgent(urgent):
                found.extend(sections.ALL[row](bench))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown, and the others still run
            traceback.print_exc()
            failures[row] = f"{type(error).__name__}: {error}"
    return found, failures


def _chosen(options: argparse.Namespace) -> list[str]:
    """Returns what to measure: what is named, else the rows and the peers."""
    return [
        *(options.rows or ()),
        *(options.sections or ()),
        *([charts.ROW] if options.chart else ()),
    ] or list(sections.USUAL)


def _rows(text: str) -> list[str]:
    rows = [row.strip().upper() for row in text.split(",")]
    for row in rows:
        if row not in sections.ALL:
            raise argparse.ArgumentTypeError(f"there is no row {row}; choose from {', '.join(sections.ALL)}")
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description="Measure the store against its floors."
    )
    parser.add_argument("--rows", type=_rows, metavar="P1,P4", help="measure only these")
    for name, what in sections.OPTIONS.items():
        parser.add_argument(
            f"--{name.lower()}", dest="sections", action="append_const", const=name, help=what
        )
    parser.add_argument(
        "--chart", type=Path, metavar="DIR", help="measure cost and throughput, and draw them"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no size above 10,000")
    if hasattr(os, "SCHED_FIFO"):
        urgent = "run before all ordinary programs, which a busy machine needs (for who may do that)"
        parser.add_argument("--urgent", action="store_true", help=urgent)
    parser.set_defaults(urgent=False)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to a file")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table for the documents")
    parser.add_argument(
        "--compare", type=Path, metavar="OLD.json", help="show what changed since an earlier run"
    )
    parser.add_argument(
        "--dir", type=Path, default=Path(), help="a folder on the disk to measure (default: the current one)"
    )
    return parser


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
