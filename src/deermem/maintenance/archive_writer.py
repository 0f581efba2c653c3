"""Writes an archive: a tar of regular files, compressed as one gzip stream."""

from __future__ import annotations

import tarfile
import zlib
from typing import Any, BinaryIO, Final, NamedTuple

from deermem.errors import ArchiveError
from deermem.maintenance.archive import (
    HEADER,
    MANIFEST,
    MAX_FILES_OF_A_USER,
    MAX_TOTAL_BYTES,
    Entry,
    Header,
    Parts,
    UserEntry,
    encode_index,
    encode_manifest,
    index_name,
    member_name,
)
from deermem.maintenance.archive_reader import is_plausible

_BLOCK: Final = 512
_RECORD: Final = 10_240
_GZIP: Final = 31


class Mark(NamedTuple):
    """Is a place between two users to which an archive can be taken back."""

    packer: Any  # the type of a compressor has no name
    position: int
    users: int
    bytes_in: int
    bytes_out: int


class ArchiveWriter:
    """Adds members one after the other; nothing is kept but the index of the user at hand.

    Args:
        stream: Where to write.
        header: What kind of archive it is.
        seconds: The time that all members get.
    """

    def __init__(self, stream: BinaryIO, header: Header, seconds: int) -> None:
        self._stream = stream
        self._packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        self._seconds = seconds
        self._header = header
        self._index: list[Entry] = []
        self.users: list[UserEntry] = []
        self.bytes_in = self.bytes_out = 0
        self._member(HEADER, header.encode())

    def add(self, bucket: str | None, parts: Parts, data: bytes) -> None:
        """Adds a file of the user at hand."""
        if len(self._index) >= MAX_FILES_OF_A_USER:
            raise ArchiveError(member_name(bucket, parts), f"is one file more than {MAX_FILES_OF_A_USER:,}")
        self._index.append(self._member(member_name(bucket, parts), data))

    def end_user(self, bucket: str | None, revision: int | None) -> UserEntry:
        """Adds the index of the files that were added since the user before."""
        entry = self._member(index_name(bucket), encode_index(self._index))
        self.users.append(UserEntry(bucket, revision, len(self._index), entry))
        self._index = []
        return self.users[-1]

    def mark(self) -> Mark:
        """Returns the place that the archive has come to; only between two users, and where one can seek."""
        return Mark(self._packer.copy(), self._stream.tell(), len(self.users), self.bytes_in, self.bytes_out)

    def take_back(self, mark: Mark) -> None:
        """Removes what was added since a mark."""
        self._stream.seek(mark.position)
        self._stream.truncate()
        self._packer = mark.packer.copy()
        self.bytes_in, self.bytes_out = mark.bytes_in, mark.bytes_out
        del self.users[mark.users :]
        self._index = []

    def close(self) -> None:
        """Adds the manifest and ends the archive.

        Raises:
            ArchiveError: What was written is beyond what a restore accepts.
        """
        self._member(MANIFEST, encode_manifest(self._header, self.users))
        end = 2 * _BLOCK
        self._write(bytes(end + -(self.bytes_in + end) % _RECORD))
        self._flush(self._packer.flush())
        if self.bytes_in > MAX_TOTAL_BYTES or not is_plausible(self.bytes_in, self.bytes_out):
            raise ArchiveError("", "is too large, or too repetitive, to be told from a decompression bomb")

    def _member(self, name: str, data: bytes) -> Entry:
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = len(data), 0o600, self._seconds
        self._write(member.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict"))
        self._write(data)
        self._write(bytes(-len(data) % _BLOCK))
        return Entry.of(name, data)

    def _write(self, data: bytes) -> None:
        self.bytes_in += len(data)
        self._flush(self._packer.compress(data))

    def _flush(self, packed: bytes) -> None:
        self.bytes_out += len(packed)
        self._stream.write(packed)
