"""Interrupts an operation after every change of the disk, in several of the ways that a disk allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count

from deermem import MemoryRepository
from deermem.testing.disk_steps import Step
from deermem.testing.simulated_disk import SimulatedDisk

Operation = Callable[[MemoryRepository], object]
LOSSES = 6


def opened(disk: SimulatedDisk, *, days: int = 0) -> MemoryRepository:
    """Starts a process on a disk; its clock is the disk's, moved on by some days."""
    taken = " ".join(disk.tree())
    tokens = (f"{number:032x}" for number in count(1))
    free = (token for token in tokens if token not in taken)
    return MemoryRepository(
        disk.process(),
        clock=lambda: disk.now() + timedelta(days=days),
        new_token=lambda: next(free),
        lock_timeout=1.0,
    )


def interrupted(disk: SimulatedDisk, operation: Operation) -> Iterator[tuple[str, SimulatedDisk]]:
    """Yields the disk after each step of an operation: as a killed process leaves it, and without power.

    The last ones are those after the operation returned; the names of these begin with `done`.
    """
    running = disk.fork()
    stops: list[tuple[str, SimulatedDisk]] = []

    def note(step: Step) -> None:
        if step.changing:
            stops.append((f"step {step.index} {step}", running.fork()))

    running.after_step = note
    operation(opened(running))
    running.after_step = None
    stops.append(("done", running.fork()))
    for name, stop in stops:
        yield f"{name}: killed", stop.fork()
        for loss in stop.crash_states(LOSSES, seed=len(name)):
            yield f"{name}: lost {loss.lost}", loss.disk


def without_locks(disk: SimulatedDisk) -> dict[str, bytes]:
    """Returns the files of a disk but its locks."""
    return {
        path: data
        for path, data in disk.tree().items()
        if data is not None and not path.endswith(".memory.lock")
    }
