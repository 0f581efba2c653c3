"""What a transaction gets from outside: its time and its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from deermem.errors import InvalidInputError
from deermem.model.timestamps import format_timestamp, parse_timestamp
from deermem.storage.bucket import ManifestImage

_OPERATION: Final = re.compile(r"[0-9a-f]{32}")
_CLOCK_STANDS_STILL: Final = timedelta(seconds=1)


class Stamps:
    """Asks the clock and the source of names, and checks what they say."""

    def __init__(self, clock: Callable[[], datetime], new_token: Callable[[], str]) -> None:
        self._clock = clock
        self._new_token = new_token

    def time(self) -> str:
        """Returns the time as it is stored."""
        return format_timestamp(self._now())

    def operation(self) -> str:
        """Returns a name that no other transaction has."""
        operation = self._new_token()
        if not isinstance(operation, str) or not _OPERATION.fullmatch(operation):
            raise InvalidInputError("new_token", "must return 32 hex digits")
        return operation

    def _now(self) -> datetime:
        now = self._clock()
        if not isinstance(now, datetime) or now.tzinfo is None:
            raise InvalidInputError("clock", "must return a time with a zone")
        return now

    def time_after(self, base: ManifestImage) -> str:
        """Returns the time, moved on where the clock stood still since the last commit.

        So no two revisions of a user have one time stamp, and a fact that was deleted and created
        again is told from the old one.
        """
        now = self._now()
        if base.identity is not None:
            last = parse_timestamp(base.manifest.last_updated, "lastUpdated")
            if timedelta(0) <= last - now < _CLOCK_STANDS_STILL:
                now = last + timedelta(microseconds=1)
        return format_timestamp(now)
