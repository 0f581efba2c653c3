"""The world of a simulation: one disk, some processes, and a seeded scheduler that switches between them.

Each process is a greenlet that gives way before every step on the disk. So one thread does everything, and
a seed decides the whole history.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import count
from typing import Final

from greenlet import getcurrent, greenlet

from deermem.repository import MemoryRepository
from deermem.testing.disk_steps import Fault, SimulatedDeath, Step
from deermem.testing.simulated_disk import SimulatedDisk
from deermem.testing.simulated_filesystem import SimulatedFileSystem
from deermem.testing.simulated_lock import SimulatedLockFile
from deermem.testing.simulation.history import Call, History
from deermem.testing.simulation.state import Operation
from deermem.testing.simulation.workload import Intent, Knowledge, run

_GRANULARITIES: Final = (1, 10_000_000, 2_000_000_000)
_FAULTS: Final = (errno.EIO, errno.ENOSPC, errno.EACCES)


@dataclass(frozen=True, slots=True)
class Weather:
    """Says how often what happens: probabilities for each step, drawn from the seed."""

    switch: float
    kill: float
    power_loss: float
    fault: float
    jump: float
    give_up: float

    @classmethod
    def of(cls, rng: random.Random) -> Weather:
        """Draws the weather of one run; many runs are calm in some respect."""

        def sometimes(most: float) -> float:
            return rng.choice((0.0, most / 4, most))

        switch = rng.choice((0.05, 0.3, 1.0))
        return cls(
            switch, sometimes(0.008), sometimes(0.003), sometimes(0.004), sometimes(0.01), sometimes(0.004)
        )


class Process:
    """Is one process: it works through its intents, and starts anew after each death."""

    def __init__(self, name: str, intents: Sequence[Intent]) -> None:
        self.name = name
        self.intents = list(intents)
        self.lives = 0
        self.clock_offset = timedelta()
        self.waits_for: int | None = None
        self.gives_up = False
        self.disk: SimulatedFileSystem | None = None
        self.greenlet: greenlet | None = None

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.intents and self.greenlet is None


class World:
    """Runs one simulation.

    Args:
        seed: Decides everything that is not given.
        plans: What each process intends to do.
    """

    def __init__(self, seed: int, plans: Sequence[Sequence[Intent]]) -> None:
        self.history = History()
        self._rng = random.Random(seed)  # noqa: S311 - a schedule, not a secret
        self._weather = Weather.of(self._rng)
        self.disk = SimulatedDisk(granularity_ns=self._rng.choice(_GRANULARITIES))
        self.disk.before_step = self._before_step
        self.disk.when_blocked = self._blocked
        self._main = getcurrent()
        self._processes = [Process(f"p{number}", plan) for number, plan in enumerate(plans)]
        self._steps = 0
        self._tokens = count()

    def run(self) -> History:
        """Lets all processes finish, and reads everything once more at the end."""
        running: Process | None = None
        while True:
            ready = [process for process in self._processes if not process.is_done and self._can_go(process)]
            if not ready:
                break
            if running not in ready or self._rng.random() < self._weather.switch:
                running = self._rng.choice(ready)
            self._happenings(running)
            self._resume(running)
        self._last_look()
        return self.history

    def _can_go(self, process: Process) -> bool:
        if process.waits_for is None or process.waits_for not in self.disk.locks:
            process.waits_for = None
            return True
        if self._rng.random() < self._weather.give_up:
            process.gives_up, process.waits_for = True, None
            return True
        return False

    def _happenings(self, process: Process) -> None:
        """Lets things go wrong before the next step of a process."""
        rng, weather = self._rng, self._weather
        if rng.random() < weather.power_loss:
            self._lose_power()
        elif rng.random() < weather.kill and process.disk is not None and process.greenlet is not None:
            self._tell(f"{process.name} is killed")
            process.disk.kill()
        elif rng.random() < weather.fault and process.disk is not None:
            number, after = rng.choice(_FAULTS), rng.random() < 0.3
            self._tell(f"a step of {process.name} fails with {errno.errorcode[number]}")
            process.disk.faults.append(Fault.at(len(process.disk.steps), number, after=after))
        elif rng.random() < weather.jump:
            process.clock_offset = timedelta(seconds=rng.randrange(-100_000, 100_000))

    def _lose_power(self) -> None:
        """Kills everybody, and leaves of the disk what a loss of power may leave."""
        for process in self._processes:
            if process.disk is not None:
                process.disk.kill()
            process.waits_for = None
            if process.greenlet is not None:
                self._resume(process)
        survivor = self.disk.crash_state(self._rng)
        self._tell(f"the power is lost, and with it {list(survivor.lost)}")
        self.disk.state = survivor.disk.state
        self.disk.locks.clear()

    def _resume(self, process: Process) -> None:
        if process.greenlet is None:
            if not process.intents:
                return
            process.lives += 1
            process.greenlet = greenlet(lambda: self._live(process), self._main)
        process.greenlet.switch()
        if process.greenlet.dead:
            process.greenlet = None

    def _live(self, process: Process) -> None:
        process.disk = self.disk.process(f"{process.name}.{process.lives}")
        repository = self._repository(process, process.disk)
        knowledge = Knowledge()
        try:
            while process.intents:
                intent = process.intents.pop(0)
                self._call(process.name, intent.number, intent.decide(knowledge), repository, knowledge)
        except SimulatedDeath:
            return

    def _call(
        self,
        name: str,
        number: int,
        operation: Operation,
        repository: MemoryRepository,
        knowledge: Knowledge,
    ) -> None:
        self._steps += 1
        call = Call(number, name, operation, self._steps)
        self.history.calls.append(call)
        run(repository, call, knowledge)
        self._steps += 1
        call.ended = self._steps

    def _repository(self, process: Process, disk: SimulatedFileSystem) -> MemoryRepository:
        def clock() -> datetime:
            return self.disk.now() + process.clock_offset

        def new_token() -> str:
            return sha256(str(next(self._tokens)).encode()).hexdigest()[:32]

        return MemoryRepository(disk, clock=clock, new_token=new_token, lock_timeout=5.0)

    def _last_look(self) -> None:
        self.disk.before_step = self.disk.when_blocked = None
        reader = Process("end", ())
        repository = self._repository(reader, self.disk.process("end"))
        self._call("end", -1, Operation("read all"), repository, Knowledge())

    def _before_step(self, _: Step) -> None:
        self._steps += 1
        self._main.switch()

    def _blocked(self, lock: SimulatedLockFile, _: float) -> bool:
        process = next(each for each in self._processes if each.disk is lock.owner)
        process.waits_for = lock.inode
        self._main.switch()
        gave_up, process.gives_up = process.gives_up, False
        return not gave_up

    def _tell(self, text: str) -> None:
        self.history.events.append((self._steps, text))
