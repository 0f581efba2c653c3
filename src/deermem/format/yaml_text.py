"""YAML as the store writes it, and the YAML 1.2 core schema.

    scalar = plain | quoted
    plain  = words of ASCII letters, digits and "_.-", the first beginning with a letter or "_",
             which YAML 1.1 and 1.2 both take for that string
    quoted = '"' … '"' on one line, with escapes
    value  = null | true | false | integer | float | scalar | "[" value, … "]" | "{" scalar: value, … "}"

YAML 1.1 takes many more plain words for something else than a string (`no`, `1_000`, `12:30:45`, dates).
All of those begin with a digit or a sign, or are in `_RESERVED`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.format.strict_json import dump_compact

MAX_YAML: Final = 262_144
MAX_DEPTH: Final = 64
MAX_NUMBER: Final = 1_000
NULLS: Final = frozenset(["", "~", "null", "Null", "NULL"])

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*+(?: [A-Za-z0-9_.-]++)*+")
_RESERVED = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
# Neither reader may see a line break, an indicator or a character outside its printable set.
_ESCAPED = re.compile(
    '["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff'
    + "".join(chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Readers look for the ":" of a key only so far.
_MAX_SIMPLE_KEY = 1_000

_BOOLEANS = {name: name.lower() == "true" for name in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INTEGER = re.compile(r"[-+]?[0-9]++")
_OCTAL_OR_HEX = re.compile(r"0o[0-7]++|0x[0-9a-fA-F]++")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?")
_INFINITY = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NANS = frozenset([".nan", ".NaN", ".NAN"])


def core_value(text: str) -> str | int | float | bool | None:
    """Returns what a plain scalar means in the YAML 1.2 core schema.

    Raises:
        ValueError: It is a number of more than `MAX_NUMBER` digits.
    """
    if text in NULLS:
        return None
    if text[0] in "0123456789+-.":
        return _number(text)
    return _BOOLEANS.get(text, text)


def _number(text: str) -> str | int | float:
    if _INTEGER.fullmatch(text):
        return int(_short(text))
    if _OCTAL_OR_HEX.fullmatch(text):
        return int(_short(text)[2:], 8 if text[1] == "o" else 16)
    if _FLOAT.fullmatch(text):
        return float(_short(text))
    if _INFINITY.fullmatch(text):
        return -math.inf if text[0] == "-" else math.inf
    return math.nan if text in _NANS else text


def _short(number: str) -> str:
    if len(number) > MAX_NUMBER:
        raise ValueError(f"a number has more than {MAX_NUMBER:,} digits")
    return number


def scalar(text: str) -> str:
    """Returns a string as a YAML scalar that reads back as that string everywhere."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise UnicodeEncodeError("utf-8", character, 0, 1, "surrogates not allowed")
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def float_text(number: float) -> str:
    """Returns a float as YAML 1.1 and 1.2 both read it: never without a point."""
    if math.isfinite(number):
        text = repr(number)
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"


def entry(key: str, json_text: str, *, indent: str = "") -> str:
    """Returns a mapping entry, in flow style and on one line but for an extremely long key.

    Raises:
        InvalidInputError: The value is no JSON, is too deep, or cannot be UTF-8.
    """
    try:
        value = flow(json.loads(json_text), 2 if indent else 1)
        name = scalar(key)
    except UnicodeEncodeError:
        raise InvalidInputError(
            key[:100].encode(errors="replace").decode(), "contains a lone surrogate"
        ) from None
    except (ValueError, RecursionError):
        raise InvalidInputError(key[:100], "cannot be written as YAML") from None
    if len(name) > _MAX_SIMPLE_KEY:
        return f"{indent}? {name}\n{indent}: {value}\n"
    return f"{indent}{name}: {value}\n"


def flow(value: Any, depth: int = 1) -> str:
    """Returns a JSON value in flow style.

    Raises:
        ValueError: The value is nested too deeply or holds a number that is too long.
    """
    if isinstance(value, str):
        return scalar(value)
    if isinstance(value, float):
        return float_text(value)
    if not isinstance(value, list | dict):
        return _short(dump_compact(value))
    if depth >= MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        return f"[{', '.join([flow(item, depth + 1) for item in value])}]"
    return f"{{{', '.join([_flow_entry(key, item, depth) for key, item in value.items()])}}}"


def _flow_entry(key: str, value: Any, depth: int) -> str:
    name = scalar(key)
    explicit = "? " if len(name) > _MAX_SIMPLE_KEY else ""
    return f"{explicit}{name}: {flow(value, depth + 1)}"
