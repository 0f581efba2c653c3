"""What a crash exploration starts from: a disk, an operation, and the memory before and after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from types import MappingProxyType
from typing import Any, Final

from deermem.format.layout import USERS
from deermem.model.identity import DEFAULT_AGENT
from deermem.repository import MemoryRepository
from deermem.testing.disk_steps import SimulatedDeath, Step
from deermem.testing.memory_model import Action, MemoryModel
from deermem.testing.simulated_disk import EPOCH, SimulatedDisk
from deermem.testing.simulated_filesystem import SimulatedFileSystem
from deermem.testing.simulated_process import Selection

# The parts of an exploration write at times of their own, whatever ran before them on other paths.
_TIMES: Final = MappingProxyType(
    {
        name: EPOCH + timedelta(days=day)
        for day, name in enumerate(("setup", "operation", "recovery", "write"))
    }
)


@dataclass(frozen=True)
class Scenario:
    """Describes one operation to interrupt.

    `files` are there first, durably, and stand for the memory `start`: those of version 1 and what the
    predecessor left, which the first access of all migrates. What each of `backed_up` holds must never be
    lost: the file is there, or its backup. `first` is what an access does before it reads.

    `setup` brings the disk into its initial state, which is durable as a whole unless `settled` is
    false. With `interrupted` that action ran last and its process died right after the first step
    that `interrupted_at` selects; the operation is then a read. `cleared` names agents that the
    operation clears. `removed_files` are files of others, by path, that it removes. `safety_copy` is the
    name of the one that it makes. With `snapshot` every file has a second name below that path, as after
    `cp -al`, and what is read there must never change. `options` are passed to the repository.
    """

    name: str
    operation: Action
    setup: tuple[Action, ...] = ()
    user_id: str | None = "alice"
    agents: tuple[str, ...] = (DEFAULT_AGENT,)
    settled: bool = True
    cleared: tuple[str, ...] = ()
    removed_files: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    interrupted: Action | None = None
    interrupted_at: Callable[[Step], bool] = lambda _: False
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    start: MemoryModel = field(default_factory=MemoryModel)
    first: Action | None = None
    backed_up: tuple[str, ...] = ()
    safety_copy: str = ""
    snapshot: str = ""

    def before(self) -> MemoryModel:
        """Returns the memory that may be found as long as the operation has not returned.

        A journal whose name is not durable may be lost with the whole interrupted action.
        """
        memory = self.start
        for action in self.setup:
            memory = action.model(memory)
        return self.interrupted.model(memory) if self.interrupted and self.settled else memory

    def after(self) -> MemoryModel:
        """Returns the memory that must be found once the operation returned."""
        before = self.before()
        started = self.interrupted.model(before) if self.interrupted and not self.settled else before
        return self.operation.model(started)

    def fact_ids(self) -> tuple[str, ...]:
        """Returns the ids of all facts that are there before or after."""
        return tuple(sorted({fact.fact_id for fact in self.before().facts | self.after().facts}))


class Laboratory:
    """Starts processes of one scenario so that the same disk always leads to the same steps.

    `omits` and `delays` plant a fault: the steps that every process leaves out, or puts off.
    """

    def __init__(
        self, scenario: Scenario, omits: Selection | None = None, delays: Selection | None = None
    ) -> None:
        self.scenario = scenario
        self._omits = omits
        self._delays = delays

    def open(
        self, disk: SimulatedDisk, part: str, *, seconds: int = 0
    ) -> tuple[SimulatedFileSystem, MemoryRepository]:
        """Starts a process with a new repository; `part` and `seconds` fix its time."""
        process = disk.process(part)
        process.omits, process.delays = self._omits, self._delays
        moment = _TIMES[part] + timedelta(seconds=seconds)
        return process, self._repository(process, moment)

    def initial_disk(self) -> SimulatedDisk:
        """Runs the setup and what is interrupted."""
        disk = self.quiet_disk()
        if self.scenario.interrupted is not None:
            self._interrupt(disk, self.scenario.interrupted)
        if self.scenario.settled:
            disk.settle()
        return disk.fork()

    def quiet_disk(self) -> SimulatedDisk:
        """Runs the setup alone."""
        disk = SimulatedDisk()
        for path, data in self.scenario.files.items():
            disk.put(path, data)
        for number, action in enumerate(self.scenario.setup):
            _, repository = self.open(disk, "setup", seconds=number)
            action.run(repository)
        for path, data in self.scenario.removed_files.items():
            disk.put(path, data)
        if self.scenario.snapshot:
            disk.settle()
            disk.link_tree(USERS, self.scenario.snapshot)
        return disk

    def _interrupt(self, disk: SimulatedDisk, action: Action) -> None:
        process, repository = self.open(disk, "setup", seconds=len(self.scenario.setup))

        def die(step: Step) -> None:
            if self.scenario.interrupted_at(step):
                process.kill()

        disk.after_step = die
        try:
            action.run(repository)
        except SimulatedDeath:
            return
        finally:
            disk.after_step = None
        raise ValueError(f"{action.name} was not interrupted")

    def _repository(self, process: SimulatedFileSystem, moment: datetime) -> MemoryRepository:
        numbers = count(1)

        def new_token() -> str:
            # A token is never used twice, and equal disks lead to equal tokens.
            paths = list(process.disk.tree())
            candidates = (f"{number:032x}" for number in numbers)
            return next(token for token in candidates if not any(token in path for path in paths))

        return MemoryRepository(
            process, clock=lambda: moment, new_token=new_token, lock_timeout=1.0, **self.scenario.options
        )
