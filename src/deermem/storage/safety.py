"""Safety copies: what a clear, an import or a restore takes away is kept aside in the same transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Final, NamedTuple

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.journal_json import Parts
from deermem.format.layout import AGENTS, SAFETY
from deermem.format.manifest_json import encode_manifest
from deermem.format.safety_json import (
    MAX_SAFETY_BYTES,
    KeptFile,
    SafetyCopy,
    decode_safety_copy,
    encode_safety_copy,
    revision_in,
    undone_name,
)
from deermem.model.changes import TRIM
from deermem.model.manifest import Manifest
from deermem.model.timestamps import parse_timestamp
from deermem.storage.bucket import Bucket
from deermem.storage.fact_files import MAX_FACT_FILE_BYTES
from deermem.storage.opening import trusted
from deermem.storage.port import FileTooLarge

DEFAULT_UNDO_DAYS: Final = 7
MAX_UNDO_DAYS: Final = 3_650
# More copies of one user than these are not kept, however young they are.
MAX_COPIES: Final = 20
# What is larger is not kept: the journal has to hold it, too, and the operation must not fail for its sake.
MAX_KEPT_BYTES: Final = 100_000_000

_log = logging.getLogger(__name__)

File = tuple[Parts, bytes]


class KeptAside(NamedTuple):
    """Says what a transaction does with safety copies beside its own changes."""

    files: Sequence[File] = ()
    deletes: tuple[Parts, ...] = ()


def keep_aside(
    bucket: Bucket,
    operation: str,
    manifests: tuple[Manifest, Manifest],
    files: Sequence[File],
    deletes: Iterable[Parts],
    *,
    now: str,
    days: int,
) -> KeptAside:
    """Makes a safety copy of what a transaction deletes and replaces, and lets expired ones go.

    Nothing is written: the copy is one more file of the transaction, so it is there if and only if the
    operation took place. The caller holds the user's lock.

    Args:
        bucket: The user's bucket.
        operation: What the transaction is: `clear`, `import`, `restore`, `trim`.
        manifests: The manifest before and after it.
        files: What it writes.
        deletes: What it removes.
        now: The time of the commit, as stored.
        days: How long copies are kept; 0 keeps none.
    """
    expired = tuple((SAFETY, name) for name in _expired(bucket, now, days))
    before, after = manifests
    if operation == TRIM:  # what else the transaction did stays when the facts come back
        before, files = after, ()
    written = tuple(KeptFile(parts, data) for parts, data in files if parts[0] == AGENTS)
    paths = dict.fromkeys((*(file.parts for file in written), *deletes))
    kept = tuple(_read(bucket, (parts for parts in paths if parts[0] == AGENTS))) if days else ()
    if not days or not (kept or written or before.summaries != after.summaries):
        return KeptAside(deletes=expired)
    copy = SafetyCopy(operation, now, after.revision, _text(before, now), _text(after, now), kept, written)
    size, data = sum(len(file.data) for file in (*kept, *written)), b""
    if size <= MAX_KEPT_BYTES:
        data = encode_safety_copy(copy)
        size = len(data)
    if size > MAX_KEPT_BYTES:  # escaped, control characters are six times as long
        _log.warning(
            "no safety copy of revision %d of %s: it has %d bytes", after.revision, bucket.user, size
        )
        return KeptAside(deletes=expired)
    parts = (SAFETY, copy.name)
    return KeptAside([(parts, data)], tuple(each for each in expired if each != parts))


def list_copies(bucket: Bucket) -> list[str]:
    """Returns the names of a user's safety copies, that of the newest operation first."""
    with suppress(FileNotFoundError), bucket.directory_at((SAFETY,)) as directory, trusted():
        names = [name for name in directory.names() if revision_in(name) is not None]
        return sorted(names, key=lambda name: revision_in(name) or 0, reverse=True)
    return []


def read_copy(bucket: Bucket, name: str) -> SafetyCopy:
    """Reads a safety copy.

    Raises:
        Corruption: It cannot be trusted.
        UnsupportedFormat: It is of a later format.
    """
    with bucket.directory_at((SAFETY,)) as directory, trusted():
        data, _ = directory.read(name, MAX_SAFETY_BYTES)
    return decode_safety_copy(data, bucket.path_of((SAFETY, name)))


def mark_undone(bucket: Bucket, name: str) -> None:
    """Keeps a safety copy that holds what no undo can bring back; the caller holds the user's lock."""
    with bucket.directory_at((SAFETY,)) as directory:
        directory.rename(name, directory, undone_name(name))
        directory.sync()


def is_expired(copy: SafetyCopy, now: str, days: int) -> bool:
    """Tells whether a copy is older than copies are kept."""
    return parse_timestamp(copy.time, "time") < parse_timestamp(now, "now") - timedelta(days=days)


def _expired(bucket: Bucket, now: str, days: int) -> list[str]:
    """Returns the copies to remove; the oldest are read, up to the first that is young enough."""
    names = list_copies(bucket)
    kept, gone = (names[: MAX_COPIES - 1], names[MAX_COPIES - 1 :]) if days else ([], names)
    for name in reversed(kept):
        with suppress(Corruption, UnsupportedFormat):  # what cannot be read is for a person to look at
            if not is_expired(read_copy(bucket, name), now, days):
                break
            gone.append(name)
    return gone


def _read(bucket: Bucket, paths: Iterable[Parts]) -> Iterable[KeptFile]:
    """Reads the files that are there, whatever they hold; one that no fact can be is left out."""
    for parts in paths:
        with suppress(FileNotFoundError, FileTooLarge), bucket.directory_at(parts[:-1]) as directory:
            yield KeptFile(parts, directory.read(parts[-1], MAX_FACT_FILE_BYTES)[0])


def _text(manifest: Manifest, now: str) -> bytes:
    if not manifest.revision:
        return b""
    return encode_manifest(replace(manifest, last_updated=manifest.last_updated or now))
