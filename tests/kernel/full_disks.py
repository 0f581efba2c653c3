"""Lets a small file system fill up, or become read-only, under several processes that write."""

from __future__ import annotations

import errno
import os
import random
import select
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from deermem import ANYTHING, ChangeSet, CommitInDoubt, FactDraft, MemoryRepository, Scope, Upsert
from deermem.format.layout import JOURNAL
from deermem.maintenance.check import check_store
from deermem.maintenance.findings import Severity
from deermem.model.identity import FactId
from tests.kernel.disks import run

ALICE: Final = Scope.of("alice")
_WRITERS: Final = 4
_FACTS_OF_EACH: Final = 12
_PATIENCE: Final = 30.0
# So often each writer must have met the state of the disk before that changes.
_OFTEN: Final = 3

DONE: Final = "done"
REFUSED: Final = "refused"
IN_DOUBT: Final = "in doubt"


class BusyWriter:
    """Is a process that writes facts of its own, all of one user, until it is told to stop.

    `allowed` holds for each of its facts the numbers of the texts that may be found, 0 for none.
    """

    def __init__(self, root: Path, number: int, refusals: set[int], pause: float) -> None:
        self._root = root
        self._pause = pause
        self._number = number
        self._refusals = refusals
        self._stop, self._told = os.pipe(), os.pipe()
        self._unread = b""
        self._pid = 0
        self.allowed: dict[str, set[int]] = {}
        self.outcomes: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._pid = os.fork()
        if self._pid == 0:
            self._write()
        os.close(self._told[1])
        os.close(self._stop[0])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def fileno(self) -> int:
        """Returns what becomes readable when the process has something to tell."""
        return self._told[0]

    def hear(self) -> bool:
        """Takes in what the process tells; tells whether it goes on."""
        told = os.read(self._told[0], 1 << 16)
        *lines, self._unread = (self._unread + told).split(b"\n")
        for line in lines:
            fact_id, text, outcome = line.decode().split(" ", 2)
            self.outcomes[outcome] += 1
            allowed = self.allowed.setdefault(fact_id, {0})
            if outcome == DONE:
                allowed.clear()
            if outcome in {DONE, IN_DOUBT}:
                allowed.add(int(text))
        return bool(told)

    def stop(self) -> None:
        """Lets the process end after the operation at hand."""
        os.write(self._stop[1], b"!")
        while self.hear():
            pass

    def _write(self) -> NoReturn:
        store = MemoryRepository(self._root, lock_timeout=_PATIENCE)
        rng = random.Random(self._number)  # noqa: S311 - a sample, not a secret
        text = 0
        while not select.select([self._stop[0]], [], [], self._pause * rng.random())[0]:
            text += 1
            fact_id = FactId(f"w{self._number}-{rng.randrange(_FACTS_OF_EACH)}")
            draft = FactDraft(f"{text} {'x' * rng.randrange(8_000)}.", id=fact_id)
            changes = ChangeSet(upserts=(Upsert(ALICE.agent, draft, ANYTHING),))
            outcome = self._outcome(partial(store.apply_changes, "alice", changes))
            os.write(self._told[1], f"{fact_id} {text} {outcome}\n".encode())
        os._exit(0)

    def _outcome(self, write: Callable[[], object]) -> str:
        try:
            write()
        except CommitInDoubt:
            return IN_DOUBT
        except OSError as error:
            return REFUSED if error.errno in self._refusals else repr(error)
        except Exception as error:  # noqa: BLE001 - shown by the test
            return repr(error)
        return DONE


