"""What is drawn with Rich on a terminal; no text of a fact is ever taken for markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from deermem.cli.output import shown
from deermem.cli.texts import fact_cells, fact_properties
from deermem.model.fact import Fact

_GAP: Final = 2
_TABLE_GAP: Final = 3
_TABLE_EDGES: Final = 2
_LEAST_LONG: Final = 30
_STYLES: Final = {"Agent": "magenta", "Id": "cyan"}
_SIDES: Final[dict[str, Literal["right"]]] = {"Conf.": "right"}


def fact_panel(fact: Fact) -> RenderableType:
    """Draws one fact: its text, then what is known of it."""
    parts: list[RenderableType] = []
    if fact.title != fact.content:
        parts.append(Text(shown(fact.title), style="bold"))
    parts.append(Padding(Text(shown(fact.content)), (0, 0, 1, 2) if parts else (0, 0, 1, 0)))
    parts.append(properties(fact_properties(fact)))
    return Group(*parts)


def fact_list(facts: Iterable[Fact], *, with_agent: bool) -> RenderableType:
    """Draws a list of facts."""
    names = (
        ("Agent", "Id", "Category", "Conf.", "Title") if with_agent else ("Id", "Category", "Conf.", "Title")
    )
    rows = [[shown(cell) for cell in fact_cells(fact, with_agent=with_agent)] for fact in facts]
    return Listing(names, rows, names.index("Title"))


@dataclass(frozen=True, slots=True)
class Listing:
    """Is a table where there is room for it, and else two lines for each row.

    Only the cells of one column, the long one, may be broken.
    """

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    long: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws for the width at hand."""
        del console
        widths = [max(map(cell_len, column)) for column in zip(self.names, *self.rows, strict=True)]
        short = _TABLE_EDGES + sum(
            width + _TABLE_GAP for index, width in enumerate(widths) if index != self.long
        )
        if short + min(widths[self.long], _LEAST_LONG) <= options.max_width:
            yield self._table()
        else:
            for row in self.rows:
                yield from self._stacked(row, options.max_width)

    def _table(self) -> Table:
        drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for index, name in enumerate(self.names):
            if index == self.long:
                drawn.add_column(name, overflow="fold")
            else:
                drawn.add_column(
                    name, no_wrap=True, style=_STYLES.get(name, ""), justify=_SIDES.get(name, "left")
                )
        for row in self.rows:
            drawn.add_row(*(Text(cell) for cell in row))
        return drawn

    def _stacked(self, row: Sequence[str], width: int) -> Iterable[RenderableType]:
        """Yields the long cell on a line of its own: above the others if it comes first, else below."""
        first = self.long == 0
        cells = [
            Text(f"{name.lower()} {cell}" if first else cell, style=_STYLES.get(name, ""))
            for index, (name, cell) in enumerate(zip(self.names, row, strict=True))
            if index != self.long
        ]
        above, below = [Text(row[self.long])], _packed(cells, width - _GAP)
        if not first:
            above, below = _packed(cells, width), above
        yield from above
        for line in below:
            yield Padding(line, (0, 0, 0, _GAP))


def _packed(cells: Iterable[Text], width: int) -> list[Text]:
    """Returns cells side by side, on as many lines as they need; only a cell too long for one is broken."""
    lines: list[Text] = []
    for cell in cells:
        if lines and lines[-1].cell_len + _GAP + cell.cell_len <= width:
            lines[-1] = Text.assemble(lines[-1], " " * _GAP, cell)
        else:
            lines.append(cell)
    return lines


def properties(rows: Iterable[tuple[str, str]]) -> Table:
    """Draws names and values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(shown(value)))
    return table


def tree(title: str, paths: Iterable[str]) -> Tree:
    """Draws files by their paths, with `/` between the parts."""
    drawn = Tree(Text(title, style="bold"))
    branches: dict[tuple[str, ...], Tree] = {(): drawn}
    for path in sorted(paths):
        parts = tuple(path.split("/"))
        for depth in range(len(parts)):
            if parts[: depth + 1] not in branches:
                style = "" if depth == len(parts) - 1 else "blue"
                branches[parts[: depth + 1]] = branches[parts[:depth]].add(Text(parts[depth], style=style))
    return drawn
