"""Time stamps as text: ISO 8601, in UTC and ending in `Z` when the store writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from deermem.errors import InvalidInputError

_STARTS_WITH_A_DATE = re.compile(r"\d{4}-\d\d-\d\d")
MAX_TIMESTAMP: Final = 64


def format_timestamp(moment: datetime) -> str:
    """Returns a moment as `2026-07-19T08:15:30.123456Z`; whole seconds have no fraction."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def parse_timestamp(text: str, field: str) -> datetime:
    """Reads an ISO 8601 time stamp; without a zone it is taken as UTC (contract section 2).

    Raises:
        InvalidInputError: The text is no time stamp.
    """
    if isinstance(text, str) and len(text) <= MAX_TIMESTAMP and _STARTS_WITH_A_DATE.match(text):
        try:
            moment = datetime.fromisoformat(text)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise InvalidInputError(field, "must be an ISO 8601 time stamp")


def normalise_timestamp(text: str, field: str) -> str:
    """Returns the same moment as the store writes it."""
    return format_timestamp(parse_timestamp(text, field))
