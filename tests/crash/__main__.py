"""Explores every scenario whole and prints one report: `python -m tests.crash [NAME …]`.

With `--mutants` it runs every wrong engine instead and prints a table of what became of each.
"""

from __future__ import annotations

import logging
import sys
from multiprocessing import Pool

from deermem.testing.crash_explorer import Limits, explore
from deermem.testing.crash_report import Report
from tests.crash import mutants
from tests.crash.migrations import MIGRATIONS
from tests.crash.scenarios import SCENARIOS

EVERY = {scenario.name: scenario for scenario in (*SCENARIOS, *MIGRATIONS)}


def explored(name: str) -> Report:
    """Explores the scenario with this name."""
    logging.disable(logging.CRITICAL)
    return explore(EVERY[name], Limits())


def told(number: int) -> mutants.Row:
    """Looks at one wrong engine."""
    logging.disable(logging.CRITICAL)
    return mutants.row(number)


def print_mutants() -> int:
    """Returns the exit status: 0 if every wrong engine was found or is harmless."""
    rows = []
    with Pool() as pool:
        for row in pool.imap(told, range(len(mutants.everyone()))):
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
            rows.append(row)
    harmless = sum(row.outcome.startswith("harmless") for row in rows)
    bad = sum(not row.good for row in rows)
    for kind in dict.fromkeys(row.kind for row in rows):
        sys.stdout.write(f"{kind}: {sum(row.kind == kind for row in rows)}\n")
    sys.stdout.write(f"altogether: {len(rows)}, of which harmless: {harmless}, not as expected: {bad}\n")
    return 1 if bad else 0


def main(names: list[str]) -> int:
    """Returns the exit status: 0 if nothing was violated."""
    if names == ["--mutants"]:
        return print_mutants()
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
