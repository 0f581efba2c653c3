"""How much of everything a run measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Scale:
    """Sets sizes and repetitions.

    `rounds` is how often each row is measured, `samples` how often a round repeats work that takes
    milliseconds, `seconds` how long writers write in one round. No size is above `limit`.
    `settles` makes a row wait, before it measures, until the disk has what the row wrote.
    """

    rounds: int
    samples: int
    seconds: float
    limit: int
    settles: bool = True

    @property
    def long_rounds(self) -> int:
        """How often a row is measured whose round takes half a minute and more."""
        return min(self.rounds, 5)

    def sized(self, count: int) -> int:
        """Returns a number of facts or users at this scale."""
        return min(count, self.limit)

    def fewer(self, part: int) -> int:
        """Returns the samples of a round for work that takes much longer than a commit."""
        return max(self.samples // part, 1)


FULL: Final = Scale(rounds=7, samples=40, seconds=10.0, limit=1_000_000)
QUICK: Final = Scale(rounds=5, samples=10, seconds=1.0, limit=10_000)
