"""Faults (guarantee G3): every single disk call of every operation fails, and the store stays whole."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

import pytest

from deermem import CommitInDoubt, DeerMemError, FactDraft, MemoryRepository, Scope
from deermem.format.layout import BACKUP_SUFFIX
from deermem.model.identity import FactId
from deermem.testing.crash_scenario import Laboratory, Scenario
from deermem.testing.disk_steps import ERRNOS, Fault, Step, StepKind
from deermem.testing.memory_model import MemoryModel, Observation, observe
from deermem.testing.simulated_disk import SimulatedDisk
from tests.crash.migrations import MIGRATIONS
from tests.crash.scenarios import SCENARIOS

BY_NAME: Final = {scenario.name: scenario for scenario in (*SCENARIOS, *MIGRATIONS)}
pytestmark = pytest.mark.crash

NAMED_WRITES: Final = ("create for a new user", "update", "delete", "change several facts")
OTHER_WRITES: Final = (
    "create in a new shard",
    "create in a shard that is there",
    "clear all",
    "delete an agent",
    "import",
)
MIGRATION_NAMES: Final = tuple(scenario.name for scenario in MIGRATIONS)
WRITES: Final = (*NAMED_WRITES, *OTHER_WRITES, *MIGRATION_NAMES)
# A step of these kinds may have had its effect although it is reported as failed.
LATE: Final = frozenset([StepKind.FSYNC, StepKind.SYNC, StepKind.RENAME, StepKind.UNLINK, StepKind.MKDIR])
POWER_LOSSES: Final = 16


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives the operations that guarantee G3 names every error, and with --whole the others, too."""
    if {"write", "number"} <= set(metafunc.fixturenames):
        others = ERRNOS if metafunc.config.getoption("whole") else (errno.EIO,)
        pairs = [(name, number) for name in NAMED_WRITES for number in ERRNOS]
        pairs += [(name, number) for name in (*OTHER_WRITES, *MIGRATION_NAMES) for number in others]
        ids = [f"{name}-{errno.errorcode[number]}" for name, number in pairs]
        metafunc.parametrize(("write", "number"), pairs, ids=ids)


@dataclass(frozen=True)
class Outcome:
    """What became of an operation on a disk that failed."""

    disk: SimulatedDisk
    error: Exception | None

    @property
    def in_doubt(self) -> bool:
        return isinstance(self.error, CommitInDoubt)


@cache
def initial_disk(name: str) -> SimulatedDisk:
    return Laboratory(BY_NAME[name]).initial_disk()


@cache
def steps(name: str) -> tuple[Step, ...]:
    """Lists the steps of an operation on a sound disk."""
    process, repository = Laboratory(BY_NAME[name]).open(initial_disk(name).fork(), "operation")
    BY_NAME[name].operation.run(repository)
    return tuple(process.steps)


def read(scenario: Scenario, disk: SimulatedDisk) -> Observation:
    _, repository = Laboratory(scenario).open(disk, "recovery")
    access(scenario, repository)
    ids = (*scenario.fact_ids(), "next")
    return observe(repository, scenario.user_id, scenario.agents, ids)


def access(scenario: Scenario, repository: MemoryRepository) -> None:
    """Does what every access to this memory does first."""
    if scenario.first is not None:
        scenario.first.run(repository)


def run(scenario: Scenario, fault: Fault) -> Outcome:
    """Runs the operation on a failing disk, then lets the same process write on a sound one."""
    disk = initial_disk(scenario.name).fork()
    process, repository = Laboratory(scenario).open(disk, "operation")
    process.faults.append(fault)
    error: Exception | None = None
    try:
        scenario.operation.run(repository)
    except Exception as raised:  # noqa: BLE001 - which ones are allowed is checked below
        error = raised
    process.faults.clear()
    assert not process.handles, f"left open: {sorted(handle.path for handle in process.handles)}"
    assert not disk.locks, "the lock is still held"
    failed = disk.fork()
    check_error(error, fault.number)
    check_next_write(scenario, repository_state(scenario, disk), disk, repository)
    return Outcome(failed, error)


def repository_state(scenario: Scenario, disk: SimulatedDisk) -> MemoryModel:
    return read(scenario, disk.fork()).model()


def check_error(error: Exception | None, number: int) -> None:
    if error is None or isinstance(error, DeerMemError):
        return
    assert isinstance(error, OSError), repr(error)
    assert error.errno == number, repr(error)


