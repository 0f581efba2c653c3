"""Looks at the safety copies that `deermem undo` works from: some are kept too long, some cannot be read."""

from __future__ import annotations

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.layout import SAFETY
from deermem.format.safety_json import MAX_SAFETY_BYTES, decode_safety_copy, revision_in
from deermem.maintenance.check_scan import Scan
from deermem.maintenance.findings import Action
from deermem.storage.port import Directory, EntryKind
from deermem.storage.safety import is_expired


def scan_safety(scan: Scan, safety: Directory) -> None:
    """Looks at all copies, and into the oldest, up to the first that is young enough."""
    revisions: dict[str, int] = {}
    for name, status in sorted(safety.statuses().items()):
        revision = revision_in(name)
        if scan.is_expected((SAFETY, name), status, EntryKind.FILE) and revision is not None:
            revisions[name] = revision
    for name in sorted(revisions, key=revisions.__getitem__):
        if not _look_into(scan, safety, name):
            break


def _look_into(scan: Scan, safety: Directory, name: str) -> bool:
    """Looks into one copy; tells whether younger ones may have expired, too."""
    parts, days = (SAFETY, name), scan.undo_days
    read = scan.read_or_note(safety, parts, MAX_SAFETY_BYTES, "safety-unreadable")
    if read is None:
        return True
    try:
        copy = decode_safety_copy(read[0], "")
    except (Corruption, UnsupportedFormat) as error:
        message = f"cannot be read: {error}; no undo can use it: remove it, or move it away"
        scan.add("safety-unreadable", parts, message.replace(": : ", ": "))
        return True
    if days and not is_expired(copy, scan.now, days):
        return False
    kept = f"is kept for an undo since {copy.time}, and such copies are to be kept for {days} days"
    scan.add("safety-expired", parts, kept, Action.EXPIRE, evidence=read[1])
    return True
