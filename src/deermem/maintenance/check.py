"""Checks a store: reads everything, changes nothing, and says what is wrong.

    report = check_user(repository, "alice")
    for finding in report.findings:
        print(finding.severity.name, finding.path, finding.message)

How a store in use is checked without false findings is told in `docs/internals/check.md`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.layout import AGENTS, JOURNAL, LOCK, USERS, bucket_parts, is_windows_device
from deermem.maintenance.check_bucket import scan_bucket
from deermem.maintenance.check_migration import look_at_migration
from deermem.maintenance.check_names import case_twins
from deermem.maintenance.check_scan import Scan
from deermem.maintenance.findings import Action, CheckReport, Finding, UserReport
from deermem.model.identity import UserId, is_bucket_name
from deermem.repository.core import RepositoryCore
from deermem.storage.bucket import Bucket
from deermem.storage.erasures import erased_at
from deermem.storage.lock_table import locks_on, read_table
from deermem.storage.port import Directory, EntryKind, EntryStatus

_TRIES: Final = 4
_PAUSES: Final = (0.02, 0.1, 0.3)
# What a transaction shows while it is under way, and for long if it is a large one.
_PASSING: Final = frozenset(
    ["journal-hot", "recovery-leftover", "manifest-missing", "fact-ahead", "fact-edited", "fences-ahead"]
)


def check_user(repository: RepositoryCore, user_id: str | None) -> CheckReport:
    """Checks what is stored of one user; nothing is written, not even a lock file.

    Args:
        repository: The store.
        user_id: The raw id, or the name of the user's bucket; `None` is the memory without a user.

    Raises:
        InvalidInputError: No user can have this id, or it differs only in case from another's.
        OSError: The storage root cannot be read.
    """
    user = UserId.parse(user_id)
    of_root = check_root(repository, [user.bucket] if user.bucket else [])
    return CheckReport((_check_bucket(repository, user),), of_root)


def check_store(repository: RepositoryCore) -> CheckReport:
    """Checks every user, and the memory without a user if there is one; nothing is written."""
    of_root = check_root(repository, None)
    blocked = {finding.path for finding in of_root if finding.kind in ("symbolic-link", "wrong-type")}
    users = [UserId(name, name) for name in _bucket_names(repository) if f"{USERS}/{name}" not in blocked]
    if _has_root_bucket(repository):
        users.insert(0, UserId.parse(None))
    return CheckReport(tuple(_check_bucket(repository, user) for user in users), of_root)


def _check_bucket(repository: RepositoryCore, user: UserId) -> UserReport:
    """Scans a bucket until nothing moved meanwhile; else keeps what every scan found alike."""
    wait = repository.engine.file_system.wait
    lasting: dict[tuple[str, str, object], Finding] | None = None
    scan = None
    for attempt in range(_TRIES):
        before = _state(repository, user)
        scan = scan_once(repository, user)
        found = {finding.identity: finding for finding in scan.findings}
        passing = scan.disturbed or any(each.kind in _PASSING for each in scan.findings)
        if not found or not (passing or before[1] or before != _state(repository, user)):
            lasting = found
            break
        # What is gone, or is another file by now, belonged to a writer at work.
        lasting = {key: each for key, each in found.items() if lasting is None or key in lasting}
        if attempt < _TRIES - 1:
            wait(_PAUSES[attempt])
    findings = tuple((lasting or {}).values())
    if any(each.kind in _PASSING for each in findings) and is_locked(repository, user):
        findings = tuple(each for each in findings if each.kind not in _PASSING)
    return _report(user, scan, findings)


def is_locked(repository: RepositoryCore, user: UserId) -> bool:
    """Tells whether a process of this host holds the user's lock, where the system tells."""
    path = os.path.join(repository.engine.file_system.root, *bucket_parts(user), LOCK)
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return any(not lock.waiting for lock in locks_on(status.st_ino, status.st_dev, read_table() or ()))


def _report(user: UserId, scan: Scan | None, findings: tuple[Finding, ...]) -> UserReport:
    directory = "/".join(bucket_parts(user)) or "."
    if scan is None:
        return UserReport(user, directory, "", None, 0, findings)
    revision = None if scan.image is None else scan.image.manifest.revision
    if revision is None and not (scan.manifest_broken or scan.version or scan.fact_files):
        revision = 0
    return UserReport(user, directory, scan.version, revision, scan.facts, findings)


