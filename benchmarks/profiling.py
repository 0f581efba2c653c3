"""Repeats one work for a profiler.

    python -m benchmarks.profiling update 500                  under `strace -c -f`, `perf` and the like
    python -m benchmarks.profiling update 500 --functions      where Python spends the time, by pyinstrument

The store is built and removed in other processes, so that a tracer that follows no forks sees the work alone.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import count, cycle, repeat
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final

from benchmarks.children import in_fresh_process
from benchmarks.client import ask, request
from benchmarks.samples import build_scope, fact_id, new_contents
from benchmarks.samples_v1 import build_version_1, scope_of
from benchmarks.serving import MEMORY, USER, server
from deermem import MemoryRepository, Scope

_SCOPE: Final = Scope.of("alice", "assistant")
_FEW: Final = 100
_COLD: Final = 1_000
_FACTS_OF_USER: Final = 50
_SHOWN: Final = 60
Step = Callable[[], object]


def _update(root: Path, _: int) -> Step:
    """P1: updates a fact of a hundred."""
    in_fresh_process(build_scope, root, _SCOPE, _FEW)
    repository, contents = MemoryRepository(root), new_contents()
    ids = cycle([fact_id(number) for number in range(_FEW)])
    return lambda: repository.edit_fact(_SCOPE, next(ids), {"content": next(contents)})


def _cold(root: Path, _: int) -> Step:
    """P6: reads 1,000 facts that are not cached."""
    in_fresh_process(build_scope, root, _SCOPE, _COLD)
    return lambda: MemoryRepository(root, cache_bytes=1_000_000_000).snapshot(_SCOPE)


def _document(root: Path, times: int) -> Step:
    """P11: asks the gateway, over one connection; the server is this process's child."""
    in_fresh_process(build_scope, root, Scope.of(USER), _FEW)
    once = iter([True])

    def run() -> None:
        if next(once, False):
            with server(root) as served:
                ask(served.address, repeat(request(MEMORY)), connections=1, number=times)

    return run


def _migrate(root: Path, times: int) -> Step:
    """P10: migrates as many users as there are repetitions, each of them once."""
    in_fresh_process(build_version_1, root, range(times), _FACTS_OF_USER)
    repository, users = MemoryRepository(root), count()
    return lambda: repository.migrate(scope_of(next(users)).user.raw)


WORKS: Final = {"update": _update, "cold": _cold, "document": _document, "migrate": _migrate}


def by_function(session: Any, most: int) -> list[tuple[float, str]]:
    """Returns the dearest functions and their share of the time, without that of what they call."""
    own: Counter[str] = Counter()
    pending = [session.root_frame()]
    while pending:
        frame = pending.pop()
        called = [child for child in frame.children if not child.is_synthetic]
        name = f"{frame.function} ({frame.file_path_short})"
        own[name] += frame.time - sum(child.time for child in called)
        pending.extend(called)
    total = sum(own.values())
    return [(seconds / total, name) for name, seconds in own.most_common(most)]


def _repeat(step: Step, times: int) -> None:
    for _ in range(times):
        step()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a work, and prints where the time went if that is asked for."""
    parser = argparse.ArgumentParser("python -m benchmarks.profiling", description="Repeat one work.")
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("times", type=int)
    parser.add_argument("--functions", action="store_true", help="tell the dearest functions (pyinstrument)")
    parser.add_argument("--dir", type=Path, default=Path(), help="a folder on the disk to measure")
    options = parser.parse_args(arguments)
    folder = Path(mkdtemp(dir=options.dir))
    try:
        step = WORKS[options.work](folder, options.times)
        if options.functions:
            _profile(step, options.times)
        else:
            _repeat(step, options.times)
    finally:
        in_fresh_process(rmtree, folder)
    return 0


def _profile(step: Step, times: int) -> None:
    profiler = import_module("pyinstrument").Profiler(interval=0.0005)
    with profiler:
        _repeat(step, times)
    for share, name in by_function(profiler.last_session, _SHOWN):
        sys.stdout.write(f"{share:6.1%}  {name}\n")


if __name__ == "__main__":
    sys.exit(main())
