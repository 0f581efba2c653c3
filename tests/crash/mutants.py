"""All wrong engines in one list, and what becomes of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from deermem.testing.crash_explorer import Limits, explore
from deermem.testing.crash_report import Report
from deermem.testing.crash_scenario import Scenario
from tests.crash.left_out import BY_NAME, SPARE, omission_of, syncs
from tests.crash.left_out import MUTATED as ROBBED
from tests.crash.planted_faults import PLANTED, PlantedFault
from tests.crash.swapped import MUTATED, Swap, swaps

CLOSE: Final = Limits(states=2_000, recovery_states=500, depth=1, first_violation=True)


@dataclass(frozen=True)
class Mutant:
    """Is an engine that leaves out a sync, or swaps two steps; `harmless` says why nothing is lost."""

    scenario: Scenario
    fault: str
    harmless: str
    swap: Swap | None = None

    def explore(self, limits: Limits) -> Report:
        """Runs the operation on the wrong engine."""
        if self.swap is None:
            return explore(self.scenario, limits, omits=omission_of(self.fault))
        return explore(self.scenario, limits, delays=self.swap.delays())

    def __str__(self) -> str:
        return f"{self.scenario.name}: {self.fault}"


@cache
def left_out() -> tuple[Mutant, ...]:
    """Returns the engines without one of the syncs."""
    return tuple(
        Mutant(BY_NAME[name], sync, SPARE.get(name, {}).get(sync, ""))
        for name in ROBBED
        for sync in syncs(name)
    )


@cache
def swapped() -> tuple[Mutant, ...]:
    """Returns the engines that swap two neighbouring steps."""
    return tuple(
        Mutant(BY_NAME[name], str(swap), swap.harmless(), swap)
        for name in MUTATED
        for swap in swaps(BY_NAME[name])
    )


class Row(NamedTuple):
    """Is a line of the table of all wrong engines; `good` says whether it came out as it should."""

    kind: str
    operation: str
    fault: str
    outcome: str
    good: bool

    def __str__(self) -> str:
        return f"| {self.kind} | {self.operation} | {self.fault} | {self.outcome} |"


def everyone() -> list[tuple[str, Mutant | PlantedFault]]:
    """Returns every wrong engine and the kind of its fault."""
    return [
        *(("a sync left out", mutant) for mutant in left_out()),
        *(("two steps swapped", mutant) for mutant in swapped()),
        *(("protocol", fault) for fault in PLANTED),
    ]


def row(number: int) -> Row:
    """Looks at one of all wrong engines."""
    kind, mutant = everyone()[number]
    fault = mutant.fault if isinstance(mutant, Mutant) else mutant.name
    report = mutant.explore(CLOSE)
    found = ", ".join(report.counts)
    if mutant.harmless:
        outcome = f"NOT HARMLESS: {found}" if found else f"harmless: {mutant.harmless}"
        return Row(kind, mutant.scenario.name, fault, outcome, not found)
    return Row(kind, mutant.scenario.name, fault, found or "SURVIVED", bool(found))
