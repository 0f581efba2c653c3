"""Looks at the files of a bucket beside its facts: `memory.json`, fences, backups, and the journal."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from deermem.errors import Corruption, LegacyFormat, UnsupportedFormat
from deermem.format.fences_json import MAX_FENCES_BYTES, decode_fences
from deermem.format.journal_json import MAX_JOURNAL_BYTES, Journal, decode_journal
from deermem.format.layout import BACKUP_SUFFIX, FENCES, JOURNAL
from deermem.format.legacy_journal import LegacyJournal, decode_legacy_journal
from deermem.format.legacy_json import MAX_LEGACY_BYTES
from deermem.format.legacy_v1 import decode_legacy
from deermem.format.manifest_json import decode_manifest
from deermem.maintenance.check_scan import MAX_SET_ASIDE, Parts, Scan
from deermem.maintenance.findings import Action
from deermem.model.identity import AgentName, Scope
from deermem.storage.bucket import ManifestImage
from deermem.storage.port import Directory, FileIdentity

# A text that was written in full; what follows is why it cannot be used.
_MIGRATE = "`deermem migrate` shows what it holds; the next access migrates it"
# Version 1 alone keeps facts in its summary file; in a text the quotation marks would be escaped.
_FACTS: Final = re.compile(rb'(?<!\\)"facts"\s*:')


class JournalSeen(NamedTuple):
    """Is a journal that waits to be completed."""

    journal: Journal | LegacyJournal
    identity: FileIdentity


def look_at_manifest(scan: Scan, bucket: Directory) -> None:
    """Reads `memory.json`."""
    parts = (scan.manifest_name,)
    read = scan.read_or_note(bucket, parts, MAX_LEGACY_BYTES, "manifest-corrupt", Action.NEW_MANIFEST)
    if read is None:
        scan.manifest_broken = any(each.kind == "manifest-corrupt" for each in scan.findings)
        return
    data, identity = read
    try:
        manifest = decode_manifest(data, "")
    except LegacyFormat:
        _look_at_legacy(scan, parts, data, AgentName("__default__"), "manifest-legacy")
        scan.version = scan.version or "1.0"
    except UnsupportedFormat as error:
        scan.version = error.found
        scan.see_any_in(data)
        scan.add("manifest-newer", parts, f"has version {error.found}; this release writes {error.supported}")
    except Corruption as error:
        scan.manifest_names_revision = scan.see_any_in(data)
        if _FACTS.search(data):
            # A new manifest would hide the facts that are in it, and nothing would migrate them.
            scan.version = "1.0"
            message = f"is of version 1 and cannot be read: {error.reason}"
            scan.add("legacy-corrupt", parts, message, evidence=identity)
            return
        scan.manifest_broken = True
        scan.add("manifest-corrupt", parts, error.reason, Action.NEW_MANIFEST, evidence=identity)
    else:
        scan.version = "2.0"
        scan.image = ManifestImage(manifest, data, identity)
        scan.see(manifest.revision)


def look_at_agent_legacy(scan: Scan, directory: Directory, parts: Parts, agent: AgentName) -> None:
    """Reads an agent's file of version 1."""
    read = scan.read_or_note(directory, parts, MAX_LEGACY_BYTES, "legacy-corrupt")
    if read is not None:
        _look_at_legacy(scan, parts, read[0], agent, "agent-legacy")


def _look_at_legacy(scan: Scan, parts: Parts, data: bytes, agent: AgentName, kind: str) -> None:
    try:
        document = decode_legacy(data, "", Scope(scan.user, agent), scan.now)
    except (Corruption, UnsupportedFormat) as error:
        scan.see_any_in(data)
        reason = error.reason if isinstance(error, Corruption) else f"has version {error.found}"
        scan.add("legacy-corrupt", parts, f"is to be migrated and cannot be read: {reason}")
        return
    scan.see(document.revision)
    count = len(document.facts) + len(document.references) + len(document.refusals)
    refused = f", {len(document.refusals)} of which cannot become facts" if document.refusals else ""
    scan.add(kind, parts, f"is of version 1 and has {count} facts{refused}: {_MIGRATE}")


