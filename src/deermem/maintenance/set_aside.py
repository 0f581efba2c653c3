"""Keeps what a repair removes or replaces: `.quarantine/{time}/`, a record and a copy of each file.

Everything is written as a new file and synced, with the way to it, before the caller removes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from deermem.format.layout import QUARANTINE
from deermem.maintenance.records import (
    MAX_RECORD_BYTES,
    RECORD_FILE,
    KeptEntry,
    Record,
    RecordState,
    decode_record,
    encode_record,
)
from deermem.storage.bucket import Bucket
from deermem.storage.journal import sync_above
from deermem.storage.opening import trusted
from deermem.storage.port import Directory

Parts = tuple[str, ...]

_NEW_RECORD = RECORD_FILE + ".new"


def keep(
    bucket: Bucket, time: str, revision: int, kept: Sequence[tuple[KeptEntry, bytes | None]]
) -> tuple[Parts, Record]:
    """Writes the record of a repair that begins, then the copies; both are durable when it returns.

    Args:
        bucket: The user's bucket, whose lock is held.
        time: When the repair began, as it is stored.
        revision: The manifest revision that the repair will write.
        kept: What will be set aside, with its bytes; `None` for what will be moved instead.

    Raises:
        OSError: The disk failed; everything is still in its place.
    """
    parts = _new_directory(bucket, time.replace(":", "-"))
    record = Record(RecordState.BEGUN, revision, tuple(entry for entry, _ in kept))
    with bucket.directory_at(parts) as directory:
        _write(directory, record)
        sync_above(bucket, parts, len(parts))
        directory.create_all([(entry.kept, data) for entry, data in kept if data is not None])
        directory.sync()
    return parts, record


def mark(bucket: Bucket, parts: Parts, record: Record, state: RecordState) -> None:
    """Replaces a record by one of another state, durably."""
    with bucket.directory_at(parts) as directory:
        _write(directory, replace(record, state=state))


def read_record(bucket: Bucket, parts: Parts) -> Record:
    """Reads the record in a directory of the quarantine.

    Raises:
        FileNotFoundError: There is none.
        Corruption: It cannot be trusted.
        UnsupportedFormat: It is of a later format.
    """
    with bucket.directory_at(parts) as directory, trusted():
        data, _ = directory.read(RECORD_FILE, MAX_RECORD_BYTES)
    return decode_record(data, bucket.path_of((*parts, RECORD_FILE)))


def _new_directory(bucket: Bucket, name: str) -> Parts:
    with bucket.directory_at((QUARANTINE,), make=True) as quarantine:
        number = 1
        unique = name
        while not quarantine.make_child(unique):
            number += 1
            unique = f"{name}-{number}"
    return QUARANTINE, unique


def _write(directory: Directory, record: Record) -> None:
    """Replaces the record as a whole: within one directory a rename is one change of names."""
    with suppress(FileNotFoundError):
        directory.unlink(_NEW_RECORD)
    directory.create(_NEW_RECORD, encode_record(record))
    directory.rename(_NEW_RECORD, directory, RECORD_FILE)
    directory.sync()
