"""Lines over two file descriptors, without ever blocking the event loop or the end of the process.

A client that sends nothing, or takes nothing, leaves a call of the system waiting for ever. The threads here
are daemons, which Python does not wait for, and they use raw files rather than buffered ones, which an ending
Python would want to lock.
"""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

MAX_LINE: Final = 4 * 1_024 * 1_024
_CHUNK: Final = 65_536
_LINES_AHEAD: Final = 8


class TooLong(Exception):
    """Says that a line was longer than `MAX_LINE`; it was passed over."""


@contextmanager
def claimed_standard_streams() -> Iterator[tuple[int, int]]:
    """Gives the descriptors of standard input and output, and keeps them from everything else.

    While the block runs, what anything in the process prints goes to standard error, and what it reads is
    empty: the protocol alone is spoken on the two.
    """
    source, target = os.dup(0), os.dup(1)
    try:
        with io.FileIO(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        _lead_to_standard_error(1)
        yield source, target
    finally:
        os.dup2(source, 0)
        os.dup2(target, 1)
        # They stay open: a thread may still wait on one, and its number must not come to mean another file.


def _lead_to_standard_error(descriptor: int) -> None:
    try:
        os.dup2(2, descriptor)
    except OSError:  # it is closed
        with io.FileIO(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), descriptor)


class LineReader:
    """Reads lines in a thread of its own; belongs to the event loop that made it.

    Args:
        descriptor: What to read.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | TooLong | None] = asyncio.Queue()
        self._room = threading.Semaphore(_LINES_AHEAD)
        threading.Thread(target=self._read, name="deermem-mcp-input", daemon=True).start()

    def end(self) -> None:
        """Reads no further: what was not handed out is dropped."""
        while not self._lines.empty():
            self._lines.get_nowait()
        self._lines.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[bytes | TooLong]:
        """Yields each line as it comes, until the other end closes or `end` is called."""
        while (line := await self._lines.get()) is not None:
            self._room.release()
            yield line

    def _read(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            for line in _lines_of(self._descriptor):
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


def _lines_of(descriptor: int) -> Iterator[bytes | TooLong]:
    source = io.FileIO(descriptor, closefd=False)
    parts: list[bytes] = []
    size = 0
    while chunk := _chunk_of(source):
        *ended, rest = chunk.split(b"\n")
        for end in ended:
            size += len(end)
            yield b"".join((*parts, end)) if size <= MAX_LINE else TooLong()
            parts, size = [], 0
        size += len(rest)
        if size <= MAX_LINE:
            parts.append(rest)
        else:
            parts.clear()
    if parts and size <= MAX_LINE:
        yield b"".join(parts)


def _chunk_of(source: io.FileIO) -> bytes:
    """Returns what comes next; a broken connection ends as a closed one does."""
    try:
        return source.read(_CHUNK) or b""
    except OSError:
        return b""


class LineWriter:
    """Writes lines in a thread of its own, one after another; belongs to the event loop that made it.

    Args:
        descriptor: Where to write.
    """

    def __init__(self, descriptor: int) -> None:
        self._target = io.FileIO(descriptor, "w", closefd=False)
        self._loop = asyncio.get_running_loop()
        self._wanted = threading.Condition()
        self._next: tuple[bytes, Callable[[OSError | None], None]] | None = None
        threading.Thread(target=self._work, name="deermem-mcp-output", daemon=True).start()

    async def write(self, line: bytes) -> None:
        """Writes a line as a whole; must not be called anew before the last one has returned.

        Raises:
            OSError: The other end is closed.
        """
        outcome: asyncio.Future[None] = self._loop.create_future()

        def finish(error: OSError | None) -> None:
            if outcome.done():
                return
            if error is None:
                outcome.set_result(None)
            else:
                outcome.set_exception(error)

        with self._wanted:
            self._next = line, finish
            self._wanted.notify()
        await outcome

    def _work(self) -> None:
        while True:
            with self._wanted:
                while self._next is None:
                    self._wanted.wait()
                line, finish = self._next
                self._next = None
            error: OSError | None = None
            try:
                left = memoryview(line)
                while left:
                    left = left[self._target.write(left) or 0 :]
            except OSError as raised:
                error = raised
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(finish, error)
