"""A disk that writes down what it is told: each write and each flush, in their order.

    python -m tests.kernel.block_log IMAGE LOG

Shows IMAGE once more as a file (FUSE) on top of itself. A loop device on that file passes on every write of
the file system on it, and every flush as an `fsync`, so LOG tells what a loss of power may leave of the disk:
all that was written before the last flush, and any part of what came after it. A line on the standard input
is noted as a mark and answered once it is in LOG; the end of the input ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

WRITE: Final = 0
FLUSH: Final = 1
MARK: Final = 2

_RECORD: Final = struct.Struct("<BQI")
_IN: Final = struct.Struct("<IIQQIIII")
_OUT: Final = struct.Struct("<IiQ")
_LARGEST: Final = 1 << 17
_LARGE_WRITES: Final = 1 << 5
_NOT_CACHED: Final = 1
_WRITE_HEAD: Final = 40
_ATTRIBUTES: Final = struct.Struct("<QII" + "QQQQQQ" + "IIIIIIIIII")
_LOOKED_UP, _FORGET, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE = 1, 2, 3, 4, 14, 15, 16
_RELEASE, _FSYNC, _FLUSH, _INIT, _INTERRUPT, _DESTROY = 18, 20, 25, 26, 36, 38


class Record(NamedTuple):
    """Is what the disk was told; of a mark the offset is its number."""

    kind: int
    offset: int
    data: bytes


def records(path: Path) -> Iterator[Record]:
    """Reads a log."""
    with path.open("rb") as file:
        while head := file.read(_RECORD.size):
            kind, offset, length = _RECORD.unpack(head)
            yield Record(kind, offset, file.read(length))


class BlockLog:
    """Answers the kernel's requests for the one file."""

    def __init__(self, image: Path, log: BinaryIO) -> None:
        self._image = os.open(image, os.O_RDWR | os.O_CLOEXEC)
        self._size = os.fstat(self._image).st_size
        self._log = log
        self._kernel = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._kernel},rootmode={stat.S_IFREG | 0o600:o},user_id=0,group_id=0"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"block-log", os.fsencode(image), b"fuse", 6, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "cannot mount", str(image))

    def serve(self) -> None:
        """Answers until the standard input ends."""
        number = 0
        while True:
            ready, _, _ = select.select([self._kernel, 0], [], [])
            if self._kernel in ready:
                self._answer(os.read(self._kernel, _LARGEST + 4_096))
            elif line := os.read(0, 64):
                number += line.count(b"\n")
                self._note(MARK, number)
                self._log.flush()
                os.write(1, b"\n")
            else:
                self._log.flush()
                return

    def _note(self, kind: int, offset: int = 0, data: bytes = b"") -> None:
        self._log.write(_RECORD.pack(kind, offset, len(data)) + data)

    def _answer(self, request: bytes) -> None:
        _, code, unique, *_ = _IN.unpack_from(request)
        if code in {_FORGET, _INTERRUPT}:
            return
        try:
            answer, error = self._reply(code, request[_IN.size :]), 0
        except OSError as failure:
            answer, error = b"", -(failure.errno or errno.EIO)
        os.write(self._kernel, _OUT.pack(_OUT.size + len(answer), error, unique) + answer)

    def _reply(self, code: int, body: bytes) -> bytes:
        replies = {
            _INIT: self._begin,
            _GETATTR: self._describe,
            _SETATTR: self._describe,
            _OPEN: lambda _: struct.pack("<QII", 1, _NOT_CACHED, 0),
            _READ: self._read,
            _WRITE: self._write,
            _FSYNC: self._flush,
        }
        if code in replies:
            return replies[code](body)
        if code in {_FLUSH, _RELEASE, _DESTROY}:
            return b""
        raise OSError(errno.ENOSYS, "not there")

    @staticmethod
    def _begin(body: bytes) -> bytes:
        major, minor, ahead = struct.unpack_from("<III", body)
        version = (major, min(minor, 31), ahead, _LARGE_WRITES)
        return struct.pack("<IIIIHHIIHHII24x", *version, 16, 12, _LARGEST, 1, 32, 0, 0, 0)

    def _describe(self, _: bytes) -> bytes:
        mode = stat.S_IFREG | 0o600
        size = (self._size, self._size // 512)
        return _ATTRIBUTES.pack(3_600, 0, 0, 1, *size, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4_096, 0)

    def _read(self, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(self._image, size, offset)

    def _write(self, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        data = body[_WRITE_HEAD : _WRITE_HEAD + size]
        os.pwrite(self._image, data, offset)
        self._note(WRITE, offset, data)
        return struct.pack("<II", size, 0)

    def _flush(self, _: bytes) -> bytes:
        self._note(FLUSH)
        return b""


if __name__ == "__main__":
    with open(sys.argv[2], "wb", buffering=1 << 20) as log:
        BlockLog(Path(sys.argv[1]), log).serve()
