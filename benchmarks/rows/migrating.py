"""P10: memory of version 1 becomes version 2, of many users."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks import machine
from benchmarks.bench import Bench
from benchmarks.children import all_together, in_fresh_process
from benchmarks.floors import DurableFiles
from benchmarks.measuring import Rounds, Spread, ratios
from benchmarks.results import Result
from benchmarks.rows.memory import resident_bytes
from benchmarks.samples_v1 import build_version_1, files_of
from deermem import MemoryRepository
from deermem.migration import Status, migrate_users, stored_users

_USERS: Final = 2_000
_FACTS: Final = 50
_JOBS: Final = 2
_FLAT: Final = 1.05
_FLOOR: Final = "write, fsync and rename each file, fsync each shard"


class Portion:
    """Is some of the users, once as a store of version 1 and once as the files that it becomes."""

    def __init__(self, folder: Path, users: range, facts: int) -> None:
        self._folder, self._users, self._facts = folder, users, facts

    def store(self) -> Path:
        """Builds the store of version 1."""
        root = self._folder / "store"
        build_version_1(root, self._users, self._facts)
        return root

    def floor(self, jobs: int) -> list[DurableFiles]:
        """Makes the folders of the floor, for each of its processes those of its users."""
        root = self._folder / "floor"
        return [
            DurableFiles(root / str(job), [files_of(user, self._facts) for user in self._users[job::jobs]])
            for job in range(jobs)
        ]


def migrate(root: Path, jobs: int, progress: Callable[[], object] = lambda: None) -> None:
    """Migrates all users of a store.

    Raises:
        AssertionError: One was not migrated.
    """
    with MemoryRepository(root) as repository:
        outcomes = migrate_users(repository, stored_users(repository), jobs=jobs, progress=progress)
        for outcome in outcomes:
            if outcome.status is not Status.MIGRATED:
                raise AssertionError(f"{outcome.user} was not migrated: {outcome.reason}")


def measure(bench: Bench) -> Iterator[Result]:
    """Measures a portion of the users in each round, and the memory of a process that migrates all."""
    facts = bench.scale.sized(_FACTS)
    users = max(bench.scale.sized(_USERS * _FACTS) // facts // bench.scale.long_rounds, _JOBS)
    found: dict[str, Rounds] = {}
    for number in range(bench.scale.long_rounds):
        part = range(number * users, (number + 1) * users)
        for name, run in _sides(number % 2 == 1):
            with bench.folder() as folder:
                found.setdefault(name, []).append(run(bench, Portion(folder, part, facts)))
    total = users * bench.scale.long_rounds
    work = f"migration of {total:,} users with {facts} facts each, a portion of {users} a round"
    yield Result.timed("P10", work, _FLOOR, found["store 1"], found["floor 1"], bar=2.0)
    store, floor = (_scaling(found, name) for name in ("store", "floor"))
    yield Result(
        "P10",
        f"scaling of the migration with --jobs {_JOBS}",
        f"scaling of the floor with {_JOBS} processes",
        median(store),
        median(floor),
        ratios(store, floor),
        bar=0.8,
        at_least=True,
        unit="",
    )
    yield _memory(bench, total, facts)


def _sides(floor_first: bool) -> list[tuple[str, Callable[[Bench, Portion], float]]]:
    sides: list[tuple[str, Callable[[Bench, Portion], float]]] = []
    for jobs in (1, _JOBS):
        sides += [
            (f"store {jobs}", partial(_time_store, jobs=jobs)),
            (f"floor {jobs}", partial(_time_floor, jobs=jobs)),
        ]
    return sides[::-1] if floor_first else sides


def _time_store(bench: Bench, portion: Portion, jobs: int) -> float:
    root = portion.store()
    bench.settle()
    gc.collect()
    with machine.unpinned(jobs > 1):
        start = perf_counter()
        migrate(root, jobs)
        return perf_counter() - start


def _time_floor(bench: Bench, portion: Portion, jobs: int) -> float:
    works = portion.floor(jobs)
    bench.settle()
    gc.collect()
    if jobs > 1:
        return all_together(works)
    start = perf_counter()
    works[0]()
    return perf_counter() - start


def _scaling(found: dict[str, Rounds], name: str) -> Rounds:
    return [one / two for one, two in zip(found[f"{name} 1"], found[f"{name} {_JOBS}"], strict=True)]


def _memory(bench: Bench, users: int, facts: int) -> Result:
    with bench.folder() as folder:
        early, late = in_fresh_process(resident_while_migrating, folder, users, facts)
    ratio = late / early
    return Result(
        "P10",
        f"memory of the process after {users:,} users were migrated",
        f"after {users // 2:,} of them",
        late,
        early,
        Spread(ratio, ratio, ratio),
        bar=_FLAT,
        unit="bytes",
    )


def resident_while_migrating(root: Path, users: int, facts: int) -> tuple[int, int]:
    """Migrates a store; returns the size of the process after half of the users and after all."""
    build_version_1(root, range(users), facts)
    sizes: list[int] = []
    done = count(1)

    def look() -> None:
        if next(done) in {max(users // 2, 1), users}:
            gc.collect()
            sizes.append(resident_bytes())

    migrate(root, 1, look)
    return sizes[0], sizes[-1]
