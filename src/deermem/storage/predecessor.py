"""Ends a transaction that the predecessor left half-way (contract section 4).

Its journal is an undo journal. What it says is done as one transaction of ours, whose journal takes
the name of the other in one step: before that step nothing was changed, after it all will be.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from deermem.errors import Corruption, LegacyFormat
from deermem.format.fences_json import encode_fences
from deermem.format.journal_json import Parts
from deermem.format.layout import FENCES, JOURNAL, RECOVERY, fact_parts
from deermem.format.legacy_journal import LegacyJournal, decode_legacy_journal
from deermem.format.legacy_json import MAX_LEGACY_BYTES
from deermem.format.manifest_json import decode_manifest, encode_manifest
from deermem.model.manifest import NO_MANIFEST
from deermem.storage.bucket import Bucket
from deermem.storage.copies import Superseded
from deermem.storage.fact_files import MAX_FACT_FILE_BYTES
from deermem.storage.journal import remove_kept
from deermem.storage.opening import trusted
from deermem.storage.transaction import write_all

_log = logging.getLogger(__name__)

_MAX_JOURNAL_BYTES = 32_000_000
_MANIFEST = "memory.json"  # whatever the manifest's name is, in the predecessor's .recovery


def end_legacy_transaction(bucket: Bucket, operation: str) -> None:
    """Finishes a committed transaction of the predecessor, or rolls a prepared one back.

    The caller holds the user's lock.

    Raises:
        Corruption: The journal, or a file that it needs, cannot be trusted; nothing was changed.
        CommitInDoubt: The disk failed after the change was journalled; the next access completes it.
    """
    with trusted():
        data, _ = bucket.directory.read(JOURNAL, _MAX_JOURNAL_BYTES)
    journal = decode_legacy_journal(data, bucket.path_of((JOURNAL,)))
    if journal.committed:
        _log.warning("ending a finished transaction of the predecessor for %s", bucket.user)
        bucket.directory.unlink(JOURNAL)
        bucket.directory.sync()
        _drop_kept(bucket, journal)
        return
    _log.warning(
        "rolling back a transaction of the predecessor for %s to revision %d",
        bucket.user,
        journal.expected_revision,
    )
    files = list(_restored_facts(bucket, journal))
    deletes = tuple(sorted(_new_facts(bucket, journal)))
    manifest, seen = _restored_manifest(bucket, journal)
    present, on_disk = _manifest_on_disk(bucket)
    seen = max(seen, on_disk or 0, journal.next_revision)
    try:
        restored = decode_manifest(manifest, bucket.path_of((bucket.manifest_name,)))
        # Readers may have seen the revision that is taken back: it must not come again.
        manifest = encode_manifest(replace(restored, revision=seen + 1))
    except LegacyFormat:
        fences = bucket.read_fences().raised((), True, seen).forgetting([bucket.manifest_name])
        files.append(((FENCES,), encode_fences(fences)))
    write_all(
        bucket,
        operation,
        (on_disk or 0, seen + 1),
        files,
        ((bucket.manifest_name,), manifest),
        deletes,
        Superseded(base=present if on_disk is None else None),
        replaces_journal=True,
    )
    _drop_kept(bucket, journal)


def _manifest_on_disk(bucket: Bucket) -> tuple[bytes, int | None]:
    """Returns the bytes of `memory.json`, and its revision where they can be trusted.

    The predecessor did not sync what it wrote, so a loss of power may have left them empty or torn.
    """
    try:
        return bucket.manifest_on_disk()
    except Corruption:
        return bucket.manifest_bytes() or b"", None


def _drop_kept(bucket: Bucket, journal: LegacyJournal) -> None:
    """Removes what the transaction had kept aside; where its name is a usual one a sweep would, too."""
    with suppress(OSError), bucket.directory_at((RECOVERY,)) as recovery:
        remove_kept(recovery, journal.operation)


def _restored_facts(bucket: Bucket, journal: LegacyJournal) -> Iterator[tuple[Parts, bytes]]:
    for fact_id, parts in journal.old_paths.items():
        yield parts, _backup(bucket, journal, f"{fact_id}.md", MAX_FACT_FILE_BYTES)


def _new_facts(bucket: Bucket, journal: LegacyJournal) -> Iterator[Parts]:
    for fact_id in journal.fact_ids:
        if fact_id in journal.old_paths:
            continue
        if journal.agent is None:
            raise Corruption(bucket.path_of((JOURNAL,)), "names facts and no agent")
        yield fact_parts(journal.agent, fact_id)


def _restored_manifest(bucket: Bucket, journal: LegacyJournal) -> tuple[bytes, int]:
    """Returns what `memory.json` was before, and the highest revision that it names.

    The first transaction of all had nothing to keep. What is there then is kept as it is: that a file
    is missing never leads to deleting another.
    """
    try:
        return _backup(bucket, journal, _MANIFEST, MAX_LEGACY_BYTES), journal.expected_revision
    except Corruption:
        if journal.expected_revision:
            raise
    data, revision = bucket.manifest_on_disk()
    if not data:
        first = replace(NO_MANIFEST, revision=1, last_updated="1970-01-01T00:00:00Z")
        return encode_manifest(first), 0
    return data, revision or 0


def _backup(bucket: Bucket, journal: LegacyJournal, name: str, limit: int) -> bytes:
    parts = (RECOVERY, journal.operation)
    try:
        with bucket.directory_at(parts) as directory, trusted():
            data, _ = directory.read(name, limit)
            data.decode("utf-8")
    except FileNotFoundError:
        reason = f"is missing, and the interrupted transaction of {JOURNAL} cannot be rolled back without it"
        raise Corruption(bucket.path_of((*parts, name)), reason) from None
    except UnicodeDecodeError:
        raise Corruption(bucket.path_of((*parts, name)), "is not UTF-8") from None
    return data