def check_next_write(
    scenario: Scenario, before: MemoryModel, disk: SimulatedDisk, repository: MemoryRepository
) -> None:
    """The process that met the fault writes again, and another one reads that."""
    scope = Scope.of(scenario.user_id)
    access(scenario, repository)
    repository.upsert_fact(scope, FactDraft("Written after the fault.", id=FactId("next")))
    expected = before.put(scope.agent, "next", "Written after the fault.").committed()
    assert repository_state(scenario, disk) == expected


def check_state(scenario: Scenario, outcome: Outcome, state: MemoryModel) -> None:
    check_sources(scenario, outcome.disk)
    before, after = scenario.before(), scenario.after()
    if outcome.error is None:
        assert state == after, "it returned, but the change is not there"
    elif outcome.in_doubt:
        assert state in (before, after)
    else:
        assert state == before, f"it raised {outcome.error!r}, but something changed"


def check_sources(scenario: Scenario, disk: SimulatedDisk) -> None:
    """Every file of version 1 is there, or its backup is, once the disk was recovered."""
    recovered = disk.fork()
    read(scenario, recovered)
    tree = recovered.tree()
    for path in scenario.backed_up:
        backup = path + BACKUP_SUFFIX
        original = scenario.files.get(backup) or scenario.files[path]
        assert original in (tree.get(path), tree.get(backup)), f"{path} is lost"


def faults(name: str, number: int) -> Iterator[Fault]:
    for step in steps(name):
        yield Fault.at(step.index, number)
        if step.kind in LATE:
            yield Fault.at(step.index, number, after=True)


def test_a_write_that_meets_a_fault_changes_all_or_nothing_and_the_next_one_works(
    write: str, number: int
) -> None:
    scenario = BY_NAME[write]
    for fault in faults(write, number):
        outcome = run(scenario, fault)
        check_state(scenario, outcome, repository_state(scenario, outcome.disk))


def power_losses(name: str, whole: bool) -> int:
    """Says how many losses of power to try after each fault; migrations take long to recover from."""
    return POWER_LOSSES if whole or name not in MIGRATION_NAMES else 4


@pytest.mark.parametrize("name", WRITES)
def test_what_a_failed_write_left_survives_a_loss_of_power_as_it_was_reported(name: str, whole: bool) -> None:
    scenario = BY_NAME[name]
    for fault in faults(name, errno.EIO):
        outcome = run(scenario, fault)
        for survivor in outcome.disk.crash_states(power_losses(name, whole)):
            check_state(scenario, outcome, repository_state(scenario, survivor.disk))


@pytest.mark.parametrize("name", WRITES)
def test_a_disk_that_fails_for_good_leaves_all_or_nothing_to_the_next_process(name: str, whole: bool) -> None:
    scenario = BY_NAME[name]
    for step in steps(name):
        outcome = run(scenario, Fault.at(step.index, errno.EROFS, lasting=True))
        # What only the rest of a deleted agent's directory met is told in the log: the agent is gone.
        assert outcome.error is not None or name == "delete an agent"
        check_state(scenario, outcome, repository_state(scenario, outcome.disk))
        for survivor in outcome.disk.crash_states(power_losses(name, whole)):
            check_state(scenario, outcome, repository_state(scenario, survivor.disk))


def attempt(scenario: Scenario, repository: MemoryRepository) -> Observation | OSError:
    try:
        return observe(repository, scenario.user_id, scenario.agents, scenario.fact_ids())
    except OSError as error:
        return error


@pytest.mark.parametrize("number", ERRNOS, ids=errno.errorcode.get)
def test_a_read_that_meets_a_fault_raises_it_or_shows_the_memory_and_never_less(number: int) -> None:
    scenario = BY_NAME["clear all"]
    process, repository = Laboratory(scenario).open(initial_disk(scenario.name).fork(), "recovery")
    expected = attempt(scenario, repository)
    assert isinstance(expected, Observation)
    for index in range(len(process.steps)):
        process, repository = Laboratory(scenario).open(initial_disk(scenario.name).fork(), "recovery")
        process.faults.append(Fault.at(index, number))
        seen = attempt(scenario, repository)
        assert seen.errno == number if isinstance(seen, OSError) else seen == expected
        assert not process.handles
        assert attempt(scenario, repository) == expected


@pytest.mark.parametrize("number", ERRNOS, ids=errno.errorcode.get)
def test_a_recovery_that_meets_a_fault_can_be_made_again(number: int) -> None:
    scenario = BY_NAME["recover a hot journal"]
    for fault in faults(scenario.name, number):
        outcome = run(scenario, fault)
        assert repository_state(scenario, outcome.disk) == scenario.after()
        for survivor in outcome.disk.crash_states(POWER_LOSSES):
            assert repository_state(scenario, survivor.disk) == scenario.after()
