"""The rules that single values must keep (plan section 5, contract section 2)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from deermem.errors import InvalidInputError

OTHER: Final = "other"
DEFAULT_CATEGORY: Final = "context"
CATEGORIES: Final = frozenset(
    ["preference", "correction", "context", "goal", "behavior", "identity", "constraint", "decision", OTHER]
)

MAX_CONTENT_BYTES: Final = 1_000_000
MAX_TITLE: Final = 160
MAX_TEXT: Final = 4_000
MAX_LIST_ITEMS: Final = 1_000
MAX_COUNT: Final = 2**53

_LINE_OR_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_CONTROL_IN_LINE = re.compile(r" *[\x00-\x1f\x7f-\x9f]+ *")
_LINE_END = re.compile(r"[\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]+")


def check_utf8(field: str, value: str) -> int:
    """Returns the length in UTF-8 bytes and refuses lone surrogates."""
    try:
        return len(value) if value.isascii() else len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidInputError(field, "contains a lone surrogate") from None


def check_content(value: Any) -> str:
    """Returns the content without white space at both ends; every other character stays."""
    if not isinstance(value, str):
        raise InvalidInputError("content", "must be a string")
    trimmed = value.strip()
    if not trimmed:
        raise InvalidInputError("content", "must not be empty")
    if check_utf8("content", trimmed) > MAX_CONTENT_BYTES:
        raise InvalidInputError("content", f"is larger than {MAX_CONTENT_BYTES:,} bytes")
    return trimmed


def check_text(field: str, value: Any) -> str:
    """Returns a short non-empty text as it is."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(field, "must be a non-empty string")
    if check_utf8(field, value) > MAX_TEXT:
        raise InvalidInputError(field, f"is larger than {MAX_TEXT:,} bytes")
    return value


def check_optional_text(field: str, value: Any) -> str | None:
    """Returns a short text, or `None` for `None` and for an empty string."""
    return None if value is None or value == "" else check_text(field, value)


def check_title(value: Any) -> str | None:
    """Returns a given title; `None` and blank mean that it is derived from the content.

    Raises:
        InvalidInputError: The title has several lines, control characters or over 160 characters.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    title = check_text("title", value).strip()
    if _LINE_OR_CONTROL.search(title):
        raise InvalidInputError("title", "must be one line without control characters")
    if len(title) > MAX_TITLE:
        raise InvalidInputError("title", f"is longer than {MAX_TITLE} characters")
    return title


def derive_title(content: str) -> str:
    """Returns the title that a fact without one has: the first line of its content, cut short.

    A tab, or a control character that ends no line, becomes a blank.
    """
    lines = _LINE_END.split(content[: 8 * MAX_TITLE])
    return _first_of(_CONTROL_IN_LINE.sub(" ", line) for line in lines)


def is_derived_title(title: str, content: str) -> bool:
    """Tells whether a title is what is derived from a content, by this release or an earlier one.

    Earlier ones ended a title at a tab, too, and their files are still there.
    """
    if title == derive_title(content):
        return True
    start = content[: 8 * MAX_TITLE]
    return title == _first_of(_LINE_OR_CONTROL.split(start))


def _first_of(lines: Iterable[str]) -> str:
    """Returns the first of some lines that has text, cut short."""
    for line in lines:
        title = line.strip()
        bare = title.lstrip("#").strip() or title
        if bare:
            return bare if len(bare) <= MAX_TITLE else bare[: MAX_TITLE - 1].rstrip() + "…"
    return "Untitled"


def check_category(value: Any) -> str:
    """Returns the category as given; missing means `context`."""
    if value is None:
        return DEFAULT_CATEGORY
    return check_text("category", value).strip()


def split_category(category: str) -> tuple[str, str | None]:
    """Returns the stored category and, for a category of the user's own, its extension."""
    return (category, None) if category in CATEGORIES else (OTHER, category)


def check_confidence(value: Any) -> float:
    """Returns a finite number between 0 and 1; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError("confidence", "must be a number")
    if not 0 <= value <= 1 or not math.isfinite(value):
        raise InvalidInputError("confidence", "must be between 0 and 1")
    return float(value) + 0.0


def check_texts(field: str, value: Any) -> tuple[str, ...]:
    """Returns a list of strings as a tuple; one string is no list, and a mapping is none."""
    if value is None:
        return ()
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InvalidInputError(field, "must be a list of strings")
    items = tuple(value)
    if len(items) > MAX_LIST_ITEMS:
        raise InvalidInputError(field, f"has more than {MAX_LIST_ITEMS:,} items")
    for item in items:
        check_text(field, item)
    return items


def check_count(field: str, value: Any) -> int:
    """Returns an integer of at least 1; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_COUNT:
        raise InvalidInputError(field, "must be an integer of at least 1")
    return value


def check_optional_count(field: str, value: Any) -> int | None:
    """Returns an integer of at least 1, or `None`."""
    return None if value is None else check_count(field, value)
