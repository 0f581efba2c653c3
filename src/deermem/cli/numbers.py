"""Numbers on the command line: each is refused in the same words, with its range."""

from __future__ import annotations

import math
from collections.abc import Callable

from deermem.cli.exits import UsageError


def whole_number(option: str, least: int, most: int | None = None) -> Callable[[str | int], int]:
    """Returns what reads the value of an option that is a whole number of a range."""
    bounds = f"of {least:,} or more" if most is None else f"from {least:,} to {most:,}"

    def parse(text: str | int) -> int:
        digits = str(text).removeprefix("+")
        # Python itself refuses to read numbers of thousands of digits.
        if digits.isascii() and digits.isdigit() and len(digits) < 19:
            number = int(digits)
            if least <= number and (most is None or number <= most):
                return number
        raise UsageError(f"{option} must be a whole number {bounds}")

    return parse


def confidence(text: str | float) -> float:
    """Reads a confidence.

    Raises:
        UsageError: It is not a number from 0 to 1.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise UsageError("--confidence must be a number from 0 to 1", "write 90% as 0.9")
    return number
