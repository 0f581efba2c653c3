"""P11: a cached document over HTTP, against the same bytes from a constant, by the same server.

The server is a process of its own and reports the processor time that it takes, which other programs do not
lengthen: it is one worker, so that time is what bounds its requests per second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from statistics import median
from typing import Final

from benchmarks.bench import Bench
from benchmarks.client import ask, request
from benchmarks.measuring import Rounds
from benchmarks.results import Result
from benchmarks.samples import build_scope
from benchmarks.serving import CONSTANT, CONSTANT_UNCHANGED, MEMORY, USER, Served, server
from deermem import Scope

_FACTS: Final = 100
_CONNECTIONS: Final = (64, 1)
_WHOLE: Final = "memory"
_UNCHANGED: Final = "unchanged"


def measure(bench: Bench) -> Iterator[Result]:
    """Measures a whole answer, and one that says that nothing has changed."""
    with bench.folder() as folder:
        build_scope(folder, Scope.of(USER), _FACTS)
        with server(folder) as served:
            found = {
                connections: _in_turns(
                    _sides(served, connections, bench.scale.samples * 50), bench.scale.rounds
                )
                for connections in _CONNECTIONS
            }
    for connections, rounds in found.items():
        over = f"over {connections} connections" if connections > 1 else "over one connection"
        whole = f"GET /api/memory, {_FACTS} facts, cached, {over}"
        yield _result(whole, "the same bytes from a constant", rounds, _WHOLE)
        yield _result(f"the same with If-None-Match: 304, {over}", "a constant 304", rounds, _UNCHANGED)


def _sides(served: Served, connections: int, number: int) -> dict[str, Callable[[], float]]:
    known = f"If-None-Match: {served.tag}"

    def rates(status: int, path: str, *headers: str) -> Callable[[], float]:
        def run() -> float:
            before = served.processor_time()
            answers = ask(
                served.address, repeat(request(path, *headers)), connections=connections, number=number
            )
            if answers.statuses != {("read", status): number}:
                raise AssertionError(f"{path} was answered with {answers.statuses}")
            return number / (served.processor_time() - before)

        return run

    return {
        _WHOLE: rates(200, MEMORY),
        f"constant {_WHOLE}": rates(200, CONSTANT),
        _UNCHANGED: rates(304, MEMORY, known),
        f"constant {_UNCHANGED}": rates(304, CONSTANT_UNCHANGED, known),
    }


def _result(work: str, floor: str, found: dict[str, Rounds], kind: str) -> Result:
    constant = found[f"constant {kind}"]
    return Result.timed("P11", work, floor, found[kind], constant, bar=0.5, at_least=True, unit="1/s")


def _in_turns(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, Rounds]:
    for run in sides.values():
        run()
    found: dict[str, Rounds] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            found[name].append(median(run() for _ in range(3)))
    return found
