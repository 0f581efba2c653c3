"""Cuts real file systems off while a store is written, mounts them again, and looks at the store."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from deermem import MemoryRepository
from tests.kernel.block_log import FLUSH, MARK, WRITE, Record, records
from tests.kernel.disks import copy_image, keep_in_memory, make_image, mounted
from tests.kernel.stream import HERE, Stream, examine
from tests.kernel.traced import PLANTS
from tests.kernel.writer import DONE, Writer

# _IOR('X', 125, __u32) of the kernel's headers, and the flag that keeps the file system's log from being
# written out first: what only the page cache knows is lost.
_SHUT_DOWN: Final = 0x8004587D
_WITHOUT_FLUSHING: Final = 2
_PAGE: Final = 4_096


class Progress(NamedTuple):
    """Says how many operations of a stream had returned, or been seen, and how many had begun."""

    acknowledged: int
    begun: int


class Figures:
    """Counts what was tried and found."""

    def __init__(self) -> None:
        self.counts = {
            "rounds": 0,
            "acknowledged": 0,
            "in doubt, there": 0,
            "in doubt, not there": 0,
            "writes lost": 0,
        }
        self.problems: list[str] = []

    def add(self, root: Path, stream: Stream, progress: Progress, told: str) -> int:
        """Examines a store, lets it be written, and examines it again; returns its revision."""
        acknowledged, begun = progress
        found = examine(root, stream, acknowledged, begun)
        problems = found.problems
        if not problems:
            stream.actions[found.revision].run(MemoryRepository(root))
            problems = examine(root, stream, found.revision + 1, found.revision + 1).problems
        self.problems += [f"{told}: {problem}" for problem in problems]
        self.counts["rounds"] += 1
        self.counts["acknowledged"] += acknowledged
        if begun > acknowledged:
            self.counts["in doubt, there" if found.revision > acknowledged else "in doubt, not there"] += 1
        return found.revision + 1

    def result(self) -> dict[str, Any]:
        """Returns the counts and the first problems."""
        return {**self.counts, "problems": self.problems[:5], "rounds with problems": len(self.problems)}


def cut_by_block_log(place: str, kind: str, operations: int, rounds: int, seed: int, plant: str = "") -> Any:
    """Writes a stream on a disk that logs, then mounts what losses of power may have left of it."""
    PLANTS[plant]()
    keep_in_memory(Path(place))
    base, image, log = (Path(place, name) for name in ("base", "image", "log"))
    make_image(base, kind)
    copy_image(base, image)
    stream = Stream(seed, operations + 2)
    with _logged(image, log) as mark, mounted(image, kind) as point:
        progress = list(_write_with_deaths(point / "root", stream, operations, mark, _seeded(seed)))
    return _replay(base, kind, list(records(log)), progress, stream, rounds, _seeded(seed))


def _write_with_deaths(
    root: Path, stream: Stream, operations: int, mark: Callable[[], None], rng: random.Random
) -> Iterator[Progress]:
    """Writes the stream; now and then a writer is killed within an operation, and another one goes on.

    Each mark in the log is yielded as what holds from there on.
    """
    reached = 0
    while reached < operations:
        mark()
        yield Progress(reached, reached + 1)
        with Writer(root, stream, reached) as writer:
            took = 0.0
            for _ in range(max(1, min(rng.randint(3, 15), operations - reached - 1))):
                took = _write_one(writer)
                mark()
                yield Progress(writer.acknowledged, writer.begun + 1)
            writer.begin()
            time.sleep(rng.uniform(0, took))  # the moment of death, wherever the writer is by then
        reached = MemoryRepository(root).snapshot(HERE).revision
        assert writer.acknowledged <= reached <= writer.begun


def _write_one(writer: Writer) -> float:
    start = time.perf_counter()
    writer.begin()
    answer = writer.hear()
    assert answer == DONE, f"operation {writer.begun}: {answer}"
    return time.perf_counter() - start


@contextmanager
def _logged(image: Path, log: Path) -> Iterator[Callable[[], None]]:
    command = [sys.executable, "-m", "tests.kernel.block_log", str(image), str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as disk:
        assert disk.stdin is not None
        assert disk.stdout is not None
        order, answer = disk.stdin.fileno(), disk.stdout.fileno()

        def mark() -> None:
            os.write(order, b"\n")
            assert os.read(answer, 1) == b"\n"

        mark()  # answered once the image is in place
        try:
            yield mark
        finally:
            mark()
            disk.stdin.close()
            disk.wait()


def _replay(
    base: Path,
    kind: str,
    log: Sequence[Record],
    progress: Sequence[Progress],
    stream: Stream,
    rounds: int,
    rng: random.Random,
) -> dict[str, Any]:
    # The first mark says that the disk is there; each of the following belongs to an entry of `progress`.
    marks = [number for number, record in enumerate(log) if record.kind == MARK][1 : len(progress) + 1]
    figures = Figures()
    image = base.with_name("replayed")
    for _ in range(rounds):
        cut = rng.randint(marks[0], marks[-1])
        copy_image(base, image)
        share = rng.choice([0.0, 0.0, 1.0, *(rng.random() for _ in range(5))])
        lost = _write_back(image, log[: cut + 1], share, rng)
        figures.counts["writes lost"] += lost
        with mounted(image, kind) as point:
            told = f"cut after record {cut} with {lost} writes lost"
            figures.add(point / "root", stream, progress[bisect_right(marks, cut) - 1], told)
    return figures.result()


def _write_back(image: Path, log: Sequence[Record], share: float, rng: random.Random) -> int:
    """Writes what reached the disk: all before the last flush, a share of the pages after it."""
    flushed = max((number for number, record in enumerate(log) if record.kind == FLUSH), default=0)
    lost = 0
    with image.open("r+b") as disk:
        for number, record in enumerate(log):
            if record.kind != WRITE:
                continue
            for start in range(0, len(record.data), _PAGE):
                if number > flushed and rng.random() >= share:
                    lost += 1
                    continue
                disk.seek(record.offset + start)
                disk.write(record.data[start : start + _PAGE])
    return lost


def cut_by_shutdown(place: str, kind: str, rounds: int, seed: int) -> Any:
    """Shuts a mounted file system down, without its log, in the middle of an operation, again and again."""
    rng = _seeded(seed)
    keep_in_memory(Path(place))
    image = Path(place, "image")
    make_image(image, kind)
    stream = Stream(seed, 20 * rounds + 2)
    figures = Figures()
    reached = 0
    for number in range(rounds):
        with mounted(image, kind) as point, Writer(point / "root", stream, reached) as writer:
            _write_until_cut(point, writer, rng)
        with mounted(image, kind) as point:
            progress = Progress(writer.acknowledged, writer.begun)
            reached = figures.add(point / "root", stream, progress, f"round {number}")
        if figures.problems:
            break
    return figures.result()


def _write_until_cut(point: Path, writer: Writer, rng: random.Random) -> None:
    took = 0.0
    for _ in range(rng.randint(1, 12)):
        took = _write_one(writer)
    directory = os.open(point, os.O_RDONLY)
    try:
        writer.begin()
        time.sleep(rng.uniform(0, took))  # the moment of the cut, wherever the writer is by then
        fcntl.ioctl(directory, _SHUT_DOWN, _WITHOUT_FLUSHING.to_bytes(4, "little"))
        writer.hear()
    finally:
        os.close(directory)


def _seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a sample, not a secret
