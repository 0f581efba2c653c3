"""A forked process that writes a stream, one operation for each word from its parent."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from deermem import MemoryRepository
from tests.kernel.stream import Stream

DONE = "done"


class Writer:
    """Is such a process while the block runs; at its end it is killed.

    Args:
        root: The storage root.
        stream: What to write.
        first: The number of the first operation to do.
    """

    def __init__(self, root: Path, stream: Stream, first: int = 0) -> None:
        self._orders, self._answers = os.pipe(), os.pipe()
        self._root = root
        self._stream = stream
        self._next = first
        self.acknowledged = first
        self._pid = 0

    @property
    def begun(self) -> int:
        """How many operations of the stream were called."""
        return self._next

    def begin(self) -> None:
        """Lets the process begin the next operation."""
        self._next += 1
        os.write(self._orders[1], b"!")

    def hear(self) -> str:
        """Returns `DONE`, or what the operation raised, which leaves it in doubt."""
        answer = os.read(self._answers[0], 4_096).decode()
        if answer == DONE:
            self.acknowledged = self._next
        return answer

    def __enter__(self) -> Self:
        self._pid = os.fork()
        if self._pid == 0:
            self._write()
        os.close(self._orders[0])
        os.close(self._answers[1])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._orders[1])
        os.close(self._answers[0])

    def _write(self) -> NoReturn:
        os.close(self._orders[1])
        logging.disable()
        repository = MemoryRepository(self._root)
        while os.read(self._orders[0], 1):
            try:
                self._stream.actions[self._next].run(repository)
                answer = DONE
            except Exception as error:  # noqa: BLE001 - whatever it is, the operation is not done
                answer = repr(error)
            self._next += 1
            os.write(self._answers[1], answer.encode()[:4_096])
        os._exit(0)
