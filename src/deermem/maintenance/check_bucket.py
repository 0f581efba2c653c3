"""Looks at one user bucket: every entry of ours in it, and none of the host's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.journal_json import is_kept_name, is_staged_name
from deermem.format.layout import (
    AGENTS,
    BACKUP_SUFFIX,
    FACTS,
    FENCES,
    JOURNAL,
    LOCK,
    QUARANTINE,
    RECOVERY,
    SAFETY,
    is_windows_device,
)
from deermem.format.manifest_json import MAX_MANIFEST_BYTES, decode_manifest
from deermem.maintenance.check_facts import scan_facts
from deermem.maintenance.check_files import (
    JournalSeen,
    look_at_agent_legacy,
    look_at_backup,
    look_at_fences,
    look_at_journal,
    look_at_manifest,
)
from deermem.maintenance.check_names import begins_as_ours, kind_of_stray
from deermem.maintenance.check_safety import scan_safety
from deermem.maintenance.check_scan import MAX_SET_ASIDE, Parts, Scan
from deermem.maintenance.findings import Action
from deermem.maintenance.records import MAX_RECORD_BYTES, RECORD_FILE, RecordState, decode_record
from deermem.model.identity import DEFAULT_AGENT, AgentName, stored_agent_name
from deermem.storage.port import Directory, EntryKind, EntryStatus, FileTooLarge

# What a transaction that waits to be completed explains.
_EXPLAINED: Final = frozenset(["fact-ahead", "fact-edited", "fences-ahead", "manifest-missing"])
# A person may have put a link here on purpose, and what is behind it is not ours to judge.
_STAY: Final = frozenset([LOCK, AGENTS, QUARANTINE, SAFETY])


def scan_bucket(scan: Scan, bucket: Directory) -> None:
    """Looks at everything of ours in a bucket; the order lets each part know what it depends on."""
    entries = bucket.statuses()
    backup = scan.manifest_name + BACKUP_SUFFIX
    kinds = dict.fromkeys((scan.manifest_name, LOCK, JOURNAL, FENCES, backup), EntryKind.FILE)
    kinds.update(dict.fromkeys((RECOVERY, AGENTS, QUARANTINE, SAFETY), EntryKind.DIRECTORY))
    sound: set[str] = set()
    for name in sorted(kinds.keys() & entries.keys()):
        if scan.is_expected((name,), entries[name], kinds[name], _action_on(name, scan.manifest_name)):
            sound.add(name)
    scan.manifest_broken = scan.manifest_name in entries and scan.manifest_name not in sound
    scan.has_journal = JOURNAL in entries
    for name, look_at in (
        (scan.manifest_name, look_at_manifest),
        (JOURNAL, look_at_journal),
        (FENCES, look_at_fences),
    ):
        if name in sound:
            look_at(scan, bucket)
    if backup in sound:
        is_legacy = scan.version == "1.0"
        look_at_backup(scan, bucket, (backup,), DEFAULT_AGENT, has_source=is_legacy)
    looks = {
        RECOVERY: _scan_recovery,
        QUARANTINE: _scan_quarantine,
        SAFETY: scan_safety,
        AGENTS: _scan_agents,
    }
    for name, look in looks.items():
        if name in sound:
            with scan.noting((name,)), bucket.child(name) as directory:
                look(scan, directory)
    for name in sorted(entries.keys() - kinds.keys()):
        if begins_as_ours(name, scan.manifest_name):
            _note_stray(scan, (name,), entries[name])
    _settle_with_journal(scan, bucket, entries)


def _action_on(name: str, manifest_name: str) -> Action:
    """Returns what a repair does about a link, or the like, in the place of a file of ours."""
    if name in _STAY:
        return Action.NONE
    return {manifest_name: Action.NEW_MANIFEST, FENCES: Action.NEW_FENCES}.get(name, Action.SET_ASIDE)


def _settle_with_journal(scan: Scan, bucket: Directory, entries: Mapping[str, EntryStatus]) -> None:
    """Notes a missing manifest, and drops what a transaction that waits to be completed explains."""
    if scan.fact_files and scan.manifest_name not in entries:
        _note_missing_manifest(scan, bucket, entries)
    if scan.journal is not None:
        scan.findings = [finding for finding in scan.findings if finding.kind not in _EXPLAINED]


def _note_missing_manifest(scan: Scan, bucket: Directory, entries: Mapping[str, EntryStatus]) -> None:
    """Notes that facts have no manifest; one under another name shows that only the setting is wrong."""
    message = f"is missing although {scan.fact_files:,} fact files are there"
    named = [name for name in sorted(entries) if _is_manifest(bucket, name, entries[name])]
    if not named:
        scan.add("manifest-missing", (scan.manifest_name,), message, Action.NEW_MANIFEST)
        return
    advice = f"{named[0]} looks like it: set manifest_filename, or DEERMEM_MANIFEST_FILENAME, to that name"
    scan.add("manifest-missing", (scan.manifest_name,), f"{message}; {advice}")


def _is_manifest(bucket: Directory, name: str, status: EntryStatus) -> bool:
    """Tells whether a file under another name is a manifest."""
    if name.startswith(".") or not name.endswith(".json") or status.kind != EntryKind.FILE:
        return False
    try:
        decode_manifest(bucket.read(name, MAX_MANIFEST_BYTES)[0], "")
    except (Corruption, UnsupportedFormat, OSError):
        return False
    return True


def _note_stray(scan: Scan, parts: Parts, status: EntryStatus) -> None:
    kind = kind_of_stray(parts[-1])
    if kind is None or status.kind != EntryKind.FILE:
        return
    size = 0 if status.identity is None else status.identity.size
    action = Action.SET_ASIDE if size <= MAX_SET_ASIDE else Action.NONE
    what = "a temporary file" if kind == "temporary-file" else "a copy that a sync client made"
    scan.add(kind, parts, f"looks like {what} of the store", action, evidence=status.identity)


def _scan_recovery(scan: Scan, recovery: Directory) -> None:
    seen = scan.journal.journal if isinstance(scan.journal, JournalSeen) else None
    for name, status in sorted(recovery.statuses().items()):
        parts = (RECOVERY, name)
        if scan.has_journal and (seen is None or name.startswith(seen.operation)):
            continue  # what a journal needs that cannot be read is unknown
        if is_staged_name(name) and status.kind == EntryKind.FILE:
            message = "is of a writer that died, or is at work, and does not count; the next write removes it"
            scan.add("recovery-leftover", parts, message, Action.SWEEP, evidence=status.identity)
        elif is_kept_name(name) and status.kind == EntryKind.DIRECTORY:
            message = "holds old files of a change of the predecessor that came to its end"
            scan.add("recovery-leftover", parts, message, Action.SWEEP)
        elif status.kind == EntryKind.FILE:
            scan.add("recovery-stray", parts, "is no file of a transaction", Action.SET_ASIDE)
        else:
            scan.add(
                "recovery-stray", parts, f"is a {status.kind} that no transaction made", Action.SET_ASIDE
            )


def _scan_quarantine(scan: Scan, quarantine: Directory) -> None:
    for name, status in sorted(quarantine.statuses().items()):
        parts = (QUARANTINE, name)
        if status.kind != EntryKind.DIRECTORY:
            scan.add("quarantine-unreadable", parts, f"is a {status.kind} where directories belong")
            continue
        scan.is_expected(parts, status, EntryKind.DIRECTORY)
        with scan.noting(parts), quarantine.child(name) as directory:
            _look_at_record(scan, directory, parts)


def _look_at_record(scan: Scan, directory: Directory, parts: Parts) -> None:
    names = directory.names()
    if RECORD_FILE not in names:
        scan.add("quarantine", parts, f"holds what was set aside, {len(names)} in all")
        return
    try:
        read = scan.read(directory, (*parts, RECORD_FILE), MAX_RECORD_BYTES)
        if read is None:
            return
        record = decode_record(read[0], "")
    except (FileTooLarge, Corruption, UnsupportedFormat) as error:
        scan.add(
            "quarantine-unreadable", (*parts, RECORD_FILE), f"cannot be read: {error}".replace(": : ", ": ")
        )
        return
    scan.see(record.revision)
    undo = f"`deermem check --undo {parts[-1]}` puts it back"
    if record.state == RecordState.DONE and record.entries:
        scan.add("quarantine", parts, f"holds what a repair set aside, {len(record.entries)} in all; {undo}")
    elif record.state == RecordState.BEGUN:
        message = f"is of a repair that was interrupted; the next one ends it, {undo}"
        scan.add("quarantine-unfinished", parts, message, Action.CLOSE, evidence=read[1])


def _scan_agents(scan: Scan, agents: Directory) -> None:
    for name, status in sorted(agents.statuses().items()):
        agent = stored_agent_name(name)
        parts = (AGENTS, name)
        if agent is None:
            if status.kind == EntryKind.DIRECTORY and stored_agent_name(name.lower()) is not None:
                _look_at_upper_case(scan, agents, parts)
            continue
        if status.kind == EntryKind.FILE:
            continue  # named like an agent by chance
        if scan.is_expected(parts, status, EntryKind.DIRECTORY, Action.NONE):
            if is_windows_device(name) and not scan.windows_names:
                scan.add(
                    "device-name", parts, "has the name of a device on Windows, and cannot be read there"
                )
            with scan.noting(parts), agents.child(name) as directory:
                _scan_agent(scan, directory, agent)


def _look_at_upper_case(scan: Scan, agents: Directory, parts: Parts) -> None:
    with scan.noting(parts), agents.child(parts[-1]) as directory:
        if FACTS in directory.names():
            message = f"is not in lower case, so no agent has these facts; {parts[-1].lower()} would"
            scan.add("agent-case", parts, message)


def _scan_agent(scan: Scan, directory: Directory, agent: AgentName) -> None:
    place = (AGENTS, agent)
    entries = directory.statuses()
    legacy, backup = scan.manifest_name, scan.manifest_name + BACKUP_SUFFIX
    has_legacy = legacy in entries and scan.is_expected((*place, legacy), entries[legacy], EntryKind.FILE)
    if has_legacy:
        look_at_agent_legacy(scan, directory, (*place, legacy), agent)
    if backup in entries and scan.is_expected((*place, backup), entries[backup], EntryKind.FILE):
        look_at_backup(scan, directory, (*place, backup), agent, has_source=has_legacy)
    for name in sorted(entries.keys() - {FACTS, legacy, backup}):
        if begins_as_ours(name, scan.manifest_name):
            _note_stray(scan, (*place, name), entries[name])
    if FACTS in entries and scan.is_expected(
        (*place, FACTS), entries[FACTS], EntryKind.DIRECTORY, Action.NONE
    ):
        with scan.noting((*place, FACTS)), directory.child(FACTS) as facts:
            scan_facts(scan, facts, agent)
