"""Processes of their own: for writers that compete, and for figures that need a fresh memory."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

# A fork would copy this process's memory and its locks.
_SPAWN = multiprocessing.get_context("spawn")
_START_TIMEOUT = 60.0


class Work(Protocol):
    """Is what a writer repeats; it is pickled into the process that runs it."""

    def begin(self, number: int) -> Callable[[], object]:
        """Prepares the work of one of the writers and returns one step of it."""
        ...


class Writing(NamedTuple):
    """Is what the writers of one run did: the seconds that each of their calls took."""

    elapsed: float
    calls: list[float]

    @property
    def rate(self) -> float:
        """The calls of all writers together in a second."""
        return len(self.calls) / self.elapsed


def write_together(work: Work, writers: int, seconds: float) -> Writing:
    """Lets several processes repeat a work for some seconds, all from the same moment.

    They use all processors, whatever this process is pinned to.
    """
    barrier = _SPAWN.Barrier(writers)
    started: list[tuple[Any, Connection]] = []
    for number in range(writers):
        mine, theirs = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(target=_write, args=(work, number, seconds, barrier, theirs))
        process.start()
        theirs.close()
        started.append((process, mine))
    reports = [_receive(process, connection) for process, connection in started]
    return Writing(max(elapsed for elapsed, _ in reports), [call for _, calls in reports for call in calls])


def all_together(works: Sequence[Callable[[], object]]) -> float:
    """Runs each work once, in a process of its own; returns the seconds from the first start to the last end.

    They use all processors, whatever this process is pinned to.
    """
    barrier = _SPAWN.Barrier(len(works))
    started: list[tuple[Any, Connection]] = []
    for work in works:
        mine, theirs = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(target=_run_once, args=(work, barrier, theirs))
        process.start()
        theirs.close()
        started.append((process, mine))
    spans: list[tuple[float, float]] = [_receive(process, connection) for process, connection in started]
    # The clock is the same in all processes of a machine.
    return max(end for _, end in spans) - min(start for start, _ in spans)


def in_fresh_process(function: Callable[..., T], *arguments: object) -> T:
    """Calls a function in a new process and returns what it returns."""
    mine, theirs = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=_call, args=(function, arguments, theirs))
    process.start()
    theirs.close()
    result: T = _receive(process, mine)
    return result


def _receive(process: Any, connection: Connection) -> Any:
    try:
        return connection.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"a process of the benchmark ended with code {process.exitcode}") from None
    finally:
        process.join()
        connection.close()


def _run_once(work: Callable[[], object], barrier: Barrier, report: Connection) -> None:
    _use_all_processors()
    barrier.wait(_START_TIMEOUT)
    start = perf_counter()
    work()
    report.send((start, perf_counter()))


def _use_all_processors() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def _write(work: Work, number: int, seconds: float, barrier: Barrier, report: Connection) -> None:
    _use_all_processors()
    step = work.begin(number)
    step()
    calls: list[float] = []
    barrier.wait(_START_TIMEOUT)
    begin = before = perf_counter()
    while before - begin < seconds:
        step()
        after = perf_counter()
        calls.append(after - before)
        before = after
    report.send((before - begin, calls))


def _call(function: Callable[..., object], arguments: tuple[object, ...], report: Connection) -> None:
    report.send(function(*arguments))
