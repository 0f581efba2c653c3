"""Durability and atomicity (guarantee G1): every crash of every operation, and every recovery from it."""

from __future__ import annotations

import sys

import pytest

from deermem.testing.crash_explorer import Limits, explore
from deermem.testing.crash_scenario import Scenario
from tests.crash.migrations import MIGRATIONS
from tests.crash.scenarios import SCENARIOS

SAMPLE = Limits(states=600, recovery_states=500)
# A migration has more steps, and every recovery from it reads more.
SAMPLE_OF_A_MIGRATION = Limits(states=300, recovery_states=150)


@pytest.mark.crash
@pytest.mark.parametrize("scenario", [*SCENARIOS, *MIGRATIONS], ids=lambda scenario: scenario.name)
def test_a_crash_leaves_the_memory_before_or_after_and_a_store_that_works(
    scenario: Scenario, whole: bool
) -> None:
    sample = SAMPLE_OF_A_MIGRATION if scenario in MIGRATIONS else SAMPLE
    report = explore(scenario, Limits() if whole else sample)
    sys.stdout.write(f"{report}\n")
    violations = report.violations
    assert violations == 0, f"\n{report}"
    assert report.stop_points > 10
    assert report.states > report.stop_points
    assert report.recovery_states > 100
