"""Single values of version 1, which checked none of them.

Each reader returns what the field of a fact can hold, and hands what it cannot hold to the remainder: it is
kept under a key of its own, `legacy` and the field's name (`legacyTitle`, `legacyExpectedValidDays`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.format.legacy_json import OddNumber, kept_json, shown
from deermem.model.fact import DEFAULT_CONFIDENCE, ExtraField
from deermem.model.rules import MAX_COUNT, MAX_LIST_ITEMS, MAX_TEXT, MAX_TITLE, check_utf8
from deermem.model.timestamps import normalise_timestamp

_DECIMAL = re.compile(r"[-+]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,9})?")
_COUNT = re.compile(r"[1-9][0-9]{0,15}")
_LINE_OR_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Version 1 wrote this for a while: the offset of UTC and the letter for it.
_DOUBLE_ZONE: Final = "+00:00Z"


@dataclass(slots=True)
class Remainder:
    """Collects the keys that are kept beside the fields; `taken` are names that are in use."""

    taken: set[str]
    fields: list[ExtraField] = field(default_factory=list)

    def keep(self, key: str, value: Any) -> None:
        """Keeps a key that no field has.

        Raises:
            InvalidInputError: Nothing that the store writes could hold it.
        """
        check_utf8(shown(key), key)
        self.taken.add(key)
        self.fields.append(ExtraField(key, kept_json(shown(key), value)))

    def keep_original(self, name: str, value: Any) -> None:
        """Keeps the value that a field cannot hold; missing and blank ones say nothing."""
        if value is None or (isinstance(value, str) and not value.strip()):
            return
        words = name.split("_")
        key = "legacy" + "".join([word[:1].upper() + word[1:] for word in words])
        while key in self.taken:
            key += "_"
        try:
            self.keep(key, value)
        except InvalidInputError as error:
            raise InvalidInputError(name, error.reason) from None


def is_text(value: Any) -> bool:
    """Tells whether a value is a string that says something."""
    return isinstance(value, str) and not isinstance(value, OddNumber) and bool(value.strip())


def read_text(name: str, value: Any, rest: Remainder) -> str | None:
    """Returns a short text as it is."""
    if is_text(value) and check_utf8(name, value) <= MAX_TEXT:
        return str(value)
    rest.keep_original(name, value)
    return None


def read_texts(name: str, value: Any, rest: Remainder) -> tuple[str, ...]:
    """Returns a list of short texts; one string is a list of it."""
    given = value if isinstance(value, list) else [value]
    texts = [item for item in given if is_text(item) and check_utf8(name, item) <= MAX_TEXT]
    texts = texts[:MAX_LIST_ITEMS]
    if texts != given:
        rest.keep_original(name, value)
    return tuple(texts)


def read_title(value: Any, rest: Remainder) -> str | None:
    """Returns a title of one line; a longer one is cut short and kept whole beside it."""
    if not is_text(value):
        rest.keep_original("title", value)
        return None
    check_utf8("title", value)
    title = _LINE_OR_CONTROL.sub(" ", value.strip()[:MAX_TEXT]).strip()[:MAX_TITLE].strip()
    if title != value.strip():
        rest.keep_original("title", value)
    return title or None


def read_confidence(value: Any, rest: Remainder) -> float:
    """Returns a number between 0 and 1 (contract section 4); what is no number counts as 0.5."""
    number: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    elif isinstance(value, OddNumber):
        number = None if value == "NaN" else -1 if value.startswith("-") else 2
    elif isinstance(value, str) and _DECIMAL.fullmatch(value.strip()):
        number = float(value)
    clamped = DEFAULT_CONFIDENCE if number is None else float(min(max(number, 0), 1))
    if clamped != number:
        rest.keep_original("confidence", value)
    return clamped


def read_count(name: str, value: Any, rest: Remainder) -> int | None:
    """Returns an integer of at least 1; digits in a string and a float without a fraction are one."""
    is_digits = isinstance(value, str) and _COUNT.fullmatch(value)
    number = int(value) if is_digits or (isinstance(value, float) and value.is_integer()) else value
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= MAX_COUNT:
        return number
    rest.keep_original(name, value)
    return None


def read_revision(name: str, value: Any, rest: Remainder) -> int:
    """Returns a revision that another can follow; 0 when there is none."""
    if value == MAX_COUNT:
        rest.keep_original(name, value)
        return 0
    return 0 if value == 0 else read_count(name, value, rest) or 0


def read_moment(name: str, value: Any, rest: Remainder) -> str | None:
    """Returns a time stamp as the store writes it."""
    if is_text(value):
        text = value.strip()
        if text.endswith(_DOUBLE_ZONE):
            text = text[:-1]
        try:
            return normalise_timestamp(text, name)
        except InvalidInputError:
            pass
    rest.keep_original(name, value)
    return None
