"""Mends a user's files under the lock; what is replaced or removed is set aside first.

The order of the steps, and what a crash between two of them leaves, is told in `docs/internals/check.md`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.journal_json import Journal
from deermem.format.layout import JOURNAL, RECOVERY, SAFETY
from deermem.format.manifest_json import encode_manifest
from deermem.maintenance.check import scan_once
from deermem.maintenance.check_files import JournalSeen
from deermem.maintenance.check_scan import Parts, Scan
from deermem.maintenance.findings import Action, Finding
from deermem.maintenance.records import RecordState
from deermem.maintenance.repair_plan import Item, Plan, make_plan
from deermem.maintenance.set_aside import keep, mark, read_record
from deermem.model.identity import UserId
from deermem.repository.core import RepositoryCore
from deermem.storage.bucket import Bucket
from deermem.storage.journal import reapply, replace_file, sweep
from deermem.storage.opening import sync_above_bucket
from deermem.storage.port import UnexpectedFileType
from deermem.storage.predecessor import end_legacy_transaction
from deermem.storage.recovery import recover
from deermem.storage.transaction import write_all

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repaired:
    """Reports the repair of one user.

    `set_aside` names the directory below the storage root with what was set aside, empty if that is nothing.
    `failed` are files that changed meanwhile or whose permissions another user of the machine has to change.
    """

    user: UserId
    set_aside: str
    revision: int
    failed: tuple[str, ...] = ()


def repair_user(repository: RepositoryCore, user: UserId, approved: Iterable[Finding]) -> Repaired:
    """Mends what was found of a user, as far as it is found again under the lock.

    Args:
        repository: The store.
        user: Whose files to mend.
        approved: The findings to act on; others are left alone.

    Raises:
        LockTimeout: Another writer held the lock too long; nothing was changed.
        FileNotFoundError: The user has no bucket.
        OSError: The disk failed; the next repair goes on from there, and what is gone from its place is in
            the quarantine.
    """
    findings = list(approved)
    engine = repository.engine
    with engine.maintenance(user) as bucket:
        try:
            return _Repair(repository, bucket, findings).run()
        finally:
            engine.cache.forget_user(user)


def tighten_way(repository: RepositoryCore, findings: Iterable[Finding]) -> tuple[str, ...]:
    """Takes the permissions of others from `users` and from buckets; returns what could not be changed."""
    failed: list[str] = []
    for path in [finding.path for finding in findings if finding.action == Action.TIGHTEN]:
        *parents, name = path.split("/")
        try:
            with ExitStack() as stack:
                directory = stack.enter_context(repository.engine.file_system.open_root())
                for parent in parents:
                    directory = stack.enter_context(directory.child(parent))
                directory.tighten(name)
        except OSError:
            failed.append(path)
    return tuple(failed)


class _Repair:
    """Carries out one repair under the lock."""

    def __init__(self, repository: RepositoryCore, bucket: Bucket, approved: list[Finding]) -> None:
        self._repository = repository
        self._engine = repository.engine
        self._bucket = bucket
        self._approved = approved
        self._failed: list[str] = []

    def run(self) -> Repaired:
        stuck = self._settle_journal()
        scan = self._scan()
        plan = make_plan(self._bucket, scan, self._approved, stuck_journal=stuck)
        place: Parts = ()
        record = None
        if plan.items:
            place, record = keep(self._bucket, scan.now, plan.revision, plan.entries())
        self._move(plan, place)
        if plan.manifest is not None:
            self._put_manifest(encode_manifest(plan.manifest))
        self._commit(scan, plan)
        self._remove(plan)
        if record is not None:
            mark(self._bucket, place, record, RecordState.DONE)
        self._close(plan)
        self._expire(plan)
        self._tighten(plan)
        return Repaired(
            self._bucket.user,
            self._bucket.path_of(place) if place else "",
            plan.revision,
            tuple(self._failed),
        )

    def _scan(self) -> Scan:
        return scan_once(self._repository, self._bucket.user, self._bucket)

    def _settle_journal(self) -> bool:
        """Completes a journal as any access would; tells whether the predecessor's cannot be ended."""
        scan = self._scan()
        if not isinstance(scan.journal, JournalSeen):
            return False
        journal = scan.journal.journal
        if scan.image is None and scan.version not in ("", "1.0"):
            return False  # of a later version, which alone knows what it means
        if isinstance(journal, Journal):
            if scan.image is None and not scan.version:
                self._complete_without_manifest(scan, journal)
            else:
                recover(self._bucket)
            return False
        try:
            end_legacy_transaction(self._bucket, self._operation())
        except (Corruption, UnsupportedFormat) as error:
            _log.warning("cannot end the predecessor's change of %s: %s", self._bucket.user, error)
            return True
        recover(self._bucket)
        return False

    def _complete_without_manifest(self, scan: Scan, journal: Journal) -> None:
        """Completes a sound journal whose `memory.json` is lost: it brings the next one whole."""
        scan.has_journal = False
        broken = [each for each in scan.findings if each.action == Action.NEW_MANIFEST]
        plan = make_plan(self._bucket, scan, broken, stuck_journal=False)
        if plan.items:
            place, record = keep(self._bucket, scan.now, journal.revision, plan.entries())
            self._move(plan, place)
            mark(self._bucket, place, record, RecordState.DONE)
        self._bucket.directory.sync()
        with self._bucket.directory_at((RECOVERY,), make=True) as recovery:
            reapply(self._bucket, recovery, journal)
            self._bucket.directory.unlink(JOURNAL)
            sweep(self._bucket, recovery)

    def _put_manifest(self, data: bytes) -> None:
        """Moves a new `memory.json` over one that is broken or missing, in one step."""
        sync_above_bucket(self._engine.file_system, self._bucket.user)
        replace_file(
            self._bucket, self._operation(), self._bucket.directory, self._bucket.manifest_name, data
        )
        self._bucket.directory.sync()

    def _commit(self, scan: Scan, plan: Plan) -> None:
        """Does what readers see in one transaction, which advances the revision."""
        if not plan.commits:
            return
        if plan.manifest is not None:
            base, data = plan.manifest.revision, plan.last_manifest()
        elif scan.image is not None:
            base = scan.image.manifest.revision
            manifest = replace(scan.image.manifest, revision=plan.revision, last_updated=scan.now)
            data = encode_manifest(manifest)
        else:
            return
        write_all(
            self._bucket,
            self._operation(),
            (base, plan.revision),
            plan.writes,
            ((self._bucket.manifest_name,), data),
            tuple(plan.deletes),
            replaces_journal=any(item.parts == (JOURNAL,) and item.data is not None for item in plan.items),
        )

    def _move(self, plan: Plan, place: Parts) -> None:
        """Moves what cannot be copied into the quarantine: links, devices and directories."""
        for number, item in enumerate(plan.items):
            if item.data is None:
                with (
                    self._bucket.directory_at(item.parts[:-1]) as source,
                    self._bucket.directory_at(place) as target,
                ):
                    source.rename(item.parts[-1], target, str(number))
                    target.sync()
                    source.sync()

    def _remove(self, plan: Plan) -> None:
        """Removes what was copied, unless it was replaced or a transaction removed it."""
        settled = {*plan.deletes, *(parts for parts, _ in plan.writes), (self._bucket.manifest_name,)}
        for item in plan.items:
            if item.data is not None and item.parts not in settled:
                self._unlink(item)
        if plan.sweeps:
            with suppress(FileNotFoundError), self._bucket.directory_at((RECOVERY,)) as recovery:
                sweep(self._bucket, recovery)
                recovery.sync()

    def _unlink(self, item: Item) -> None:
        with suppress(FileNotFoundError), self._bucket.directory_at(item.parts[:-1]) as directory:
            try:
                unchanged = directory.identify(item.parts[-1]) == item.identity
            except UnexpectedFileType:
                unchanged = False
            if unchanged:
                directory.unlink(item.parts[-1])
                directory.sync()
            else:
                self._failed.append(self._bucket.path_of(item.parts))

    def _close(self, plan: Plan) -> None:
        for parts in plan.close:
            mark(self._bucket, parts, read_record(self._bucket, parts), RecordState.DONE)

    def _expire(self, plan: Plan) -> None:
        """Removes safety copies whose days are over; they are not set aside, since they are to be gone."""
        if not plan.expired:
            return
        with self._bucket.directory_at((SAFETY,)) as directory:
            for parts in plan.expired:
                with suppress(FileNotFoundError):
                    directory.unlink(parts[-1])
            directory.sync()

    def _tighten(self, plan: Plan) -> None:
        for parts in plan.tighten:
            try:
                with self._bucket.directory_at(parts[:-1]) as directory:
                    directory.tighten(parts[-1])
            except OSError:
                self._failed.append(self._bucket.path_of(parts))

    def _operation(self) -> str:
        return self._engine.stamps.operation()
