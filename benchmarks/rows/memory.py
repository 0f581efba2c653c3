"""P13: what cached facts take, and whether the cache ever stops growing."""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.bench import Bench
from benchmarks.children import in_fresh_process
from benchmarks.measuring import Spread
from benchmarks.results import Result
from benchmarks.samples import build_scope, fact_id, fact_of, manifest_bytes, write_file
from deermem import MemoryRepository, Scope
from deermem.format.fact_markdown import encode_fact
from deermem.format.layout import DEFAULT_MANIFEST, USERS, bucket_parts, fact_parts, facts_parts

_SCOPE: Final = Scope.of("alice", "assistant")
_CACHE_BYTES: Final = 2_000_000
_UNBOUNDED: Final = 1_000_000_000
_FLAT: Final = 1.05


class Growth(NamedTuple):
    """Is what a process grew by: what Python allocated, and what the system gave it."""

    allocated: int
    resident: int


def measure(bench: Bench) -> Iterator[Result]:
    """Measures in new processes, whose memory holds nothing else."""
    facts, users = bench.scale.sized(10_000), bench.scale.sized(100_000)
    with bench.folder() as folder:
        build_scope(folder, _SCOPE, facts)
        shards = folder.joinpath(*bucket_parts(_SCOPE.user), *facts_parts(_SCOPE.agent))
        files = sum(path.stat().st_size for path in shards.glob("*/*.md"))
        allocated = in_fresh_process(allocated_by_reading, folder)
        resident = in_fresh_process(resident_after_reading, folder)
    for kind, grown in (("allocated", allocated), ("resident", resident)):
        work = f"memory of {facts:,} cached facts, {kind}"
        yield _compared(work, "bytes of their files", grown, files, bar=3.0)
    with bench.folder() as folder:
        early, late = in_fresh_process(resident_after_users, folder, users, users // 10)
    yield _compared(
        f"memory of the process after {users:,} users were read once",
        f"after {users // 10:,} of them",
        late,
        early,
        bar=_FLAT,
    )


def _compared(work: str, floor_work: str, product: int, floor: int, bar: float) -> Result:
    ratio = product / floor
    return Result("P13", work, floor_work, product, floor, Spread(ratio, ratio, ratio), bar=bar, unit="bytes")


def allocated_by_reading(root: Path) -> int:
    """Returns what Python allocated for the cached facts of a scope, in bytes."""
    repository = _repository_that_was_used(root, _UNBOUNDED)
    tracemalloc.start()
    repository.snapshot(_SCOPE)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def resident_after_reading(root: Path) -> int:
    """Returns what the process grew by while it read and cached a scope, in bytes."""
    repository = _repository_that_was_used(root, _UNBOUNDED)
    before = resident_bytes()
    repository.snapshot(_SCOPE)
    gc.collect()
    return resident_bytes() - before


def _repository_that_was_used(root: Path, cache_bytes: int) -> MemoryRepository:
    """Returns a repository for which everything is imported that a read needs."""
    repository = MemoryRepository(root, cache_bytes=cache_bytes)
    repository.snapshot(Scope.of("nobody"))
    gc.collect()
    return repository


def resident_after_users(root: Path, users: int, early: int) -> tuple[int, int]:
    """Reads users once each; returns the size of the process after the first ones and after all.

    All users share one folder, which is renamed and written anew for each of them: the repository
    sees different users, and the disk does not have to hold them all. Their paths are plain texts:
    `pathlib` interns every part, and the interpreter's table of interned texts grows and stays large.
    """
    repository = _repository_that_was_used(root, _CACHE_BYTES)
    (root / USERS).mkdir()
    before, size_early = "", 0
    for number in range(users):
        scope = Scope.of(f"user{number:06}", "assistant")
        bucket = os.path.join(root, *bucket_parts(scope.user))
        if before:
            os.rename(before, bucket)
        _become(bucket, scope)
        before = bucket
        if len(repository.snapshot(scope).facts) != 1:
            raise AssertionError("the user has one fact")
        if number + 1 == early:
            gc.collect()
            size_early = resident_bytes()
    gc.collect()
    return size_early, resident_bytes()


def _become(bucket: str, scope: Scope) -> None:
    path = os.path.join(bucket, *fact_parts(scope.agent, fact_id(0)))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_file(path, encode_fact(fact_of(0, fact_id(0), scope)))
    write_file(os.path.join(bucket, DEFAULT_MANIFEST), manifest_bytes())


def resident_bytes() -> int:
    """Returns the resident size of this process; its peak where the system tells no more."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_bytes()


def peak_bytes() -> int:
    """Returns the largest size that this process ever had."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        import resource

    # It may count what the parent had when it started this process.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
