"""The life of one process on a simulated disk: its steps, its faults and its death."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from deermem.testing.disk_steps import Fault, SimulatedDeath, Step, StepKind

if TYPE_CHECKING:
    from deermem.testing.simulated_disk import SimulatedDisk

T = TypeVar("T")


class SimulatedProcess:
    """Takes every step of one process.

    `steps` records what the process did. `omits` makes a planted fault of an engine: the `fsync`,
    `sync` and `unlink` steps that it selects, given the steps before, are left out.
    """

    def __init__(self, disk: SimulatedDisk, name: str) -> None:
        self.disk = disk
        self.name = name
        self.alive = True
        self.steps: list[Step] = []
        self.faults: list[Fault] = []
        self.omits: Callable[[Step, list[Step]], bool] | None = None
        self._lifetime: int | None = None

    def stop_after(self, changes: int) -> None:
        """Lets the process die right after that many further changing steps."""
        self._lifetime = changes

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
