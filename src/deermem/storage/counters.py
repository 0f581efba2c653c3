"""Counts what the store does, for whoever watches it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from deermem.storage.forks import follows_forks

COMMITS: Final = "commits"
CONFLICTS: Final = "conflicts"
RECOVERIES: Final = "recoveries"
LOCK_WAITS: Final = "lock_waits"
LOCK_TIMEOUTS: Final = "lock_timeouts"


class Counters:
    """Counts events by name; safe to use from several threads, which `+= 1` alone is not."""

    def __init__(self) -> None:
        self.begin_in_child()
        follows_forks(self)
        self._counts = dict.fromkeys((COMMITS, CONFLICTS, RECOVERIES, LOCK_WAITS, LOCK_TIMEOUTS), 0)

    def begin_in_child(self) -> None:
        """Lets a forked child count on."""
        self._mutex = threading.Lock()

    def count(self, name: str) -> None:
        """Counts one event."""
        with self._mutex:
            self._counts[name] += 1

    def counts(self) -> Mapping[str, int]:
        """Returns how often each event happened."""
        with self._mutex:
            return dict(self._counts)
