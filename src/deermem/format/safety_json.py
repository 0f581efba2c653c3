"""`.safety/{revision}-{operation}.json`: what an operation took away and put in its place, for an undo.

    {"format": 1, "operation": "clear", "time": "…Z", "revision": 12,
     "before": text of memory.json, empty where there was none,
     "after": text of memory.json,
     "kept":    [FILE, …],    facts that were deleted or replaced, as their files were
     "written": [FILE, …]}    facts that were written, as their files became

    FILE = {"path": "agents/…", "text": "…"}, or "base64" where the bytes are no UTF-8

`revision` is that of the operation's own commit, in whose transaction the file was written.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any, Final

from deermem.errors import Corruption, InvalidInputError, UnsupportedFormat
from deermem.format.layout import SAFETY
from deermem.format.manifest_json import decode_manifest
from deermem.format.strict_json import dump_compact, load_object
from deermem.model.summaries import EMPTY_SUMMARIES, Summaries
from deermem.model.timestamps import parse_timestamp

SAFETY_FORMAT: Final = 1
MAX_SAFETY_BYTES: Final = 400_000_000

_NAME: Final = re.compile(r"([1-9][0-9]{0,18})-[a-z]{1,20}(-undone)?\.json")

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptFile:
    """Is a fact's file; `parts` is its path below the user bucket."""

    parts: Parts
    data: bytes


@dataclass(frozen=True, slots=True)
class SafetyCopy:
    """Says what an operation replaced by what; `before` and `after` are the bytes of `memory.json`."""

    operation: str
    time: str
    revision: int
    before: bytes
    after: bytes
    kept: tuple[KeptFile, ...]
    written: tuple[KeptFile, ...]

    @property
    def name(self) -> str:
        """The file's name in `.safety`."""
        return f"{self.revision}-{self.operation}.json"

    def summaries_before(self) -> Summaries:
        """Returns the summaries that the operation found."""
        return decode_manifest(self.before, self.name).summaries if self.before else EMPTY_SUMMARIES

    def summaries_after(self) -> Summaries:
        """Returns the summaries that the operation left."""
        return decode_manifest(self.after, self.name).summaries


def revision_in(name: str) -> int | None:
    """Returns the revision of the safety copy of this name; `None` for any other file."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def is_undone(name: str) -> bool:
    """Tells whether a safety copy is one whose operation was taken back."""
    match = _NAME.fullmatch(name)
    return match is not None and match[2] is not None


def undone_name(name: str) -> str:
    """Returns the name of a safety copy whose operation was taken back."""
    return f"{name.removesuffix('.json')}-undone.json"


def is_safety_copy(parts: Parts) -> bool:
    """Tells whether a path below the bucket is that of a safety copy."""
    return len(parts) == 2 and parts[0] == SAFETY and revision_in(parts[1]) is not None


def encode_safety_copy(copy: SafetyCopy) -> bytes:
    """Returns the bytes of the file."""
    document = {
        "format": SAFETY_FORMAT,
        "operation": copy.operation,
        "time": copy.time,
        "revision": copy.revision,
        "before": copy.before.decode("utf-8"),
        "after": copy.after.decode("utf-8"),
        "kept": [_file_document(file) for file in copy.kept],
        "written": [_file_document(file) for file in copy.written],
    }
    return (dump_compact(document) + "\n").encode("utf-8")


def decode_safety_copy(data: bytes, path: str) -> SafetyCopy:
    """Reads a safety copy.

    Raises:
        Corruption: The bytes are not what `encode_safety_copy` wrote.
        UnsupportedFormat: The file is of a later format.
    """
    document = load_object(data, path)
    if document.get("format") != SAFETY_FORMAT:
        raise UnsupportedFormat(path, str(document.get("format"))[:40], str(SAFETY_FORMAT))
    try:
        copy = SafetyCopy(
            operation=document["operation"],
            time=document["time"],
            revision=document["revision"],
            before=document["before"].encode("utf-8"),
            after=document["after"].encode("utf-8"),
            kept=tuple(_file(entry) for entry in document["kept"]),
            written=tuple(_file(entry) for entry in document["written"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error):
        raise Corruption(path, "lacks a key or has one of the wrong type") from None
    if not _is_time(copy.time) or revision_in(copy.name) != copy.revision:
        raise Corruption(path, "lacks a key or has one of the wrong type")
    return copy


def _is_time(value: Any) -> bool:
    try:
        parse_timestamp(value, "time")
    except InvalidInputError:
        return False
    return True


def _file_document(file: KeptFile) -> dict[str, Any]:
    try:
        return {"path": "/".join(file.parts), "text": file.data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"path": "/".join(file.parts), "base64": base64.b64encode(file.data).decode("ascii")}


def _file(entry: dict[str, Any]) -> KeptFile:
    text = entry.get("text")
    data = base64.b64decode(entry["base64"], validate=True) if text is None else text.encode("utf-8")
    return KeptFile(tuple(entry["path"].split("/")), data)
