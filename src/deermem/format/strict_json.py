"""JSON as the store reads and writes it: UTF-8, no NaN, no lone surrogates, bounded depth."""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

from deermem.errors import Corruption

_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_STRICT: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_DEEPEST_LINE: Final = "\n    "


def load_object(data: bytes, path: str) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        Corruption: The bytes are no UTF-8, no JSON, nested too deeply, or not an object.
    """
    try:
        document = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite)
        if b"\\u" in data:
            dump_compact(document).encode("utf-8")
    except RecursionError:
        raise Corruption(path, "is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise Corruption(path, f"is not UTF-8 at byte {error.start}") from None
    except UnicodeEncodeError:
        raise Corruption(path, "contains a lone surrogate") from None
    except ValueError as error:
        raise Corruption(path, f"is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Corruption(path, "is not a JSON object")
    return document


def dump_compact(value: Any) -> str:
    """Returns JSON on one line; text stays readable in every language."""
    return _COMPACT.encode(value)


def dump_document(value: dict[str, Any]) -> bytes:
    """Returns a JSON document with a line for each key of two levels, that ends in a line feed.

    What lies deeper stays on one line. The standard library indents at several times the cost.

    Raises:
        ValueError: There is a NaN, an infinity or a lone surrogate in it.
    """
    return (_indented(value, "\n") + "\n").encode("utf-8")


def _indented(value: Any, line: str) -> str:
    if not isinstance(value, dict) or not value or line == _DEEPEST_LINE:
        return _STRICT.encode(value)
    inner = line + "  "
    entries = [f"{_STRICT.encode(str(key))}: {_indented(item, inner)}" for key, item in value.items()]
    return f"{{{inner}{f',{inner}'.join(entries)}{line}}}"


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        # Written again it would be no JSON, and the file could not be read any more.
        raise ValueError("a number is too large")
    return number


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
