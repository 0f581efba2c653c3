"""Threads whose errors are the test's errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

PATIENCE = 60.0


class in_thread:  # noqa: N801 - reads as a statement: with in_thread(work): …
    """Runs something in a thread while the block runs, and waits for its end."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self._error = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the thread is stuck"
        if self._error is not None and error is None:
            raise self._error


def run_together(*works: Callable[[], object]) -> None:
    """Runs several things at once, each in a thread, all let go at the same moment."""
    barrier = threading.Barrier(len(works), timeout=PATIENCE)

    def started(work: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            barrier.wait()
            work()

        return run

    threads = [in_thread(started(work)) for work in works]
    for thread in threads:
        thread.__enter__()
    for thread in threads:
        thread.__exit__(None, None, None)
