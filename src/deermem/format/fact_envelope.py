"""The outside of a fact document: fences, line ends, heading, merge conflicts.

    file    = [byte-order mark] blank-line* "---" blanks EOL front "---" blanks EOL body
    body    = white space, optional heading, white space, content, white space
    heading = "#" blanks title EOL; a title has no control characters and at most 160 characters

If the opening fence ends in CRLF, the whole file is CRLF text; otherwise the body counts byte for byte.

Merge conflicts: lines that begin with `<<<<<<< `, `=======` and `>>>>>>> `, in this order, anywhere below
the opening fence, are what a version control system left behind, and the file is corrupt. A fact may
still say such a thing: the writer then puts the comment `INTENDED_MARKERS` first in the front matter, and
a file that begins so is taken at its word unless the front matter itself is in conflict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from deermem.errors import InvalidInputError
from deermem.model.rules import MAX_TITLE, check_title

MAX_FILE_BYTES: Final = 2_000_000
FENCE: Final = "---"
INTENDED_MARKERS: Final = "# The content shows conflict markers on purpose.\n"

_OPENING = re.compile(r"\ufeff?(?:[ \t]*+\r?\n)*+---[ \t]*+(\r?)\n")
_CLOSING = re.compile(r"^---[ \t]*+\r?$", re.MULTILINE)
_CONFLICT = [re.compile(mark, re.MULTILINE) for mark in (r"^<<<<<<< ", r"^=======[ \t\r]*+$", r"^>>>>>>> ")]
_HEADING = re.compile(r"#(?:[ \t]++([^\n]*+))?(?:\n|\Z)")


class NotAFactDocument(ValueError):
    """Says what is wrong with a document as a whole; `fact_markdown` turns it into a corruption error."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason, hint)
        self.reason = reason
        self.hint = hint


@dataclass(slots=True)
class Envelope:
    """Holds the two parts of a document, with line feeds; `line` is the first line of the front matter."""

    front: str
    line: int
    body: str


def open_envelope(text: str) -> Envelope:
    """Splits a document into front matter and body.

    Raises:
        NotAFactDocument: There is no front matter, or the file is an unfinished merge.
    """
    opening = _OPENING.match(text)
    if opening is None:
        _refuse_conflict(text)
        raise NotAFactDocument("does not begin with front matter between two lines '---'")
    line = text.count("\n", 0, opening.end()) + 1
    text = text[opening.end() :]
    if opening[1]:
        text = text.replace("\r\n", "\n")
    closing = _CLOSING.search(text)
    if closing is None:
        _refuse_conflict(text)
        raise NotAFactDocument("the front matter has no closing line '---'")
    front, body = text[: closing.start()], text[closing.end() :]
    if "\r" in front:
        front = front.replace("\r\n", "\n").replace("\r", "\n")
    if front.startswith(INTENDED_MARKERS):
        _refuse_conflict(front)
        return Envelope(front[len(INTENDED_MARKERS) :], line + 1, body)
    _refuse_conflict(text)
    return Envelope(front, line, body)


def has_conflict(text: str) -> bool:
    """Tells whether a text has the three lines of an unfinished merge."""
    if "=" not in text or "=======" not in text:  # one character is found faster
        return False
    position = 0
    for mark in _CONFLICT:
        found = mark.search(text, position)
        if found is None:
            return False
        position = found.end()
    return True


def _refuse_conflict(text: str) -> None:
    if has_conflict(text):
        raise NotAFactDocument(
            "holds git conflict markers",
            f"finish the merge; if they are meant, begin the front matter with {INTENDED_MARKERS.strip()!r}",
        )


def split_body(body: str) -> tuple[str | None, str]:
    """Returns the title, `None` if it is to be derived, and the content.

    A heading that could not be a title belongs to the content, unless it repeats the content's first line,
    as the predecessor's do; a heading alone is the content.
    """
    text = body.strip()
    heading = _HEADING.match(text)
    if heading is None:
        return None, text
    try:
        title = check_title(heading[1])
    except InvalidInputError:
        content = text[heading.end() :].strip()
        return None, content if _repeats(heading[1], content) else text
    content = text[heading.end() :].strip()
    return (title, content) if content or title is None else (None, title)


def _repeats(heading: str, content: str) -> bool:
    first = content.splitlines()[0].strip() if content else ""
    return bool(first) and heading.strip() == first[:MAX_TITLE].strip()