def scan_once(repository: RepositoryCore, user: UserId, bucket: Bucket | None = None) -> Scan:
    """Looks at a bucket once, as it is at the moment.

    Args:
        repository: The store.
        user: Whose bucket to look at.
        bucket: The bucket, where it is open already.
    """
    engine = repository.engine
    scan = Scan(
        user,
        bucket_parts(user),
        engine.manifest_name,
        engine.now(),
        undo_days=engine.undo_days,
        windows_names=engine.file_system.windows_names,
    )
    scan.root = engine.file_system.root
    with suppress(OSError, Corruption, UnsupportedFormat):
        scan.see(erased_at(engine.file_system, user))
    if bucket is not None:
        scan_bucket(scan, bucket.directory)
        look_at_migration(scan, bucket)
        return scan
    # A link on the way to the bucket is a finding of the root.
    with suppress(Corruption), scan.noting(()), engine.opened(user) as opened:
        if opened is not None:
            scan_bucket(scan, opened.directory)
            look_at_migration(scan, opened)
    return scan


def _state(repository: RepositoryCore, user: UserId) -> tuple[object, bool]:
    """Returns what a commit changes: the identity of `memory.json`, and whether there is a journal."""
    with suppress(Corruption, OSError), repository.engine.opened(user) as bucket:
        if bucket is not None:
            entries = bucket.directory.statuses()
            return entries.get(bucket.manifest_name), JOURNAL in entries
    return None, False


def check_root(repository: RepositoryCore, names: Iterable[str] | None) -> tuple[Finding, ...]:
    """Looks at the way from the storage root to the buckets.

    Args:
        repository: The store.
        names: The buckets that matter; `None` for all.
    """
    name = repository.engine.manifest_name
    scan = Scan(UserId.parse(None), (), name, "", undo_days=0, windows_names=False)
    try:
        root = repository.engine.file_system.open_root()
    except FileNotFoundError:
        return ()
    with root:
        status = root.statuses().get(USERS)
        if status is None or names == []:
            return ()
        if scan.is_expected((USERS,), status, EntryKind.DIRECTORY, Action.NONE):
            with scan.noting((USERS,)), root.child(USERS) as users:
                _look_at_users(scan, users, None if names is None else set(names))
    return tuple(scan.findings)


def _look_at_users(scan: Scan, users: Directory, names: set[str] | None) -> None:
    entries = users.statuses()
    buckets = [name for name in entries if is_bucket_name(name)]
    for name in sorted(buckets if names is None else names & entries.keys()):
        if names is None and entries[name].kind == EntryKind.FILE:
            scan.add("not-a-bucket", (USERS, name), "is a file, and no user's directory")
            continue
        scan.is_expected((USERS, name), entries[name], EntryKind.DIRECTORY, Action.NONE)
        if is_windows_device(name):
            scan.add("device-name", (USERS, name), "has the name of a device on Windows, and cannot be there")
    for twins in case_twins(buckets):
        if names is None or names & set(twins):
            scan.add("case-twins", (USERS, twins[0]), f"differs only in case from {', '.join(twins[1:])}")
    if names is None:
        for name in sorted(entries.keys() - set(buckets)):
            _look_at_stray(scan, users, name, entries[name])


def _look_at_stray(scan: Scan, users: Directory, name: str, status: EntryStatus) -> None:
    parts = (USERS, name)
    if status.kind != EntryKind.DIRECTORY:
        scan.add("not-a-bucket", parts, f"is a {status.kind}, and no user's directory")
        return
    with scan.noting(parts), users.child(name) as directory:
        holds = {scan.manifest_name, AGENTS} & set(directory.names())
        what = " and holds a memory that nobody can reach" if holds else ""
        scan.add("not-a-bucket", parts, f"has a name that no user's directory has{what}")


def _bucket_names(repository: RepositoryCore) -> list[str]:
    with suppress(FileNotFoundError), repository.engine.file_system.open_root() as root:
        status = root.statuses().get(USERS)
        if status is None or status.kind != EntryKind.DIRECTORY:
            return []
        with root.child(USERS) as users:
            entries = users.statuses().items()
        return sorted(n for n, each in entries if each.kind == EntryKind.DIRECTORY and is_bucket_name(n))
    return []


def _has_root_bucket(repository: RepositoryCore) -> bool:
    with suppress(FileNotFoundError), repository.engine.file_system.open_root() as root:
        return not {repository.engine.manifest_name, AGENTS, JOURNAL}.isdisjoint(root.names())
    return False
