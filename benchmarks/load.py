"""The gateway under load: many connections that mostly read and sometimes write, for a while."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count, cycle, repeat
from statistics import quantiles
from typing import Final

from benchmarks.bench import Bench
from benchmarks.client import Answers, Request, ask, request
from benchmarks.measuring import Spread
from benchmarks.results import Result
from benchmarks.samples import build_scope, new_contents
from benchmarks.serving import CONSTANT, MEMORY, USER, server
from deermem import Scope
from deermem.model.identity import FactId

ROW: Final = "LOAD"
CONNECTIONS: Final = 64
_FACTS: Final = 100
_WRITE_EACH: Final = 20  # one in twenty requests changes a fact
_FLOOR: Final = "the document from a constant, read only"


def mixed(ids: Sequence[FactId], tag: str) -> Iterator[Request]:
    """Yields 95 reads and 5 writes in a hundred: documents, documents if changed, facts, and new texts."""
    contents, facts = new_contents(), cycle(ids)
    document = request(MEMORY, kind="document")
    document_if_changed = request(MEMORY, f"If-None-Match: {tag}", kind="document if changed")
    for number in count(1):
        if number % _WRITE_EACH:
            fact = request(f"{MEMORY}/facts/{next(facts)}", kind="fact")
            yield (document, fact, document_if_changed)[number % 3]
        else:
            body = json.dumps({"content": next(contents)}).encode()
            yield request(f"{MEMORY}/facts/{next(facts)}", method="PATCH", body=body, kind="change")


def measure(bench: Bench) -> Iterator[Result]:
    """Measures three times as long as writers write in a round, which is 30 seconds in a full run.

    Raises:
        AssertionError: A request was not answered with what it asked for.
    """
    with bench.folder() as folder:
        ids = build_scope(folder, Scope.of(USER), _FACTS)
        bench.settle()
        with server(folder) as served:
            constant = repeat(request(CONSTANT, kind="constant"))
            floor = ask(served.address, constant, connections=CONNECTIONS, seconds=bench.scale.seconds)
            load = ask(
                served.address,
                mixed(ids, served.tag),
                connections=CONNECTIONS,
                seconds=3 * bench.scale.seconds,
            )
    check(load)
    yield from results(load, floor)


def check(answers: Answers) -> None:
    """Makes sure that every request was answered well.

    Raises:
        AssertionError: One was not.
    """
    wrong = {key: number for key, number in answers.statuses.items() if key[1] not in (200, 304)}
    if wrong:
        raise AssertionError(f"not every request was answered well: {wrong}")


def results(load: Answers, floor: Answers) -> Iterator[Result]:
    """Tells how many requests there were, and how long each kind of them took."""
    usual = percentiles(floor.seconds["constant"])
    rate, most = load.number / load.elapsed, floor.number / floor.elapsed
    title = f"{CONNECTIONS} connections for {load.elapsed:.0f} s, 95 % reads"
    note = f"{load.number:,} requests, no error"
    yield _one(f"{title}: requests a second", rate, most, "1/s", note)
    for kind, seconds in sorted(load.seconds.items()):
        for name, value, below in zip(("p50", "p99"), percentiles(seconds), usual, strict=True):
            yield _one(f"{title}: {kind}, {name}", value, below, "s", f"{len(seconds):,} requests")


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Returns the median and the 99th percentile."""
    if len(seconds) < 2:
        return seconds[0], seconds[0]
    hundredths = quantiles(seconds, n=100, method="inclusive")
    return hundredths[49], hundredths[98]


def _one(work: str, value: float, floor: float, unit: str, note: str) -> Result:
    ratio = value / floor
    return Result(ROW, work, _FLOOR, value, floor, Spread(ratio, ratio, ratio), None, unit=unit, note=note)
