"""What the tool answers: the texts that Anthropic documents for `memory_20250818`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from anthropic.lib.tools import ToolError

MAX_QUOTED: Final = 1_000


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


def occurs_nowhere(old: str, path: str) -> ToolError:
    """Says to a `str_replace` that the file does not have the text."""
    return refusal(
        f"No replacement was performed, old_str `{_quoted(old)}` did not appear verbatim in {path}."
    )


def occurs_often(old: str, lines: Iterable[int], *, more: bool) -> ToolError:
    """Says to a `str_replace` on which lines the text begins, and whether there may be more of them."""
    shown = [*map(str, lines), *(["..."] if more else [])]
    return refusal(
        f"No replacement was performed. Multiple occurrences of old_str `{_quoted(old)}` in lines: "
        f"{', '.join(shown)}. Please ensure it is unique"
    )


def _quoted(text: str) -> str:
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}..."
