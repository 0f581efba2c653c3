"""Stops an operation after every change of the disk, in every way the disk allows, and recovers.

    report = explore(scenario)
    assert report.violations == 0, str(report)

At each stop point the process is killed, with or without a loss of power, and the next access must
show the memory as it was before the operation or as it is after it, keep showing it, and leave a
store that works. Recoveries are interrupted in the same ways.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from deermem.errors import LockTimeout
from deermem.testing.crash_examiner import AFTER, BEFORE, Examiner, Problem
from deermem.testing.crash_report import Report, Trace, Violation
from deermem.testing.crash_scenario import Laboratory, Scenario
from deermem.testing.disk_steps import Step
from deermem.testing.memory_model import MemoryModel, Observation
from deermem.testing.power_loss import PowerLosses
from deermem.testing.simulated_disk import SimulatedDisk
from deermem.testing.simulated_process import Selection


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds an exploration; what is beyond is sampled with the seed.

    Args:
        states: How many disk states of the operation's stop points to visit.
        recovery_states: How many of the recoveries' stop points.
        recovery_states_per_stop: How many of one stop point of a recovery.
        write_states: How many losses of power to try after the write that follows a recovery.
        depth: How many recoveries in a row are interrupted.
        first_violation: Stops at the first violation.
        seed: Chooses the samples.
    """

    states: int = 100_000
    recovery_states: int = 100_000
    recovery_states_per_stop: int = 64
    write_states: int = 16
    depth: int = 2
    first_violation: bool = False
    seed: int = 0


class Allowed(NamedTuple):
    """Says which memories may be found, and what a violation of that means."""

    memories: tuple[int, ...]
    otherwise: str


class _Found(Exception):
    """Ends an exploration that looks for one violation only."""


class Stop(NamedTuple):
    """Is a point at which a process may be interrupted: the disk right after a step."""

    name: str
    disk: SimulatedDisk
    settled: bool


class Visit(NamedTuple):
    """Is a disk state to be looked at, what is allowed there, and how it came about."""

    disk: SimulatedDisk
    key: bytes
    allowed: Allowed
    trace: Trace


EITHER: Final = Allowed((BEFORE, AFTER), "half a transaction")


def explore(
    scenario: Scenario,
    limits: Limits = Limits(),
    omits: Selection | None = None,
    delays: Selection | None = None,
) -> Report:
    """Explores one operation.

    Args:
        scenario: The operation and where it starts.
        limits: How much to explore.
        omits: Plants a fault, see `SimulatedProcess`.
        delays: Plants another kind of fault.
    """
    return Explorer(scenario, limits, Laboratory(scenario, omits, delays)).run()


