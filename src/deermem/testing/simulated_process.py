"""The life of one process on a simulated disk: its steps, its faults and its death."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from deermem.testing.disk_steps import CHANGING, Fault, SimulatedDeath, Step, StepKind

if TYPE_CHECKING:
    from deermem.testing.simulated_disk import SimulatedDisk

T = TypeVar("T")

Selection = Callable[[Step, list[Step]], bool]

# The steps that give a process nothing that its next step needs.
DELAYABLE: Final = frozenset(
    [StepKind.WRITE, StepKind.FSYNC, StepKind.RENAME, StepKind.UNLINK, StepKind.RMDIR, StepKind.SYNC]
)


class SimulatedProcess:
    """Takes every step of one process.

    `steps` records what the process did. Two faults of an engine can be planted: the `fsync`, `sync` and
    `unlink` steps that `omits` selects, given the steps before, are left out; a step of the kinds in
    `DELAYABLE` that `delays` selects takes place after the changing step that follows it.
    """

    def __init__(self, disk: SimulatedDisk, name: str) -> None:
        self.disk = disk
        self.name = name
        self.alive = True
        self.steps: list[Step] = []
        self.faults: list[Fault] = []
        self.omits: Selection | None = None
        self.delays: Selection | None = None
        self._delayed: Callable[[], object] | None = None
        self._lifetime: int | None = None

    def stop_after(self, changes: int) -> None:
        """Lets the process die right after that many further changing steps."""
        self._lifetime = changes

    def live_on(self) -> None:
        """Takes back what `stop_after` said."""
        self._lifetime = None

    def kill(self) -> None:
        """Ends the process: its locks are free, and whatever it tries from now on raises."""
        self.alive = False
        self.disk.release_locks(self)

    def perform(
        self,
        kind: StepKind,
        path: str,
        effect: Callable[[], T],
        *,
        target: str = "",
        when_failing: Callable[[], None] | None = None,
    ) -> T:
        """Makes one step: hooks, faults, the effect, the record of it, and perhaps death.

        `when_failing` is called when a fault keeps the effect from happening.
        """
        make = partial(self._make_step, kind, path, effect, target, when_failing)
        if self.delays is None or kind not in CHANGING:
            return make()
        delayed, self._delayed = self._delayed, None
        if delayed is not None:
            result = make()
            delayed()
            return result
        step = Step(len(self.steps), self.name, kind, path, target)
        if kind in DELAYABLE and self.delays(step, self.steps):
            self._delayed = make
            return None  # type: ignore[return-value]  # what these steps give is nothing
        return make()

    def _make_step(
        self,
        kind: StepKind,
        path: str,
        effect: Callable[[], T],
        target: str,
        when_failing: Callable[[], None] | None,
    ) -> T:
        step = Step(len(self.steps), self.name, kind, path, target)
        self._meet_death(step)
        if self.disk.before_step is not None:
            self.disk.before_step(step)
            self._meet_death(step)
        self.steps.append(step)
        fault = self._fault(step)
        if fault is not None and not fault.after:
            if when_failing is not None:
                when_failing()
            raise fault.error(step)
        result = effect()
        if step.changing:
            self.disk.clock_ns += self.disk.tick_ns
            self._lifetime = None if self._lifetime is None else self._lifetime - 1
        if self.disk.after_step is not None:
            self.disk.after_step(step)
        self._meet_death(step)
        if fault is not None:
            raise fault.error(step)
        return result

    def change(
        self,
        kind: StepKind,
        path: str,
        effect: Callable[[], None],
        *,
        when_failing: Callable[[], None] | None = None,
    ) -> None:
        """Makes a step that a planted fault may leave out."""
        step = Step(len(self.steps), self.name, kind, path)
        if self.omits is None or not self.omits(step, self.steps):
            self.perform(kind, path, effect, when_failing=when_failing)

    def _meet_death(self, step: Step) -> None:
        if self._lifetime is not None and self._lifetime <= 0 and step.changing:
            self.kill()
        if not self.alive:
            raise SimulatedDeath(f"{self.name} died at step {step.index}: {step}")

    def _fault(self, step: Step) -> Fault | None:
        for fault in self.faults:
            if fault.hits(step):
                if not fault.lasting:
                    self.faults.remove(fault)
                return fault
        return None
