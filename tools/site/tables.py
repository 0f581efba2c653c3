"""Markdown, written by programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; a cell may have code in it, and no line breaks."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(_cell(each) for each in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def link(text: str, name: str) -> str:
    """Returns a link to a name of the Python interface, wherever it is told of."""
    return f"[`{text}`][{name}]"


def heading(level: int, text: str, anchor: str) -> str:
    """Returns a heading with an anchor of its own."""
    return f"{'#' * level} {text} {{#{anchor}}}"


def code(text: str) -> str:
    """Returns text as code, or nothing if there is none."""
    return f"`{text}`" if text else ""
