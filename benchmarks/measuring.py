"""Times several ways of doing one thing in turns, so that all of them meet the same machine."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Final

Clock = Callable[[], float]
WALL: Final[Clock] = perf_counter
# What never waits for the disk is timed without what other programs take in between: they would
# cost the longer of two sides more than its share.
PROCESSOR: Final[Clock] = process_time


def _nothing() -> None:
    """Prepares nothing."""


@dataclass(frozen=True, slots=True)
class Side:
    """Is one of the ways: `run` is timed, `prepare` runs before each sample and is not."""

    name: str
    run: Callable[[], object]
    prepare: Callable[[], object] = _nothing


@dataclass(frozen=True, slots=True)
class Spread:
    """Is the median of several figures between their quartiles."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, figures: Iterable[float]) -> Spread:
        """Returns the quartiles of one or more figures."""
        values = list(figures)
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, middle, high = quantiles(values, n=4, method="inclusive")
        return cls(low, middle, high)


Rounds = list[float]


def interleave(
    sides: Sequence[Side], *, rounds: int, samples: int, calls: int = 1, clock: Clock = WALL
) -> dict[str, Rounds]:
    """Times the sides in turns; the one that begins changes with every sample.

    The garbage collector stays on, as in the programs that use the store. What was there before a
    round is frozen, so that each side pays for the objects that it makes and for no others.

    Args:
        sides: What to time.
        rounds: How many medians to return.
        samples: How many samples each median is made of.
        calls: How often `run` is called for one sample; for work that takes microseconds.
        clock: What to read before and after a sample.

    Returns:
        By the side's name, one median for each round, in seconds a call.
    """
    medians: dict[str, Rounds] = {side.name: [] for side in sides}
    _round(sides, 1, calls, clock)
    for _ in range(rounds):
        for name, times in _round(sides, samples, calls, clock).items():
            medians[name].append(median(times))
    return medians


def _round(sides: Sequence[Side], samples: int, calls: int, clock: Clock) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    gc.collect()
    gc.freeze()
    try:
        for sample in range(samples):
            first = sample % len(sides)
            for side in (*sides[first:], *sides[:first]):
                side.prepare()
                times[side.name].append(_time(side.run, calls, clock))
    finally:
        gc.unfreeze()
    return times


def _time(run: Callable[[], object], calls: int, clock: Clock) -> float:
    repeat = range(calls)
    start = clock()
    for _ in repeat:
        run()
    return (clock() - start) / calls


def ratios(product: Rounds, floor: Rounds) -> Spread:
    """Returns the median of the ratios of the rounds, between their quartiles.

    Both medians of a round come from the same moments, so a disk that is slow for a while, which
    another program may cause, does not look like a slow store.
    """
    return Spread.of(above / below for above, below in zip(product, floor, strict=True))