def look_at_backup(
    scan: Scan, directory: Directory, parts: Parts, agent: AgentName, *, has_source: bool
) -> None:
    """Reads the backup of a file of version 1, and compares it with the file if that is still there."""
    read = scan.read_or_note(directory, parts, MAX_LEGACY_BYTES, "backup-unreadable")
    if read is None:
        return
    data, identity = read
    try:
        scan.see(decode_legacy(data, "", Scope(scan.user, agent), scan.now).revision)
    except (Corruption, UnsupportedFormat) as error:
        scan.see_any_in(data)
        reason = error.reason if isinstance(error, Corruption) else f"has version {error.found}"
        scan.add("backup-unreadable", parts, f"cannot be restored: {reason}", evidence=identity)
    if has_source:
        source = (*parts[:-1], parts[-1].removesuffix(BACKUP_SUFFIX))
        with scan.noting(source):
            if directory.read(source[-1], MAX_LEGACY_BYTES)[0] != data:
                message = f"differs from {source[-1]}, which is still to be migrated: move one of them away"
                scan.add("backup-differs", parts, message)


def look_at_fences(scan: Scan, bucket: Directory) -> None:
    """Reads the fences."""
    parts = (FENCES,)
    read = scan.read_or_note(bucket, parts, MAX_FENCES_BYTES, "fences-corrupt", Action.NEW_FENCES)
    if read is None:
        return
    data, identity = read
    try:
        fences = decode_fences(data, "")
    except UnsupportedFormat as error:
        scan.add("fences-newer", parts, f"have format {error.found}; this release knows {error.supported}")
        return
    except Corruption as error:
        scan.add("fences-corrupt", parts, error.reason, Action.NEW_FENCES, evidence=identity)
        return
    highest = max(fences.everything, *fences.agents.values(), 0)
    scan.see(highest)
    if scan.image is not None and highest > scan.image.manifest.revision:
        revision = scan.image.manifest.revision
        message = f"name revision {highest}, beyond {revision} of {scan.manifest_name}"
        scan.add("fences-ahead", parts, message, Action.RAISE, evidence=identity)


def look_at_journal(scan: Scan, bucket: Directory) -> None:
    """Reads the journal, and says what completing it would do."""
    parts = (JOURNAL,)
    read = scan.read_or_note(bucket, parts, MAX_JOURNAL_BYTES, "journal-corrupt")
    if read is None:
        return
    data, identity = read
    try:
        _look_at_ours(scan, decode_journal(data, "", scan.manifest_name), identity)
    except LegacyFormat:
        _look_at_predecessors(scan, data, identity)
    except UnsupportedFormat as error:
        scan.add("journal-newer", parts, f"has format {error.found}; this release knows {error.supported}")
    except Corruption as error:
        scan.see_any_in(data)
        action = Action.SET_ASIDE if len(data) <= MAX_SET_ASIDE else Action.NONE
        message = f"{error.reason}; nobody can read or write before it is gone"
        scan.add("journal-corrupt", parts, message, action, evidence=identity)


def _look_at_ours(scan: Scan, journal: Journal, identity: FileIdentity) -> None:
    parts = (JOURNAL,)
    way = f"leads from revision {journal.base_revision} to {journal.revision}"
    scan.see(journal.revision)
    now = None if scan.image is None else scan.image.manifest.revision
    if now is None and not scan.version and not scan.manifest_broken:
        now = journal.base_revision  # a missing file: the journal brings the new one
    if now is not None and now < journal.revision and now != journal.base_revision:
        message = f"{way}, but {scan.manifest_name} is at {now}: one of the two was replaced by hand"
        scan.add("journal-unfit", parts, message, Action.SET_ASIDE, evidence=identity)
        return
    scan.journal = JournalSeen(journal, identity)
    if now is not None and now >= journal.revision:
        message = f"{way} and was completed; the next access removes it"
    else:
        writes, removals = len(journal.images), len(journal.deletes)
        message = f"{way}, writes {writes} files and removes {removals}: the next access completes it"
    scan.add("journal-hot", parts, message, Action.COMPLETE, evidence=identity)


def _look_at_predecessors(scan: Scan, data: bytes, identity: FileIdentity) -> None:
    parts = (JOURNAL,)
    try:
        journal = decode_legacy_journal(data, "")
    except Corruption as error:
        scan.see_any_in(data)
        scan.add("journal-corrupt", parts, error.reason, Action.SET_ASIDE, evidence=identity)
        return
    scan.see(journal.next_revision)
    scan.journal = JournalSeen(journal, identity)
    what = "removes it, since it was finished" if journal.committed else "rolls it back"
    message = (
        f"is the predecessor's, for revision {journal.next_revision} and {len(journal.fact_ids)} facts: "
        f"the next access {what}"
    )
    scan.add("journal-legacy", parts, message, Action.COMPLETE, evidence=identity)
