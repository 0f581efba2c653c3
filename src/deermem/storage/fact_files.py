"""What a file with a fact's name is, told without parsing it."""

from __future__ import annotations

import re
from typing import Final

from deermem.storage.port import Directory, UnexpectedFileType

MAX_FACT_FILE_BYTES: Final = 2_000_000
_OPENING: Final = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*---")
_ID_LINE: Final = re.compile(rb"^id:[ \t]*[\"']?([A-Za-z0-9_-]+)", re.MULTILINE)
_HEAD_BYTES: Final = 8_192


def id_in(data: bytes) -> str | None:
    """Returns the id that a fact document names; a copy under another name is none of that name."""
    match = _ID_LINE.search(data[:_HEAD_BYTES]) if _OPENING.match(data) else None
    return None if match is None else match[1].decode("ascii")


def holds_a_fact(directory: Directory, name: str) -> bool:
    """Tells whether a file is a fact document, of whatever id."""
    try:
        return id_in(directory.read(name, MAX_FACT_FILE_BYTES)[0]) is not None
    except (FileNotFoundError, UnexpectedFileType):
        return False


def is_own_name(shard: Directory, name: str) -> bool:
    """Tells whether a file that was opened has exactly this name; costly only where case is ignored."""
    try:
        shard.identify(name.swapcase())
    except (FileNotFoundError, UnexpectedFileType):
        return True
    return name in shard.names()
