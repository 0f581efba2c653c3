"""JSON as version 1 wrote it, and JSON that a fact document or `memory.json` can hold.

The predecessor wrote whatever Python calls JSON: NaN and infinities, integers of any length, lone
surrogates. A number that no JSON number of the store can hold is read as an `OddNumber`, which is its text.
"""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Any, Final

from deermem.errors import Corruption, InvalidInputError
from deermem.format.strict_json import dump_compact
from deermem.model.rules import check_utf8

MAX_LEGACY_BYTES: Final = 32_000_000
MAX_LEGACY_PARTS: Final = 1_000_000
MAX_LEGACY_DEPTH: Final = 200
MAX_KEPT_DEPTH: Final = 50
MAX_KEPT_PARTS: Final = 9_000
MAX_DIGITS: Final = 100
_MAX_SHOWN: Final = 100

# It also takes a string without an end for one, or a hostile file would be scanned from each quote again.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+["\\]?', re.DOTALL)
_BRACKET = re.compile(rb"[][{}]")


class OddNumber(str):
    """Is the text of a number that is not finite or has too many digits."""

    __slots__ = ()


def load_legacy_object(data: bytes, path: str) -> dict[str, Any]:
    """Reads a JSON object leniently.

    Raises:
        Corruption: The bytes are too many, no UTF-8, no JSON, nested too deeply or not an object, or an
            object in them gives one key two values.
    """
    if len(data) > MAX_LEGACY_BYTES:
        raise Corruption(path, f"is larger than {MAX_LEGACY_BYTES:,} bytes")
    _check_shape(data, path)
    try:
        document = json.loads(
            data.decode("utf-8-sig"),
            parse_constant=OddNumber,
            parse_float=_float,
            parse_int=_integer,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as error:
        raise Corruption(path, f"is not UTF-8 at byte {error.start}") from None
    except ValueError as error:
        raise Corruption(path, f"is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Corruption(path, "is not a JSON object")
    return document


def _check_shape(data: bytes, path: str) -> None:
    """Refuses what would cost much to parse, or what could be parsed but not written again."""
    structure = _STRING.sub(b"", data)
    if structure.count(b",") + structure.count(b"[") + structure.count(b"{") > MAX_LEGACY_PARTS:
        raise Corruption(path, f"has more than {MAX_LEGACY_PARTS:,} parts")
    steps = (1 if bracket[0] in b"[{" else -1 for bracket in _BRACKET.finditer(structure))
    if max(accumulate(steps), default=0) > MAX_LEGACY_DEPTH:
        raise Corruption(path, "is nested too deeply")


def _float(text: str) -> float | OddNumber:
    number = float(text)
    return number if math.isfinite(number) else OddNumber(text)


def _integer(text: str) -> int | OddNumber:
    return int(text) if len(text) <= MAX_DIGITS else OddNumber(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        for key, value in pairs:
            if found[key] != value:
                raise ValueError(f"an object has two values for {shown(key)!r}")
    return found


def verbatim(value: Any) -> str:
    """Returns a value as compact JSON that UTF-8 can hold."""
    text = dump_compact(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def shown(key: str) -> str:
    """Returns a key as messages show it: short, and without lone surrogates."""
    return key[:_MAX_SHOWN].encode("utf-8", "backslashreplace").decode("utf-8")


def entry_text(key: str, value: Any) -> str:
    """Returns an entry's value as JSON, with its key where that cannot be shown whole."""
    return verbatim(value if shown(key) == key else {key: value})


def kept_json(field: str, value: Any) -> str:
    """Returns a value as JSON text that a fact document and `memory.json` can hold.

    Raises:
        InvalidInputError: It is too large, too deep, or contains a lone surrogate.
    """
    level, parts = [value], 0
    for _ in range(MAX_KEPT_DEPTH):
        if not level:
            return dump_compact(value)
        parts += len(level)
        if parts > MAX_KEPT_PARTS:
            raise InvalidInputError(field, f"has more than {MAX_KEPT_PARTS:,} parts")
        below: list[Any] = []
        for each in level:
            if isinstance(each, str):
                check_utf8(field, each)
            elif isinstance(each, list):
                below += each
            elif isinstance(each, dict):
                below += each
                below += each.values()
        level = below
    raise InvalidInputError(field, "is nested too deeply")