class Explorer:
    """Explores one scenario; see `explore`."""

    def __init__(self, scenario: Scenario, limits: Limits, laboratory: Laboratory) -> None:
        self._scenario = scenario
        self._limits = limits
        self._laboratory = laboratory
        self._rng = random.Random(limits.seed)  # noqa: S311 - a sample, not a secret
        self._report = Report(operations=(scenario.name,), seed=limits.seed)
        self._examiner = Examiner(self._laboratory, limits.write_states, limits.seed)
        self._checked: set[bytes] = set()
        self._queued: set[tuple[bytes, Allowed]] = set()
        self._stopped: set[tuple[bytes, Allowed]] = set()

    def run(self) -> Report:
        """Explores the operation, then the recoveries."""
        with suppress(_Found):
            frontier = self._interrupt_the_operation()
            for _ in range(self._limits.depth):
                frontier = self._interrupt_recoveries(frontier)
        self._report.distinct = len(self._checked)
        return self._report

    def _interrupt_the_operation(self) -> list[Visit]:
        frontier = []
        stops = list(self._stops_of_the_operation())
        allowed = self._allowed_at(stops)
        self._report.stop_points = len(stops)
        per_stop = fair_share(self._limits.states, [PowerLosses(stop.disk.state).bound + 1 for stop in stops])
        # Most faults show once the operation returned, and its first steps take the longest to explore.
        order = reversed if self._limits.first_violation else iter
        for stop, permitted in order(list(zip(stops, allowed, strict=True))):
            if PowerLosses(stop.disk.state).bound > per_stop:
                self._report.sampled = (self._scenario.name,)
            for visit in self._visits(stop, permitted, Trace(self._scenario.name), per_stop):
                self._report.states += 1
                frontier += self._look(visit)
        return frontier

    def _stops_of_the_operation(self) -> Iterator[Stop]:
        disk = self._laboratory.initial_disk()
        quiet = self._laboratory.quiet_disk()
        self._examiner.shown.append(self._examiner.read(quiet, 0).manifest)
        start = disk if self._scenario.settled else quiet
        self._examiner.memories.append(self._expected(start, self._scenario.before()))
        running = disk.fork()
        stops = [Stop("before the first step", running.fork(), False)]
        process, repository = self._laboratory.open(running, "operation")

        def note(step: Step) -> None:
            if step.changing:
                stops.append(Stop(f"after step {step.index}: {step}", running.fork(keep_locks=True), False))

        running.after_step = note
        self._scenario.operation.run(repository)
        if process.handles:
            names = sorted(handle.path for handle in process.handles)
            self._add(Problem("handles left open", ", ".join(names)), Trace(self._scenario.name))
        self._examiner.memories.append(self._expected(running.fork(), self._scenario.after()))
        yield from stops
        yield Stop("after it returned", running.fork(), True)

    def _expected(self, disk: SimulatedDisk, model: MemoryModel) -> Observation:
        seen = self._examiner.read(disk.fork(), 0)
        if seen.model() != model:
            raise ValueError(f"{self._scenario.name}: the store holds {seen.model()}, the model says {model}")
        return seen

    def _allowed_at(self, stops: Sequence[Stop]) -> list[Allowed]:
        """Lets another process read at each stop point, and tells what is allowed from then on."""
        # An operation that only reads has the same memory before and after it.
        done = (self._examiner.number_of(self._examiner.memories[AFTER]),)
        allowed = []
        current = EITHER
        for number, stop in enumerate(stops):
            if stop.settled:
                current = Allowed(done, "an acknowledged change is lost")
            elif (self._live_reading(stop, number),) == done and current is EITHER:
                current = Allowed(done, "a change that a reader saw is lost")
            allowed.append(current)
        return allowed

    def _live_reading(self, stop: Stop, number: int) -> int | None:
        """Reads while the operation stands still; what a reader saw without a change counts."""
        trace = Trace(self._scenario.name).then(f"another process reads {stop.name}")
        disk = stop.disk.fork(keep_locks=True)
        try:
            seen = self._examiner.read(disk, number)
        except LockTimeout:
            return None
        except Exception as error:  # noqa: BLE001 - whatever it is, the reader should not have seen it
            self._add(Problem(f"a reader got {type(error).__name__}", str(error)), trace)
            return None
        if seen not in self._examiner.memories[: AFTER + 1]:
            self._add(Problem("a reader saw an uncommitted state", self._examiner.difference(seen)), trace)
        return self._examiner.number_of(seen) if disk.digest() == stop.disk.digest() else None

    def _visits(self, stop: Stop, allowed: Allowed, trace: Trace, limit: int) -> Iterator[Visit]:
        key = stop.disk.digest()
        if (key, allowed) in self._stopped:
            return
        self._stopped.add((key, allowed))
        yield Visit(stop.disk.fork(), key, allowed, trace.then(f"killed {stop.name}"))
        for survivor in stop.disk.crash_states(limit, self._limits.seed):
            loss = trace.then(f"power lost {stop.name}", survivor.lost)
            yield Visit(survivor.disk, survivor.digest, allowed, loss)

    def _look(self, visit: Visit) -> list[Visit]:
        """Checks a disk state; returns it if its recovery is still to be interrupted."""
        key = visit.key
        found = self._examiner.find(visit.disk, key)
        if key not in self._checked:
            self._checked.add(key)
            for problem in [found] if isinstance(found, Problem) else self._examiner.write(visit.disk, found):
                self._add(problem, visit.trace)
        if isinstance(found, Problem):
            return []
        if found not in visit.allowed.memories:
            kind = EITHER.otherwise if found > AFTER else visit.allowed.otherwise
            self._add(Problem(kind, self._examiner.difference(self._examiner.memories[found])), visit.trace)
        if (key, visit.allowed) in self._queued:
            return []
        self._queued.add((key, visit.allowed))
        return [visit]

    def _interrupt_recoveries(self, frontier: list[Visit]) -> list[Visit]:
        further: list[Visit] = []
        self._rng.shuffle(frontier)
        for number, visit in enumerate(frontier):
            for child in self._interruptions(visit):
                if self._report.recovery_states >= self._limits.recovery_states:
                    self._report.sampled_recoveries = (self._scenario.name,)
                    return further
                self._report.recovery_states += 1
                further += self._look(child)
            frontier[number] = visit._replace(disk=_GONE)
        return further

    def _interruptions(self, visit: Visit) -> Iterator[Visit]:
        running = visit.disk.fork()
        stops: list[Stop] = []
        answers: list[bool] = []

        def note(step: Step) -> None:
            if step.changing:
                name = f"after step {step.index}: {step}"
                stops.append(Stop(name, running.fork(), bool(answers)))

        running.after_step = note
        seen = self._examiner.read(running, visit.key[0], answers)
        stops.append(Stop("after it had answered", running.fork(), True))
        shown = Allowed((self._examiner.number_of(seen),), "a state that a recovery had shown is lost")
        self._report.recovery_stop_points += len(stops)
        trace = visit.trace.then("recovery by the next reader")
        for stop in stops:
            allowed = shown if stop.settled else visit.allowed
            if PowerLosses(stop.disk.state).bound > self._limits.recovery_states_per_stop:
                self._report.sampled_recoveries = (self._scenario.name,)
            yield from self._visits(stop, allowed, trace, self._limits.recovery_states_per_stop)

    def _add(self, problem: Problem, trace: Trace) -> None:
        self._report.add(Violation(problem.kind, problem.detail, trace))
        if self._limits.first_violation:
            raise _Found


_GONE: Final = SimulatedDisk()


def fair_share(budget: int, wishes: Sequence[int]) -> int:
    """Returns the limit per wish at which all wishes together fit a budget."""
    left = budget
    for number, wish in enumerate(sorted(wishes)):
        share = left // (len(wishes) - number)
        if wish > share:
            return max(share, 1)
        left -= wish
    return max(wishes, default=1)
