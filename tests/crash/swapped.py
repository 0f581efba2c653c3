"""Engines that swap two neighbouring steps: every pair, and which of them are harmless."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from deermem.format.layout import JOURNAL, RECOVERY
from deermem.testing.crash_scenario import Laboratory, Scenario
from deermem.testing.disk_steps import Step, StepKind
from deermem.testing.simulated_process import DELAYABLE, Selection
from tests.crash.scenarios import BUCKET

REPLACING: Final = "roll back a transaction of the predecessor"
MUTATED: Final = (
    "create in a new shard",
    "update",
    "delete",
    "clear a scope",
    "recover a hot journal",
    "migrate all files of a user",
    REPLACING,
)
_STAGED: Final = f"{BUCKET}/{RECOVERY}/"
# Names that others rely on as soon as they are there, or not there any more.
_GATES: Final = (f"{BUCKET}/{JOURNAL}", f"{BUCKET}/memory.json")


class Swap(NamedTuple):
    """Is a changing step that takes place after the next one; `number` counts changing steps."""

    operation: str
    number: int
    before: Step
    first: Step
    second: Step

    def delays(self) -> Selection:
        """Returns what puts the first step off."""

        def selects(step: Step, earlier: list[Step]) -> bool:
            return step.process == "operation" and sum(each.changing for each in earlier) == self.number

        return selects

    def harmless(self) -> str:
        """Says why nothing is lost, where that is so."""
        if self.first.kind is StepKind.UNLINK and self.second.path.startswith(_STAGED):
            return "a journal that goes is done with, and needs nothing that is staged"
        if self.before.target.endswith(JOURNAL) and self.operation == REPLACING:
            return "until the new journal is durable the predecessor's is, and leads to the same"
        gate = (self.second.target or self.second.path) in _GATES
        if self.first.path == self.second.path or gate:
            return ""
        if self.first.path.startswith(_STAGED) and self.second.path.startswith(_STAGED):
            return "" if self.second.target else "what is staged counts only once the journal has its name"
        if self.first.kind is StepKind.SYNC and not self.before.target.endswith(JOURNAL):
            return "both come before the step that relies on them"
        return ""

    def __str__(self) -> str:
        text = f"{self.first} after {self.second}".replace(BUCKET, "BUCKET")
        return f"{re.sub('[0-9a-f]{32}', '*', text)} ({self.number})"


def swaps(scenario: Scenario) -> Iterator[Swap]:
    """Yields the pairs of neighbouring steps of an operation that can be swapped at all."""
    laboratory = Laboratory(scenario)
    process, repository = laboratory.open(laboratory.initial_disk(), "operation")
    scenario.operation.run(repository)
    steps = [step for step in process.steps if step.changing]
    for number, (first, second) in enumerate(pairwise(steps)):
        # A name must be free before it can be given to a file.
        is_needed = first.kind is StepKind.UNLINK and first.path == second.path
        if first.kind in DELAYABLE and not is_needed:
            yield Swap(scenario.name, number, steps[max(number - 1, 0)], first, second)
