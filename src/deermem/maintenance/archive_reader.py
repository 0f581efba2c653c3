"""Reads an archive that anybody may have written: regular files only, within limits, in bounded memory.

The standard library's reader understands links, devices, sparse files and headers of any length. None of
that is in a backup, so this one knows two kinds of headers and refuses the rest.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from deermem.errors import ArchiveError
from deermem.maintenance.archive import (
    HEADER,
    MANIFEST,
    MAX_DOCUMENT_BYTES,
    MAX_FILE_BYTES,
    MAX_INDEX_BYTES,
    MAX_MEMBERS,
    MAX_NAME_BYTES,
    MAX_TOTAL_BYTES,
    OWN,
)

# A bomb of 4 MB that packs a thousand to one ends here; texts of people pack three to one.
MAX_RATIO: Final = 100
RATIO_ALLOWANCE: Final = 1_000_000_000

_BLOCK: Final = 512
_CHUNK: Final = 65_536
_PADDING: Final = 20_480
_GZIP: Final = 31
_REGULAR: Final = (b"0", b"\0")
_EXTENDED: Final = b"x"
_OCTAL: Final = re.compile(rb"([0-7]{1,12})[ \0]*")
_RECORD: Final = re.compile(rb"([1-9][0-9]{0,4}) ([^=\n]+)=")
_TRUNCATED: Final = "is cut short"


class Member(NamedTuple):
    """Is one file of an archive."""

    name: str
    data: bytes


def is_plausible(unpacked: int, packed: int) -> bool:
    """Tells whether so many bytes may come of so many packed ones, or are a decompression bomb."""
    return unpacked <= RATIO_ALLOWANCE + MAX_RATIO * packed


def read_members(stream: BinaryIO) -> Iterator[Member]:
    """Yields the members of an archive, one at a time in memory.

    Raises:
        ArchiveError: It is no archive, is damaged or cut short, holds what is no regular file, or is
            beyond a limit.
    """
    source = _Unpacked(stream)
    for _ in range(MAX_MEMBERS):
        block = source.take(_BLOCK)
        if not any(block):
            source.finish()
            return
        kind, name, size = _parse_block(block)
        if kind == _EXTENDED:
            if size > MAX_NAME_BYTES + _BLOCK:
                raise ArchiveError(name, "has a header that is too long")
            name = _long_name(name, source.take_padded(size))
            kind, _, size = _parse_block(source.take(_BLOCK))
        if kind not in _REGULAR:
            raise ArchiveError(name, "is not a regular file")
        limit = _limit_of(name)
        if size > limit:
            raise ArchiveError(name, f"is larger than {limit:,} bytes")
        yield Member(name, source.take_padded(size))
    raise ArchiveError("", f"has more than {MAX_MEMBERS:,} members")


def _limit_of(name: str) -> int:
    if name in (HEADER, MANIFEST):
        return MAX_DOCUMENT_BYTES
    return MAX_INDEX_BYTES if name.startswith(f"{OWN}/") else MAX_FILE_BYTES


def _parse_block(block: bytes) -> tuple[bytes, str, int]:
    """Returns the kind, the name and the size that a header of a member tells."""
    stored = _OCTAL.fullmatch(block[148:156].lstrip(b" "))
    if stored is None or int(stored[1], 8) != sum(block) - sum(block[148:156]) + 8 * ord(" "):
        raise ArchiveError("", "is damaged: a header has another checksum")
    if block[257:263] != b"ustar\0":
        raise ArchiveError("", "is damaged or of another kind: a header is not of the ustar format")
    prefix, _, _ = block[345:500].partition(b"\0")
    name, _, _ = block[:100].partition(b"\0")
    text = _text(prefix + b"/" + name if prefix else name)
    size = _OCTAL.fullmatch(block[124:136])
    if size is None:
        raise ArchiveError(text, "has a size that is no number")
    return block[156:157], text, int(size[1], 8)


def _long_name(place: str, data: bytes) -> str:
    """Returns the path that an extended header gives to the next member; it must hold nothing else."""
    record = _RECORD.match(data)
    if record is None or record[2] != b"path" or int(record[1]) != len(data) or data[-1:] != b"\n":
        raise ArchiveError(place, "has a header with more than a path")
    return _text(data[record.end() : -1])


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise ArchiveError(name.decode("ascii", "backslashreplace"), "has a name that is not UTF-8") from None


class _Unpacked:
    """Is the decompressed content of a gzip stream, read in order."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._unpacker = zlib.decompressobj(_GZIP)
        self._packed = b""
        self._bytes_in = self._bytes_out = 0

    def take(self, size: int) -> bytes:
        """Returns the next bytes, exactly so many."""
        found = bytearray()
        while len(found) < size:
            part = self._more(min(size - len(found), _CHUNK * 16))
            if not part:
                raise ArchiveError("", _TRUNCATED)
            found += part
        return bytes(found)

    def take_padded(self, size: int) -> bytes:
        """Returns the next bytes and skips what fills the last block."""
        data = self.take(size)
        self.take(-size % _BLOCK)
        return data

    def finish(self) -> None:
        """Makes sure that nothing but padding follows, and that the stream is whole."""
        padding = 0
        while part := self._more(_CHUNK):
            padding += len(part)
            if any(part) or padding > _PADDING:
                raise ArchiveError("", "goes on behind its end")
        if not self._unpacker.eof:
            raise ArchiveError("", _TRUNCATED)
        if self._unpacker.unused_data or self._stream.read(1):
            raise ArchiveError("", "goes on behind its end")

    def _more(self, limit: int) -> bytes:
        """Returns some of the next bytes; none at the end."""
        while not self._unpacker.eof:
            if not self._packed:
                self._packed = self._stream.read(_CHUNK)
                self._bytes_in += len(self._packed)
            at_end = not self._packed
            try:
                part = self._unpacker.decompress(self._packed, limit)
            except zlib.error as error:
                raise ArchiveError("", f"is damaged, or not compressed by gzip ({error})") from None
            self._packed = self._unpacker.unconsumed_tail
            self._count(len(part))
            if part or at_end:
                return part
        return b""

    def _count(self, size: int) -> None:
        self._bytes_out += size
        if self._bytes_out > MAX_TOTAL_BYTES:
            raise ArchiveError("", f"unpacks to more than {MAX_TOTAL_BYTES:,} bytes")
        if not is_plausible(self._bytes_out, self._bytes_in):
            raise ArchiveError("", f"unpacks to more than {MAX_RATIO} times its size: a bomb")
