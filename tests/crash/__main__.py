"""Explores every scenario whole and prints one report: `python -m tests.crash [NAME …]`."""

from __future__ import annotations

import logging
import sys
from multiprocessing import Pool

from deermem.testing.crash_explorer import Limits, explore
from deermem.testing.crash_report import Report
from tests.crash.migrations import MIGRATIONS
from tests.crash.scenarios import SCENARIOS

EVERY = {scenario.name: scenario for scenario in (*SCENARIOS, *MIGRATIONS)}


def explored(name: str) -> Report:
    """Explores the scenario with this name."""
    logging.disable(logging.CRITICAL)
    return explore(EVERY[name], Limits())


def main(names: list[str]) -> int:
    """Returns the exit status: 0 if nothing was violated."""
    reports = []
    with Pool() as pool:
        for report in pool.imap(explored, names or list(EVERY)):
            sys.stdout.write(f"{report}\n\n")
            sys.stdout.flush()
            reports.append(report)
    total = Report.total(reports)
    sys.stdout.write(f"Altogether\n{total}\n")
    return 1 if total.violations else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
