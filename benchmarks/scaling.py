"""How costs grow: with the facts of one scope, and with the users of a store.

Each operation runs in a process of its own, which tells how long it took and how large the process became.
Growth is given as an exponent: 0 is a cost that stays the same, 1 one that grows like what is stored.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from shutil import rmtree
from statistics import median
from typing import Final, NamedTuple

from benchmarks.bench import Bench
from benchmarks.children import in_fresh_process
from benchmarks.measuring import PROCESSOR, WALL, Clock, Spread
from benchmarks.results import Result
from benchmarks.rows.memory import peak_bytes
from benchmarks.samples import build_scope, draft_of, fact_id, new_contents, unused_ids
from benchmarks.table import figure
from deermem import MemoryRepository, Scope
from deermem.format.layout import bucket_parts

ROW: Final = "SCALE"
FACTS: Final = (100, 1_000, 10_000, 100_000)
USERS: Final = (1, 10, 100, 1_000)
FACTS_OF_USER: Final = 1_000
# What an exponent may be. Caches of the processor and the depth of directories cost a little.
_CONSTANT: Final = 0.1
_LINEAR: Final = 1.1
_CACHE_BYTES: Final = 1_000_000_000


class Measured(NamedTuple):
    """Is how long one call took, in seconds, and the largest size of its process, in bytes."""

    seconds: float
    peak: int


class Operation(NamedTuple):
    """Is something to do on a store; `begin` prepares it and returns what is timed."""

    begin: Callable[[Path, Scope, int], Callable[[], object]]
    clock: Clock
    calls: int
    of_store: bool = False  # whether it works on all users
    exponent: float = _LINEAR


@dataclass(frozen=True, slots=True)
class ScaleResult(Result):
    """Tells how one operation grew from a size (the floor) to a larger one; the ratio is the exponent."""

    operation: str = ""
    grows_with: str = ""
    size: int = 0
    size_before: int = 0
    peak: int = 0
    peak_before: int = 0


def _repository(root: Path) -> MemoryRepository:
    return MemoryRepository(root, cache_bytes=_CACHE_BYTES)


def _create(root: Path, scope: Scope, facts: int) -> Callable[[], object]:
    repository = _repository(root)
    drafts = (draft_of(number, one) for number, one in zip(count(facts), unused_ids(facts), strict=False))
    return lambda: repository.upsert_fact(scope, next(drafts))


def _update(root: Path, scope: Scope, facts: int) -> Callable[[], object]:
    repository, contents = _repository(root), new_contents()
    ids = cycle([fact_id(number) for number in range(0, facts, max(facts // 100, 1))])
    return lambda: repository.edit_fact(scope, next(ids), {"content": next(contents)})


def _get(root: Path, scope: Scope, facts: int) -> Callable[[], object]:
    repository = _repository(root)
    ids = cycle([fact_id(number) for number in range(0, facts, max(facts // 100, 1))])
    return lambda: repository.get_fact(scope, next(ids))


def _read_again(root: Path, scope: Scope, _: int) -> Callable[[], object]:
    repository = _repository(root)
    repository.snapshot(scope)
    return lambda: repository.snapshot(scope)


def _read_cold(root: Path, scope: Scope, _: int) -> Callable[[], object]:
    return lambda: _repository(root).snapshot(scope)


def _search(root: Path, scope: Scope, facts: int) -> Callable[[], object]:
    repository = _repository(root)
    repository.snapshot(scope)
    return lambda: repository.search_facts(f"Note {facts - 2}.", [scope])


def _list_page(root: Path, scope: Scope, _: int) -> Callable[[], object]:
    repository = _repository(root)
    repository.snapshot(scope)
    return lambda: repository.list_facts(scope, limit=100)


def _check(root: Path, _: Scope, __: int) -> Callable[[], object]:
    from deermem.maintenance.check import check_store

    def run() -> None:
        report = check_store(_repository(root))
        if list(report.findings):
            raise AssertionError("a store without a fault has findings")

    return run


class _Sink(io.RawIOBase):
    """Takes an archive and keeps nothing: the disk's own speed is not the store's."""

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        return len(memoryview(data))  # type: ignore[arg-type]


def _back_up(root: Path, _: Scope, __: int) -> Callable[[], object]:
    from deermem.maintenance.backup import back_up
    from deermem.model.identity import UserId

    def run() -> None:
        repository = _repository(root)
        users = [UserId.parse(user) for user in repository.list_users()]
        saved = back_up(repository.engine, users, io.BufferedWriter(_Sink()), tool="benchmarks")
        if any(user.problems for user in saved):
            raise AssertionError("something could not be saved")

    return run


def _clear(root: Path, scope: Scope, _: int) -> Callable[[], object]:
    repository = _repository(root)
    return lambda: repository.clear_all(scope.user.raw)


# In this order: what changes the store comes after what reads it, and the clear is the last.
OPERATIONS: Final[dict[str, Operation]] = {
    "read one fact": Operation(_get, PROCESSOR, 200, exponent=_CONSTANT),
    "read all facts again (cached)": Operation(_read_again, PROCESSOR, 200, exponent=_CONSTANT),
    "read all facts, cold": Operation(_read_cold, PROCESSOR, 3),
    "search": Operation(_search, PROCESSOR, 5),
    "list a page of 100": Operation(_list_page, PROCESSOR, 5),
    "check the store": Operation(_check, WALL, 1, of_store=True),
    "back the store up": Operation(_back_up, WALL, 1, of_store=True),
    "create a fact": Operation(_create, WALL, 100, exponent=_CONSTANT),
    "update a fact": Operation(_update, WALL, 100, exponent=_CONSTANT),
    "clear the user": Operation(_clear, WALL, 1),
}


def run_operation(name: str, root: Path, scope: Scope, facts: int) -> Measured:
    """Runs an operation several times; the median counts, and the first call if it is the only one."""
    operation = OPERATIONS[name]
    step = operation.begin(root, scope, facts)
    if operation.calls > 1:
        step()
    times = []
    for _ in range(operation.calls):
        start = operation.clock()
        step()
        times.append(operation.clock() - start)
    return Measured(median(times), peak_bytes())


def measure(bench: Bench) -> Iterator[Result]:
    """Measures one scope that grows, and then a store whose users become more."""
    sizes = sorted({bench.scale.sized(size) for size in FACTS})
    yield from growth("facts", sizes, _one_scope(bench, sizes), of_user=None)
    facts = bench.scale.sized(FACTS_OF_USER)
    users = sorted({min(number, max(bench.scale.sized(number * facts) // facts, 1)) for number in USERS})
    yield from growth(f"users of {facts:,} facts", users, _many_users(bench, users, facts), of_user=_CONSTANT)


def _one_scope(bench: Bench, sizes: Sequence[int]) -> Iterator[dict[str, Measured]]:
    scope = Scope.of("alice", "assistant")
    for facts in sizes:
        with bench.folder() as folder:
            build_scope(folder, scope, facts)
            bench.settle()
            yield {name: in_fresh_process(run_operation, name, folder, scope, facts) for name in OPERATIONS}


def _many_users(bench: Bench, numbers: Sequence[int], facts: int) -> Iterator[dict[str, Measured]]:
    with bench.folder() as folder:
        built = 0
        for users in numbers:
            while built < users:
                build_scope(folder, _scope_of(built), facts)
                built += 1
            bench.settle()
            last = _scope_of(users - 1)
            yield {name: in_fresh_process(run_operation, name, folder, last, facts) for name in OPERATIONS}
            rmtree(folder.joinpath(*bucket_parts(last.user)))  # it was cleared
            built -= 1


def _scope_of(user: int) -> Scope:
    return Scope.of(f"user{user:06}", "assistant")


def growth(
    grows_with: str, sizes: Sequence[int], found: Iterable[dict[str, Measured]], of_user: float | None
) -> Iterator[ScaleResult]:
    """Compares each size with the one before it.

    Args:
        grows_with: What there is more and more of.
        sizes: How many, ascending.
        found: What was measured at each size.
        of_user: The bar of what works on one user, where it is another than the operation's own.
    """
    before: tuple[int, dict[str, Measured]] | None = None
    for size, measured in zip(sizes, found, strict=True):
        if before is not None:
            for name, now in measured.items():
                operation, then = OPERATIONS[name], before[1][name]
                exponent = math.log(now.seconds / then.seconds) / math.log(size / before[0])
                yield ScaleResult(
                    ROW,
                    f"{name}, {size:,} {grows_with}",
                    f"with {before[0]:,}",
                    now.seconds,
                    then.seconds,
                    Spread(exponent, exponent, exponent),
                    operation.exponent if operation.of_store or of_user is None else of_user,
                    operation=name,
                    grows_with=grows_with,
                    size=size,
                    size_before=before[0],
                    peak=now.peak,
                    peak_before=then.peak,
                )
        before = size, measured


def matrix(results: Sequence[ScaleResult]) -> list[list[str]]:
    """Returns, for what grows with the same thing, a header and one line for each operation."""
    sizes = sorted({size for result in results for size in (result.size_before, result.size)})
    rows = [["operation", *(f"{size:,} {results[0].grows_with}" for size in sizes), "exponents", "bar"]]
    for operation in dict.fromkeys(result.operation for result in results):
        line = sorted((each for each in results if each.operation == operation), key=lambda each: each.size)
        cells = [
            _cell(line[0].floor, line[0].peak_before),
            *(_cell(each.product, each.peak) for each in line),
        ]
        exponents = ", ".join(f"{each.ratio.middle:.2f}" for each in line)
        rows.append([operation, *cells, exponents, f"≤ {line[0].bar:g}"])
    return rows


def _cell(seconds: float, peak: int) -> str:
    return f"{figure(seconds, 's')}, {figure(peak, 'bytes')}"
