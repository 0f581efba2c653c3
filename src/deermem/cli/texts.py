"""How facts and texts come in and go out as plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from deermem.cli.output import Output, is_terminal, one_line, visible
from deermem.errors import InvalidInputError
from deermem.model.fact import Fact
from deermem.model.rules import MAX_CONTENT_BYTES

STANDARD_INPUT: Final = "-"

# White space at both ends does not count, so there may be more of the text than of the content.
_MAX_READ: Final = 2 * MAX_CONTENT_BYTES


def given_text(field: str, text: str, out: Output) -> str:
    """Returns the text of an argument; `-` stands for standard input, as UTF-8.

    Raises:
        InvalidInputError: Standard input is closed, too long, or no UTF-8.
    """
    if text != STANDARD_INPUT:
        return text
    if sys.stdin is None:
        raise InvalidInputError(field, "cannot be read: standard input is closed")
    if is_terminal(sys.stdin):
        out.note("Type the text; end it with Ctrl-D (on Windows Ctrl-Z and Enter).")
    data = sys.stdin.buffer.read(_MAX_READ + 1)
    if len(data) > _MAX_READ:
        raise InvalidInputError(field, f"is larger than {MAX_CONTENT_BYTES:,} bytes")
    try:
        # Editors and shells of Windows put a byte-order mark before what they write.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(field, f"is not UTF-8 at byte {error.start}") from None


def category_of(fact: Fact) -> str:
    """Returns the category as the user knows it: their own where there is one."""
    return fact.category_extension or fact.category


def fact_cells(fact: Fact, *, with_agent: bool) -> list[str]:
    """Returns a fact as cells of a list: agent if wanted, id, category, confidence, title."""
    agent = [str(fact.scope.agent)] if with_agent else []
    return [*agent, fact.id, one_line(category_of(fact)), f"{fact.confidence:g}", one_line(fact.title)]


def fact_lines(fact: Fact) -> Iterator[str]:
    """Yields a fact as a person reads it: its text, then what is known of it."""
    if fact.title != fact.content:
        yield fact.title
        yield ""
    yield visible(fact.content)
    yield ""
    for name, value in fact_properties(fact):
        yield f"{name:<14}{value}"


def fact_properties(fact: Fact) -> list[tuple[str, str]]:
    """Returns what is known of a fact beside its text, as names and values."""
    user = fact.scope.user
    known = {
        "id": fact.id,
        "user": None if user.raw is None else user.raw,
        "agent": fact.scope.agent,
        "category": category_of(fact),
        "topics": ", ".join(fact.topics),
        "confidence": f"{fact.confidence:g}",
        "source": str(fact.source),
        "source error": fact.source_error,
        "revision": str(fact.revision),
        "created": fact.created_at,
        "updated": fact.updated_at,
        "consolidated": fact.consolidated_at,
        "consolidates": ", ".join(fact.consolidated_from),
        "confirmed": fact.last_confirmed_at,
        "confirmations": fact.confirmation_count,
        "valid days": fact.expected_valid_days,
    }
    return [(name, one_line(str(value))) for name, value in known.items() if value not in (None, "")]
