"""Runs scenarios on the machine's disk, each below a root of its own, for a test that traces the process.

    python -m tests.kernel.traced DIRECTORY PLANT SCENARIO …

PLANT names a fault to plant, or is empty.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Final

from deermem import MemoryRepository
from deermem.format.layout import fact_parts
from deermem.maintenance.check import check_user
from deermem.maintenance.erase import erase_user
from deermem.maintenance.repair import repair_user
from deermem.maintenance.taking_back import undo
from deermem.model.identity import FactId
from deermem.storage.filesystem import LocalFileSystem, directory
from deermem.storage.port import FileSystem
from deermem.testing.crash_scenario import Scenario
from deermem.testing.memory_model import Action, MemoryModel
from tests.crash.migrations import MIGRATIONS
from tests.crash.scenarios import BUCKET, HERE, SCENARIOS, TWO_AGENTS, USER, clear


def _as_it_was(memory: MemoryModel) -> MemoryModel:
    """Stands for a model where only the steps are looked at."""
    return memory


def _mend(repository: MemoryRepository) -> object:
    return repair_user(repository, HERE.user, check_user(repository, USER).findings)


_DAMAGED: Final = "/".join((BUCKET, *fact_parts(HERE.agent, FactId("damaged"))))
MAINTENANCE: Final = (
    Scenario(
        "erase a user",
        Action("erase", lambda repository: erase_user(repository, USER), _as_it_was),
        TWO_AGENTS,
    ),
    Scenario(
        "undo a clear",
        Action("undo", lambda repository: undo(repository, HERE.user), _as_it_was),
        (*TWO_AGENTS, clear(HERE)),
    ),
    Scenario("repair", Action("repair", _mend, _as_it_was), TWO_AGENTS, removed_files={_DAMAGED: b"no fact"}),
)
EVERY: Final = {scenario.name: scenario for scenario in (*SCENARIOS, *MIGRATIONS, *MAINTENANCE)}
NOW: Final = datetime(2026, 1, 2, tzinfo=UTC)  # a day after the setup of the scenarios


def open_repository(storage: FileSystem, scenario: Scenario) -> MemoryRepository:
    """Opens a repository that does the same on every disk: its ids and its times are given."""
    numbers = count(1_000)
    return MemoryRepository(
        storage,
        clock=lambda: NOW,
        new_token=lambda: f"{next(numbers):032x}",
        lock_timeout=1.0,
        **scenario.options,
    )


def root_of(place: Path, name: str) -> Path:
    """Returns the storage root of a scenario."""
    return place / name.replace(" ", "-") / "root"


def _sync_twice(self: directory.LocalDirectory) -> None:
    os.fsync(self.descriptor)
    os.fsync(self.descriptor)


def _write_in_place(self: directory.LocalDirectory, name: str, target: object, new_name: str) -> None:
    assert isinstance(target, directory.LocalDirectory)
    descriptor = os.open(name, os.O_RDONLY, dir_fd=self.descriptor)
    copy = os.open(new_name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=target.descriptor)
    os.write(copy, os.read(descriptor, 1 << 20))
    os.close(descriptor)
    os.close(copy)
    os.unlink(name, dir_fd=self.descriptor)


# Faults of the local file system that the simulated disk knows nothing of.
PLANTS: Final[dict[str, Callable[[], None]]] = {
    "": lambda: None,
    "no sync of a directory": lambda: setattr(directory.LocalDirectory, "sync", lambda _: None),
    "a sync too many": lambda: setattr(directory.LocalDirectory, "sync", _sync_twice),
    "no sync of a file": lambda: setattr(directory, "sync_data", lambda _: None),
    "a sync of the data alone": lambda: setattr(directory, "sync_data", os.fdatasync),
    "a copy in place of a rename": lambda: setattr(directory.LocalDirectory, "rename", _write_in_place),
}


def main(place: Path, plant: str, names: Sequence[str]) -> None:
    """Runs the operations of scenarios, each on what lies below its root."""
    PLANTS[plant]()
    for name in names:
        scenario = EVERY[name]
        scenario.operation.run(open_repository(LocalFileSystem(root_of(place, name)), scenario))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