class Experiment:
    """Writes a store on a small tmpfs while `obstruct` and `clear` take turns."""

    def __init__(self, place: str, refusals: set[int], pause: float = 0.0) -> None:
        self.point = Path(place, "mounted")
        self.point.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(self.point))
        self.root = self.point / "root"
        self.reads: Counter[str] = Counter()
        self.problems: list[str] = []
        self._refusals = refusals
        self._pause = pause

    def run(self, rounds: int, obstruct: Callable[[], None], clear: Callable[[], None]) -> dict[str, Any]:
        """Returns how the writers fared, and what is wrong."""
        with ExitStack() as stack:
            writers = [
                stack.enter_context(BusyWriter(self.root, number, self._refusals, self._pause))
                for number in range(_WRITERS)
            ]
            self._await(writers, DONE)
            for _ in range(rounds):
                obstruct()
                self._await(writers, REFUSED, IN_DOUBT)
                self._read()
                clear()
                self._await(writers, DONE)
            for writer in writers:
                writer.stop()
        self._compare({fact: allowed for writer in writers for fact, allowed in writer.allowed.items()})
        outcomes = sum((writer.outcomes for writer in writers), Counter())
        self.problems += sorted(outcomes.keys() - {DONE, REFUSED, IN_DOUBT})
        return {**outcomes, **self.reads, "rounds": rounds, "problems": self.problems[:5]}

    def _await(self, writers: list[BusyWriter], *outcomes: str) -> None:
        """Waits until each writer has met one of some outcomes often enough."""

        def met(writer: BusyWriter) -> int:
            return sum(writer.outcomes[outcome] for outcome in outcomes)

        wanted = {writer: met(writer) + _OFTEN for writer in writers}
        while any(met(writer) < often for writer, often in wanted.items()):
            ready, _, _ = select.select(writers, [], [], _PATIENCE)
            assert ready, f"nobody goes on: {[writer.outcomes for writer in writers]}"
            for writer in ready:
                assert writer.hear(), "a writer died"

    def _read(self) -> None:
        """Reads beside the obstacle; what waits to be completed is all that may be in the way of it."""
        try:
            MemoryRepository(self.root, lock_timeout=_PATIENCE).snapshot(ALICE)
        except OSError as error:
            self.reads["reads refused"] += 1
            journal = self.root / "users" / "alice" / JOURNAL
            if error.errno not in self._refusals or not journal.exists():
                self.problems.append(f"a read raised {error!r}")
        else:
            self.reads["reads"] += 1

    def _compare(self, allowed: dict[str, set[int]]) -> None:
        store = MemoryRepository(self.root)
        found = {str(fact.id): int(fact.content.split(" ")[0]) for fact in store.snapshot(ALICE).facts}
        self.problems += [
            f"{fact_id} has text {found.get(fact_id, 0)} where {sorted(texts)} may be"
            for fact_id, texts in allowed.items()
            if found.get(fact_id, 0) not in texts
        ]
        self.problems += [f"{fact_id} was never written" for fact_id in found.keys() - allowed.keys()]
        self.problems += [
            f"check: {finding.path}: {finding.message}"
            for finding in check_store(store).findings
            if finding.severity is Severity.ERROR
        ]


def fill_up(place: str, rounds: int) -> dict[str, Any]:
    """Lets the disk be full from time to time, with a little room or with none."""
    experiment = Experiment(place, {errno.ENOSPC})
    ballast = experiment.point / "ballast"
    rng = random.Random(rounds)  # noqa: S311 - a sample, not a secret

    def fill() -> None:
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4_096)):
                pass
        # Two pages more or less decide at which step of a transaction the disk is full.
        os.truncate(ballast, max(0, ballast.stat().st_size - 4_096 * rng.randrange(3)))

    return experiment.run(rounds, fill, ballast.unlink)


def forbid_writing(place: str, rounds: int) -> dict[str, Any]:
    """Remounts the disk read-only from time to time, between two writes."""
    # The kernel refuses it while a file is open for writing, so there have to be moments without one.
    experiment = Experiment(place, {errno.EROFS}, pause=0.1)

    def remount(mode: str) -> None:
        for _ in range(5_000):
            with suppress(OSError):
                run("mount", "-o", f"remount,{mode}", str(experiment.point))
                return
        raise TimeoutError("a file was open whenever it was tried")

    return experiment.run(rounds, lambda: remount("ro"), lambda: remount("rw"))
