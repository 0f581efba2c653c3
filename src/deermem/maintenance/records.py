"""The record of what a repair set aside: `.quarantine/{time}/record.json`.

    {"format": 1, "state": "begun" | "done" | "undone", "revision": 12,
     "entries": [{"path": "agents/…", "kept": "0", "sha256": "…", "kind": "fact-corrupt", "reason": "…",
                  "movedTo": "agents/…", "replacedBy": ["…"]}, …]}

Paths are below the user bucket. `kept` is a name beside the record; without `sha256` it is the entry itself,
moved there: a link, a device or a directory. `movedTo` may be missing, and so may `replacedBy`, the SHA-256
of what the repair itself put in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.strict_json import dump_document, load_object

RECORD_FILE: Final = "record.json"
RECORD_FORMAT: Final = 1
MAX_RECORD_BYTES: Final = 32_000_000

_KEPT: Final = re.compile(r"[0-9]{1,7}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class RecordState(StrEnum):
    """Says how far a repair came, and whether it was undone."""

    BEGUN = "begun"
    DONE = "done"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """Is one thing that was set aside."""

    path: str
    kept: str
    sha256: str
    kind: str
    reason: str
    moved_to: str = ""
    replaced_by: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """Where it lay, below the bucket."""
        return tuple(self.path.split("/"))

    @property
    def moved_parts(self) -> tuple[str, ...]:
        """Where it was moved to, below the bucket; nothing if it was not."""
        return tuple(self.moved_to.split("/")) if self.moved_to else ()


@dataclass(frozen=True, slots=True)
class Record:
    """Says what a repair set aside, and which revision it wrote."""

    state: RecordState
    revision: int
    entries: tuple[KeptEntry, ...]


def encode_record(record: Record) -> bytes:
    """Returns the bytes of the file."""
    entries = [
        {
            "path": entry.path,
            "kept": entry.kept,
            "kind": entry.kind,
            "reason": entry.reason,
            **({"sha256": entry.sha256} if entry.sha256 else {}),
            **({"movedTo": entry.moved_to} if entry.moved_to else {}),
            **({"replacedBy": list(entry.replaced_by)} if entry.replaced_by else {}),
        }
        for entry in record.entries
    ]
    return dump_document(
        {
            "format": RECORD_FORMAT,
            "state": record.state.value,
            "revision": record.revision,
            "entries": entries,
        }
    )


def decode_record(data: bytes, path: str) -> Record:
    """Reads the file.

    Raises:
        Corruption: The document breaks a rule, or names a path that leads out of the bucket.
        UnsupportedFormat: The document is of a later format.
    """
    document = load_object(data, path)
    if document.get("format") != RECORD_FORMAT:
        raise UnsupportedFormat(path, str(document.get("format"))[:40], str(RECORD_FORMAT))
    try:
        state = RecordState(document["state"])
        revision = _revision(document["revision"])
        entries = tuple(_entry(entry) for entry in document["entries"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Corruption(path, "lacks a key or has one of the wrong type") from None
    return Record(state, revision, entries)


def _entry(document: Mapping[str, Any]) -> KeptEntry:
    entry = KeptEntry(
        path=_text(document["path"]),
        kept=_text(document["kept"]),
        sha256=_text(document.get("sha256", "")),
        kind=_text(document["kind"]),
        reason=_text(document["reason"]),
        moved_to=_text(document.get("movedTo", "")),
        replaced_by=tuple(_text(digest) for digest in document.get("replacedBy", [])),
    )
    _check_parts(entry.parts)
    if entry.moved_to:
        _check_parts(entry.moved_parts)
    if not _KEPT.fullmatch(entry.kept):
        raise ValueError(entry.kept)
    if any(digest and not _DIGEST.fullmatch(digest) for digest in (entry.sha256, *entry.replaced_by)):
        raise ValueError(entry.sha256)
    return entry


def _check_parts(parts: tuple[str, ...]) -> None:
    if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts):
        raise ValueError(parts)


def _revision(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
