"""What a view shows, and an edit of its surroundings: never more than the model's context should take.

Rows are shown whole up to a number of characters; then a row in brackets tells how to see the next. No row of
a file can pass for that one, because each begins with its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from deermem.integrations.anthropic.answers import refusal

MAX_LINES: Final = 999_999
_WIDTH: Final = 6
_LEVELS: Final = 2


def file_view(path: str, text: str, view_range: object, limit: int) -> str:
    """Shows a file or a range of its lines; the last number may be -1 for the end.

    Raises:
        ToolError: The file has too many lines, or there is no such range.
    """
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise refusal(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = _bounds(view_range, len(lines), "file")
    rows = _numbered(lines[first - 1 : last], first)
    return f"Here's the content of {path} with line numbers:\n{_page(rows, first, last, len(lines), limit)}"


def listing(path: str, files: Mapping[tuple[str, ...], int], view_range: object, limit: int) -> str:
    """Lists a directory two levels deep, or a range of the rows of that list.

    Args:
        path: The directory, as the model wrote it.
        files: The size of each file below it in bytes, by the names from there.
        view_range: The first and the last row; that of the directory itself is 1.
        limit: How many characters may be shown.

    Raises:
        ToolError: There is no such range.
    """
    rows = _tree(path.rstrip("/"), files)
    first, last = _bounds(view_range, len(rows), "listing")
    return (
        f"Here're the files and directories up to 2 levels deep in {path}, "
        "excluding hidden items and node_modules:\n"
        f"{_page(rows[first - 1 : last], first, last, len(rows), limit)}"
    )


def snippet(text: str, position: int, limit: int) -> str:
    """Shows what is around the place of an edit."""
    lines = text.split("\n")
    changed = text.count("\n", 0, position)
    first, last = max(1, changed - 1), min(len(lines), changed + 3)
    rows = _numbered(lines[first - 1 : last], first)
    return (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        f"{_page(rows, first, last, len(lines), limit)}"
    )


def readable_size(size: int) -> str:
    """Returns a number of bytes as `0B`, `12B`, `1.5K` or `2M`."""
    if size < 1_024:
        return f"{size}B"
    unit, number = ("K", size / 1_024) if size < 1_024**2 else ("M", size / 1_024**2)
    text = f"{number:.1f}"
    return f"{text.removesuffix('.0')}{unit}"


def _tree(base: str, files: Mapping[tuple[str, ...], int]) -> list[str]:
    entries: dict[tuple[str, ...], tuple[int, bool]] = {}
    total = 0
    for names, size in files.items():
        if any(name.startswith(".") or name == "node_modules" for name in names):
            continue
        total += size
        for depth in range(1, min(len(names), _LEVELS) + 1):
            before = entries.get(names[:depth], (0, False))[0]
            entries[names[:depth]] = (before + size, depth < len(names))
    rows = [f"{readable_size(total)}\t{base}"]
    for names, (size, is_directory) in sorted(entries.items()):
        rows.append(f"{readable_size(size)}\t{base}/{'/'.join(names)}{'/' if is_directory else ''}")
    return rows


def _numbered(lines: Iterable[str], first: int) -> Iterable[str]:
    """Yields lines with their numbers, as the model knows them from editors."""
    return (f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _bounds(view_range: object, count: int, what: str) -> tuple[int, int]:
    if view_range is None:
        return 1, count
    if (
        not isinstance(view_range, list)
        or len(view_range) != 2
        or not all(type(number) is int for number in view_range)
    ):
        raise refusal("Error: Invalid `view_range` parameter. It should be a list of two integers.")
    first, last = max(1, view_range[0]), count if view_range[1] == -1 else min(view_range[1], count)
    if first > count or last < first:
        raise refusal(
            f"Error: Invalid `view_range` parameter: {view_range}. Its elements should be in order and "
            f"within the range of lines of the {what}: [1, {count}]"
        )
    return first, last


def _page(rows: Iterable[str], first: int, last: int, count: int, limit: int) -> str:
    """Returns as many of the rows from `first` to `last` of `count` as fit, and how to see the others."""
    shown: list[str] = []
    left = limit
    for row in rows:
        if shown and len(row) > left:
            break
        shown.append(row)
        left -= len(row) + 1
    following = first + len(shown)
    notes = []
    if len(shown[0]) > limit:
        notes.append(
            f"[Line {first} is cut after {limit:,} of {len(shown[0]):,} characters. "
            "To view the rest of it, break it into lines with `str_replace`.]"
        )
        shown[0] = shown[0][:limit]
    if following <= last:
        notes.append(
            f"[At most {limit:,} characters are shown. View the next lines with `view_range` "
            f"[{following}, {-1 if last == count else last}].]"
        )
    return "\n".join((*shown, *notes))
