"""What is drawn with Rich on a terminal; no text of a fact is ever taken for markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from deermem.cli.output import visible
from deermem.cli.texts import fact_cells, fact_properties
from deermem.model.fact import Fact


def fact_panel(fact: Fact) -> RenderableType:
    """Draws one fact: its text, then what is known of it."""
    parts: list[RenderableType] = []
    if fact.title != fact.content:
        parts.append(Text(fact.title, style="bold"))
    parts.append(Padding(Text(visible(fact.content)), (0, 0, 1, 2) if parts else (0, 0, 1, 0)))
    parts.append(properties(fact_properties(fact)))
    return Group(*parts)


def fact_table(facts: Iterable[Fact], *, with_agent: bool) -> Table:
    """Draws a list of facts."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    if with_agent:
        table.add_column("Agent", style="magenta", overflow="fold")
    table.add_column("Id", style="cyan", no_wrap=True)
    table.add_column("Category", overflow="fold")
    table.add_column("Conf.", justify="right")
    table.add_column("Title", ratio=1, overflow="fold")
    for fact in facts:
        table.add_row(*(Text(cell) for cell in fact_cells(fact, with_agent=with_agent)))
    return table


def properties(rows: Iterable[tuple[str, str]]) -> Table:
    """Draws names and values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(visible(value)))
    return table


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Draws a table of short cells."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


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
