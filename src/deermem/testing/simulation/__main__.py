"""Runs many schedules on all processors: `python -m deermem.testing.simulation [FIRST] COUNT`.

The exit status is 1 if a schedule shows a problem; it is told whole, made as small as it gets.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing import Pool

from deermem.testing.simulation.runs import Run, shrink, simulate

_BATCH = 200


def counted(seeds: Sequence[int]) -> tuple[Counter[str], Run | None]:
    """Runs schedules up to the first that fails; returns what happened in them, and that one."""
    logging.disable(logging.CRITICAL)
    happened: Counter[str] = Counter()
    for seed in seeds:
        run = simulate(seed)
        happened["schedules"] += 1
        happened.update(f"calls {call.outcome}" for call in run.history.calls)
        happened.update(text.split(",", 1)[0].split(" ", 1)[-1] for _, text in run.history.events)
        if run.problems:
            return happened, shrink(run)
    return happened, None


def main(arguments: Sequence[str]) -> int:
    """Returns the exit status."""
    *first, number = map(int, arguments)
    start = first[0] if first else 0
    began = time.monotonic()
    happened: Counter[str] = Counter()
    failed: Run | None = None
    with Pool(os.cpu_count()) as pool:
        end = start + number
        batches = [range(each, min(each + _BATCH, end)) for each in range(start, end, _BATCH)]
        for some, run in pool.imap_unordered(counted, batches):
            happened += some
            if run is not None:
                failed = run
                sys.stdout.write(f"{run.story()}\n\n")
    for name, times in sorted(happened.items()):
        sys.stdout.write(f"{times:10,} {name}\n")
    sys.stdout.write(f"{time.monotonic() - began:10.1f} s\n")
    return 0 if failed is None else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:] or ["10000"]))
