"""Other processes: each runs a function of `tests.support.work` and talks over a pipe."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

PATIENCE = 60.0

# Not `fork`: a process of its own knows nothing of this one's locks, threads and caches.
_CONTEXT = multiprocessing.get_context("spawn")

Work = Callable[..., None]


class Peer:
    """Is a process that runs `work(pipe, *arguments)` while the block runs.

    At the end of the block it must come to its own end, unless it was killed.
    """

    def __init__(self, work: Work, *arguments: object) -> None:
        self._pipe, self._theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_run, args=(work, self._theirs, *arguments), daemon=True)
        self._killed = False

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process.pid is not None
        return self._process.pid

    def hear(self) -> Any:
        """Returns what the process says next; what it raised is raised here."""
        assert self._pipe.poll(PATIENCE), "the process says nothing"
        said = self._pipe.recv()
        if isinstance(said, BaseException):
            raise said
        return said

    def tell(self, value: object = None) -> None:
        """Says something to the process."""
        self._pipe.send(value)

    def kill(self) -> None:
        """Ends the process at once (SIGKILL); it has no chance to tidy up."""
        self._killed = True
        self._process.kill()
        self._process.join()  # with a time limit it would wait for forked children, too

    def __enter__(self) -> Self:
        self._process.start()
        self._theirs.close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None and not self._killed:
            self._process.join(PATIENCE)
        stuck = self._process.is_alive()
        self._process.kill()
        self._process.join()
        self._pipe.close()
        if error is None and not self._killed:
            assert not stuck, "the process does not end"
            assert self._process.exitcode == 0


def _run(work: Work, pipe: Connection, *arguments: object) -> None:
    try:
        work(pipe, *arguments)
    except BaseException as error:
        pipe.send(error)
        raise
