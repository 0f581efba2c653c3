"""Brings a user's files back to a committed state after a writer died."""

from __future__ import annotations

import logging
from contextlib import suppress

from deermem.errors import Corruption
from deermem.format.journal_json import MAX_JOURNAL_BYTES, Journal, decode_journal
from deermem.format.layout import JOURNAL, RECOVERY
from deermem.format.legacy_version import is_legacy_text
from deermem.storage.bucket import Bucket
from deermem.storage.journal import reapply, sweep
from deermem.storage.opening import trusted

_log = logging.getLogger(__name__)


def recover(bucket: Bucket) -> bool:
    """Completes an interrupted transaction and removes what dead writers staged.

    The caller holds the user's lock. Costs two system calls when there is nothing to do.

    Returns:
        Whether there was a hot journal.

    Raises:
        Corruption: The journal cannot be trusted; nothing was changed.
        LegacyFormat: The journal is the predecessor's; nothing was changed.
        UnsupportedFormat: The journal is another version's; nothing was changed.
        OSError: The disk failed; the journal is still there and the next access tries again.
    """
    journal = _read_journal(bucket)
    if journal is not None:
        # Readers may have seen effects of this journal while its name was not durable yet; after a
        # power loss it must not be missing then. So its name comes first.
        bucket.directory.sync()
        with bucket.directory_at((RECOVERY,), make=True) as recovery:
            if _is_pending(bucket, journal):
                _log.warning(
                    "completing an interrupted change to revision %d of %s", journal.revision, bucket.user
                )
                reapply(bucket, recovery, journal)
            # On a stale network client the journal that was found may be gone already.
            with suppress(FileNotFoundError):
                bucket.directory.unlink(JOURNAL)
    with suppress(FileNotFoundError), bucket.directory_at((RECOVERY,)) as recovery:
        sweep(bucket, recovery)
    return journal is not None


def _read_journal(bucket: Bucket) -> Journal | None:
    with trusted(), suppress(FileNotFoundError):
        data, _ = bucket.directory.read(JOURNAL, MAX_JOURNAL_BYTES)
        return decode_journal(data, bucket.path_of((JOURNAL,)), bucket.manifest_name)
    return None


def _is_pending(bucket: Bucket, journal: Journal) -> bool:
    """Tells whether a journal's transaction still has to be completed.

    The manifest is replaced after everything else was made durable, so one that the journal wrote, or
    a later one, proves that all is done. One of version 1 has no revision, so the journal tells which
    one it replaces; that may have the very bytes that it writes, and then all is done once more.
    """
    data = bucket.manifest_bytes()
    if journal.starts_from(data):
        return True
    if data is not None and journal.manifest.is_content(data):
        return False
    revision = bucket.manifest_on_disk()[1]
    if revision is None:
        if is_legacy_text(journal.manifest.text.encode("utf-8")):
            return False  # what it wrote was changed since, by the application that it was meant for
        raise Corruption(
            bucket.path_of((bucket.manifest_name,)),
            f"was written by another program before a change to revision {journal.revision} was complete",
            "stop that program and move the file away; the next access completes the change",
        )
    if revision >= journal.revision:
        return False
    if revision != journal.base_revision:
        raise Corruption(
            bucket.path_of((JOURNAL,)),
            f"leads from revision {journal.base_revision} to {journal.revision}, "
            f"but {bucket.manifest_name} is at {revision}",
            "one of the two was replaced by hand",
        )
    return True
