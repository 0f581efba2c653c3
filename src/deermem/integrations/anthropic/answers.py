"""What the tool answers: the texts that Anthropic documents for `memory_20250818`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from anthropic.lib.tools import ToolError

MAX_LINES: Final = 999_999
_WIDTH: Final = 6
_LEVELS: Final = 2


def refusal(text: str) -> ToolError:
    """Returns the error that becomes a tool result with `is_error`."""
    return ToolError(text)


def no_such_path(path: str) -> ToolError:
    """Says to a view that there is nothing."""
    return refusal(f"The path {path} does not exist. Please provide a valid path.")


def nothing_to_edit(path: str) -> ToolError:
    """Says to a `str_replace` that there is no file."""
    return refusal(f"Error: The path {path} does not exist. Please provide a valid path.")


def does_not_exist(path: str) -> ToolError:
    """Says to an insert, a delete or a rename that there is nothing."""
    return refusal(f"Error: The path {path} does not exist")


def already_exists(path: str) -> ToolError:
    """Says to a create that there is a file or a directory."""
    return refusal(f"Error: File {path} already exists")


def destination_exists(path: str) -> ToolError:
    """Says to a rename that there is something at the new path."""
    return refusal(f"Error: The destination {path} already exists")


def listing(path: str, files: Mapping[tuple[str, ...], int]) -> str:
    """Lists a directory two levels deep.

    Args:
        path: The directory, as the model wrote it.
        files: The size of each file below it in bytes, by the names from there.
    """
    entries: dict[tuple[str, ...], tuple[int, bool]] = {}
    total = 0
    for names, size in files.items():
        if any(name.startswith(".") or name == "node_modules" for name in names):
            continue
        total += size
        for depth in range(1, min(len(names), _LEVELS) + 1):
            before = entries.get(names[:depth], (0, False))[0]
            entries[names[:depth]] = (before + size, depth < len(names))
    base = path.rstrip("/")
    lines = [f"{readable_size(total)}\t{base}"]
    for names, (size, is_directory) in sorted(entries.items()):
        lines.append(f"{readable_size(size)}\t{base}/{'/'.join(names)}{'/' if is_directory else ''}")
    header = (
        f"Here're the files and directories up to 2 levels deep in {path}, "
        "excluding hidden items and node_modules:"
    )
    return "\n".join((header, *lines))


def readable_size(size: int) -> str:
    """Returns a number of bytes as `0B`, `12B`, `1.5K` or `2M`."""
    if size < 1_024:
        return f"{size}B"
    unit, number = ("K", size / 1_024) if size < 1_024**2 else ("M", size / 1_024**2)
    text = f"{number:.1f}"
    return f"{text.removesuffix('.0')}{unit}"


def numbered(lines: Iterable[str], first: int) -> str:
    """Returns lines with their numbers, as the model knows them from editors."""
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def file_view(path: str, text: str, view_range: list[int] | None) -> str:
    """Shows a file or a range of its lines; the last number may be -1 for the end.

    Raises:
        ToolError: The file has too many lines, or there is no such range.
    """
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise refusal(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range is not None:
        if len(view_range) != 2 or not all(type(number) is int for number in view_range):
            raise refusal("Error: Invalid `view_range` parameter. It should be a list of two integers.")
        first, last = max(1, view_range[0]), len(lines) if view_range[1] == -1 else view_range[1]
        if first > len(lines) or last < first:
            raise refusal(
                f"Error: Invalid `view_range` parameter: {view_range}. Its elements should be in order and "
                f"within the range of lines of the file: [1, {len(lines)}]"
            )
    return f"Here's the content of {path} with line numbers:\n{numbered(lines[first - 1 : last], first)}"


def snippet(text: str, position: int) -> str:
    """Shows what is around the place of an edit."""
    lines = text.split("\n")
    changed = text.count("\n", 0, position)
    first = max(0, changed - 2)
    return (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        f"{numbered(lines[first : changed + 3], first + 1)}"
    )
