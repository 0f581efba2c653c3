"""The results as a table: drawn by Rich where it is installed, plain otherwise."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.results import OK, Result

_HEADERS: Final = ("row", "work", "measured", "floor", "ratio", "quartiles", "bar", "verdict")
_RIGHT: Final = frozenset(["measured", "floor", "ratio", "quartiles", "bar", "before", "change"])
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def show(results: Sequence[Result], before: Mapping[tuple[str, str], float] | None = None) -> None:
    """Prints the results; with the ratios of an earlier run also what changed."""
    headers = (*_HEADERS, "before", "change") if before is not None else _HEADERS
    rows = [cells(result, before) for result in results]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        sys.stdout.write(plain([headers, *rows]))
        return
    table = Table(show_edge=False)
    for header in headers:
        table.add_column(header, justify="right" if header in _RIGHT else "left")
    for result, row in zip(results, rows, strict=True):
        colour = "" if not result.verdict else "green" if result.verdict == OK else "red"
        table.add_row(*row, style=colour)
    # What goes into a file or a pipe is not squeezed into the width of a terminal.
    Console(width=None if sys.stdout.isatty() else 180).print(table)


def cells(result: Result, before: Mapping[tuple[str, str], float] | None = None) -> list[str]:
    """Returns a result as the cells of its line."""
    sign = "≥" if result.at_least else "≤"
    note = f" ({result.note})" if result.note else ""
    row = [
        result.row,
        f"{result.work}{note}",
        figure(result.product, result.unit),
        f"{figure(result.floor, result.unit)} {result.floor_work}",
        f"{result.ratio.middle:.2f}",
        f"{result.ratio.low:.2f} to {result.ratio.high:.2f}",
        "" if result.bar is None else f"{sign} {result.bar:g}",
        result.verdict,
    ]
    if before is not None:
        old = before.get(result.key)
        row += ["", ""] if old is None else [f"{old:.2f}", f"{result.ratio.middle / old - 1:+.0%}"]
    return row


def figure(value: float, unit: str) -> str:
    """Returns a figure with its unit, in three significant digits."""
    if unit == "s":
        scale, name = next((each for each in _UNITS if abs(value) >= each[0]), _UNITS[-1])
        return f"{_rounded(value / scale, 3)} {name}"
    if unit == "bytes":
        return f"{_rounded(value / 1e6, 3)} MB"
    return f"{_rounded(value, 4)}{' ' + unit if unit else ''}"


def _rounded(value: float, digits: int) -> str:
    return f"{float(f'{value:.{digits}g}'):,g}"


def plain(rows: Sequence[Sequence[str]]) -> str:
    """Returns aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "".join(line.rstrip() + "\n" for line in lines)


def markdown(results: Sequence[Result]) -> str:
    """Returns the table as `docs/internals/performance.md` has it."""
    return as_markdown([_HEADERS, *(cells(result) for result in results)])


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown; the first row is its header."""
    header, *others = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, ["---"] * len(header), *others))


def show_machine(machine: Mapping[str, Any]) -> None:
    """Prints what was measured on."""
    for name, value in machine.items():
        sys.stdout.write(f"{name.replace('_', ' ')}: {value}\n")
