"""Times the same operations on the same facts in every store, in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count, cycle
from pathlib import Path
from time import perf_counter
from typing import Final

from benchmarks.bench import Bench
from benchmarks.measuring import PROCESSOR, WALL, Clock, Rounds, Side, interleave
from benchmarks.peers.disk_cache import DiskCache, LaxDiskCache
from benchmarks.peers.langgraph import LangGraphStore
from benchmarks.peers.one_file import OneFile
from benchmarks.peers.own import Own
from benchmarks.peers.port import Peer, sample_fact, sample_facts
from benchmarks.peers.sqlite import Sqlite
from benchmarks.samples import new_contents

_LARGE: Final = 10_000
_SAMPLE_SECONDS: Final = 0.01
_MOST_CALLS: Final = 100
_NEEDS: Final[dict[type[Peer], str]] = {
    Own: "deermem",
    Sqlite: "sqlite3",
    LangGraphStore: "langgraph.store.sqlite",
    DiskCache: "diskcache",
    LaxDiskCache: "diskcache",
    OneFile: "json",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Is what one operation costs one store that holds some facts, in seconds a round."""

    peer: str
    operation: str
    facts: int
    rounds: Rounds


def installed() -> list[type[Peer]]:
    """Returns the stores that can be measured here; DeerMem comes first."""
    return [peer for peer, module in _NEEDS.items() if _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is not there
        return False


class Operations:
    """Works on one store, whose size stays what it is, and knows what to do next."""

    def __init__(self, kind: type[Peer], folder: Path, facts: int) -> None:
        self._kind, self._folder = kind, folder
        self.peer = kind(folder)
        first = sample_facts(facts)
        self.peer.fill(first)
        self._ids = cycle([fact.id for fact in first])
        self._contents = new_contents()
        self._numbers = count(facts + 1_000_000)
        self._next = sample_fact(next(self._numbers))
        self._is_there = False
        self._wanted = cycle([f"Note {number}." for number in range(0, facts, max(facts // 10, 1))])

    def create(self) -> None:
        """Adds a fact that was not there."""
        self.peer.create(self._next)
        self._is_there = True

    def delete(self) -> None:
        """Removes the fact that was added last."""
        self.peer.delete(self._next.id)
        self._is_there = False

    def update(self) -> None:
        """Gives one of the first facts another text."""
        self.peer.update(next(self._ids), next(self._contents))

    def get(self) -> object:
        """Reads one of the first facts."""
        return self.peer.get(next(self._ids))

    def search(self) -> object:
        """Looks for the text of one of the first facts."""
        return self.peer.search(next(self._wanted))

    def cold(self) -> None:
        """Opens the store anew and reads all."""
        with closing(self._kind(self._folder)) as peer:
            peer.read_all()

    def make_absent(self) -> None:
        """Chooses a fact that is not there, and removes the last one."""
        if self._is_there:
            self.delete()
        self._next = sample_fact(next(self._numbers))

    def make_present(self) -> None:
        """Sees to it that there is a fact to remove."""
        if not self._is_there:
            self.create()

    def side(self, operation: str) -> Side:
        """Returns an operation as a side of a measurement."""
        name = self.peer.name
        sides: dict[str, Callable[[], Side]] = {
            "create": lambda: Side(name, self.create, self.make_absent),
            "update": lambda: Side(name, self.update),
            "delete": lambda: Side(name, self.delete, self.make_present),
            "read one, nothing cached": lambda: Side(name, self.get),
            "read one": lambda: Side(name, self.get),
            "read all": lambda: Side(name, self.peer.read_all),
            "read all as dictionaries": lambda: Side(name, self.peer.documents),
            "search": lambda: Side(name, self.search),
            "open and read all": lambda: Side(name, self.cold),
        }
        return sides[operation]()


# What reads has the files in memory, and comes first: searches look for texts that nobody changed. A store
# that keeps what it read has kept nothing before it was asked for all.
CLOCKS: Final[dict[str, Clock]] = {
    "read one, nothing cached": PROCESSOR,
    "read all": PROCESSOR,
    "read one": PROCESSOR,
    "read all as dictionaries": PROCESSOR,
    "search": PROCESSOR,
    "open and read all": PROCESSOR,
    "create": WALL,
    "update": WALL,
    "delete": WALL,
}


def _fewest(operation: str, facts: int) -> int:
    """Returns how many samples a round has at least; one large file takes long to change."""
    return 3 if CLOCKS[operation] is WALL and facts <= _LARGE else 1


class Repeated:
    """Repeats quick work within a sample, so that a first call that finds cold caches is not all of it."""

    def __init__(self, side: Side, operation: str) -> None:
        self.calls = 1
        self._run = side.run
        if CLOCKS[operation] is PROCESSOR and operation != "open and read all":
            side.run()
            start = perf_counter()
            side.run()
            self.calls = max(1, min(_MOST_CALLS, int(_SAMPLE_SECONDS / (perf_counter() - start))))

    def run(self) -> None:
        """Is one sample."""
        for _ in range(self.calls):
            self._run()


def costs(
    bench: Bench, facts: int, operations: Sequence[str] = tuple(CLOCKS), peers: Sequence[type[Peer]] = ()
) -> Iterator[Cost]:
    """Measures every store at one size, operation by operation."""
    scale = bench.scale
    with bench.folder() as folder, ExitStack() as stack:
        works = []
        for number, kind in enumerate(peers or installed()):
            work = Operations(kind, folder / str(number), facts)
            stack.callback(work.peer.close)
            works.append(work)
        bench.settle()
        for operation in operations:
            writes = CLOCKS[operation] is WALL
            samples = max(scale.samples // (1 + facts // (500 if writes else 100)), _fewest(operation, facts))
            sides = [work.side(operation) for work in works]
            repeated = [Repeated(side, operation) for side in sides]
            medians = interleave(
                [Side(side.name, many.run, side.prepare) for side, many in zip(sides, repeated, strict=True)],
                rounds=scale.rounds if facts < _LARGE else scale.long_rounds,
                samples=min(samples, scale.samples),
                clock=CLOCKS[operation],
            )
            for side, many in zip(sides, repeated, strict=True):
                rounds = [seconds / many.calls for seconds in medians[side.name]]
                yield Cost(side.name, operation, facts, rounds)
