"""What the charts show: cost against the number of facts, and throughput against the number of writers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Final
from weakref import finalize

from benchmarks.bench import Bench
from benchmarks.children import Work, write_together
from benchmarks.measuring import Rounds
from benchmarks.peers.costs import Cost, costs
from benchmarks.peers.port import sample_facts
from benchmarks.peers.sqlite import Sqlite
from benchmarks.rows.other_users import OwnFloor, OwnUser, scope_of
from benchmarks.rows.point_writes import replacements
from benchmarks.rows.same_user import Updates
from benchmarks.samples import build_scope, new_contents
from deermem import Scope

SIZES: Final = (10, 100, 1_000, 10_000, 100_000)
OPERATIONS: Final = {
    "create": "create a fact",
    "update": "update a fact",
    "read all": "read all facts again (cached)",
    "open and read all": "open the store and read all facts",
}
WRITERS: Final = (1, 2, 4, 8)
OWN: Final = "DeerMem"
SQLITE: Final = "SQLite"
FLOOR: Final = "floor"
ONE_USER: Final = "all writers write one user"
USER_EACH: Final = "each writer writes a user of its own"
_ROUNDS: Final = 3
_FACTS: Final = 100
_AGENT: Final = "assistant"


@dataclass(frozen=True, slots=True)
class Throughput:
    """Is how many changes some writers made in a second, in each round."""

    store: str
    place: str
    writers: int
    rates: Rounds


@dataclass(frozen=True, slots=True)
class SqliteUpdates:
    """Lets each writer update rows, of one database or of one each."""

    root: Path
    shared: bool

    def begin(self, number: int) -> Callable[[], object]:
        """Opens the database of one of the writers; a new one is filled."""
        import fcntl

        folder = self.root / ("shared" if self.shared else str(number))
        folder.mkdir(exist_ok=True)
        with open(folder / "filling", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            store = Sqlite(folder)
            if store.get(sample_facts(1)[0].id) is None:
                store.fill(sample_facts(_FACTS))
        ids = cycle([fact.id for fact in sample_facts(_FACTS)][number :: max(WRITERS)])
        contents = new_contents()

        def step() -> None:
            store.update(next(ids), next(contents))

        finalize(step, store.close)  # nobody else knows that there is something to close
        return step


@dataclass(frozen=True, slots=True)
class LockedFloor:
    """Lets the writers make the three replacements of P1 in one folder, one at a time."""

    root: Path

    def begin(self, number: int) -> Callable[[], object]:
        """Opens the lock, and a folder for one of the writers: they write one after the other."""
        import fcntl

        lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        replace_all = replacements(self.root / f"{number}-{len(list(self.root.iterdir()))}")

        def step() -> None:
            fcntl.flock(lock, fcntl.LOCK_EX)
            replace_all()
            fcntl.flock(lock, fcntl.LOCK_UN)

        return step


def by_facts(bench: Bench) -> Iterator[Cost]:
    """Measures every store at sizes that grow tenfold."""
    few = Bench(bench.place, replace(bench.scale, rounds=min(bench.scale.rounds, _ROUNDS)))
    for facts in sorted({bench.scale.sized(size) for size in SIZES}):
        yield from costs(few, facts, tuple(OPERATIONS))


def by_writers(bench: Bench) -> Iterator[Throughput]:
    """Measures one to eight processes, on one user and on a user each."""
    rounds = min(bench.scale.rounds, _ROUNDS)
    found: dict[tuple[str, str, int], Rounds] = {}
    with bench.folder() as folder:
        works = _works(folder)
        bench.settle()
        for _ in range(rounds):
            for (store, place), work in works.items():
                for writers in WRITERS:
                    run = write_together(work, writers, bench.scale.seconds / 5)
                    found.setdefault((store, place, writers), []).append(run.rate)
    for (store, place, writers), rates in found.items():
        yield Throughput(store, place, writers, rates)


def _works(folder: Path) -> dict[tuple[str, str], Work]:
    ids = tuple(build_scope(folder / "one user", Scope.of("alice", _AGENT), _FACTS))
    for number in range(max(WRITERS)):
        build_scope(folder / "user each", scope_of(number), _FACTS)
    for name in ("one floor", "floor each", "one database", "database each"):
        (folder / name).mkdir()
    return {
        (OWN, ONE_USER): Updates(folder / "one user", ids),
        (SQLITE, ONE_USER): SqliteUpdates(folder / "one database", shared=True),
        (FLOOR, ONE_USER): LockedFloor(folder / "one floor"),
        (OWN, USER_EACH): OwnUser(folder / "user each", ids),
        (SQLITE, USER_EACH): SqliteUpdates(folder / "database each", shared=False),
        (FLOOR, USER_EACH): OwnFloor(folder / "floor each"),
    }
