"""The explorer can fail: every wrong engine is found, or its fault is shown to be harmless."""

from __future__ import annotations

from typing import Final

import pytest

from deermem.testing.crash_explorer import Limits
from deermem.testing.disk_steps import StepKind
from tests.crash.mutants import CLOSE, Mutant, left_out, swapped
from tests.crash.planted_faults import PLANTED, PlantedFault, look_after_a_withdrawal
from tests.crash.swapped import MUTATED

# What is wrong ends an exploration soon; what is harmless is looked at closely by `make crash`.
QUICK: Final = Limits(states=200, recovery_states=60, depth=1, write_states=8, first_violation=True)
# The operations whose harmless swaps are explored without `--whole`, too.
CLOSELY: Final = ("update", "recover a hot journal")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Takes every wrong engine, but for most of the harmless swaps where there is no `--whole`."""
    if "robbed" in metafunc.fixturenames:
        metafunc.parametrize("robbed", left_out(), ids=str)
    if "swapping" in metafunc.fixturenames:
        every = metafunc.config.getoption("whole")
        chosen = [each for each in swapped() if every or not each.harmless or each.scenario.name in CLOSELY]
        metafunc.parametrize("swapping", chosen, ids=str)


def test_a_sync_that_is_left_out_is_found_or_spare(robbed: Mutant, whole: bool) -> None:
    check(robbed, whole)


def test_two_neighbouring_steps_in_the_wrong_order_are_found_or_harmless(
    swapping: Mutant, whole: bool
) -> None:
    check(swapping, whole)


def check(mutant: Mutant, whole: bool) -> None:
    report = mutant.explore(QUICK if mutant.harmless and not whole else CLOSE)
    if mutant.harmless:
        assert not report.violations, f"not harmless:\n{report}"
    else:
        assert report.violations, "nothing was lost"


def test_every_kind_of_step_but_the_first_of_a_file_is_swapped() -> None:
    kinds = {mutant.swap.first.kind for mutant in swapped() if mutant.swap is not None}
    assert kinds == {StepKind.WRITE, StepKind.FSYNC, StepKind.RENAME, StepKind.UNLINK, StepKind.SYNC}
    assert {mutant.scenario.name for mutant in swapped()} == set(MUTATED)


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_a_planted_fault_of_the_protocol_is_found(fault: PlantedFault) -> None:
    report = fault.explore(QUICK if fault.harmless else CLOSE)
    assert {kind.removeprefix("after the next write: ") for kind in report.counts} <= LOSSES, str(report)
    assert bool(report.violations) is not bool(fault.harmless)


def test_a_journal_that_was_taken_back_does_not_come_back_over_a_later_write() -> None:
    report = look_after_a_withdrawal(CLOSE)
    assert not report.violations, str(report)
    assert report.states > 2


# What a wrong protocol leads to; anything else would show that the planted fault broke something else.
LOSSES: Final = frozenset(
    [
        "half a transaction",
        "an acknowledged change is lost",
        "a change that a reader saw is lost",
        "a state that a recovery had shown is lost",
        "a reader saw an uncommitted state",
        "another memory after the next write",
        "a file of version 1 is lost, and so is its backup",
        "a file was written in place",
        "a late write brought a cleared scope back",
        "a revision is used for two states",
        # What the migration says when a source was half-removed or a backup is torn, and the scenario of
        # the fences that should tell of it.
        "recovery raised MigrationError",
        "recovery raised ValueError",
        # Only a recovery that trusts what is staged leads to a torn fact.
        "recovery raised Corruption",
    ]
)
