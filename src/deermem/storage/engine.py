"""The engine: reads that show one committed state, and transactions, for every user below a root."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from deermem.errors import (
    CommitInDoubt,
    Corruption,
    InvalidInputError,
    LegacyFormat,
    MigrationError,
    RevisionConflict,
)
from deermem.model.changes import ChangeSet
from deermem.model.identity import Scope, UserId
from deermem.model.manifest import NO_MANIFEST
from deermem.model.resolution import NO_FENCES, Before, Resolution, resolve
from deermem.model.snapshot import Snapshot
from deermem.storage.access import BucketAccess, no_bucket
from deermem.storage.bucket import ABSENT_MANIFEST, Bucket, ManifestImage, StoredFact
from deermem.storage.copies import NOTHING, Superseded
from deermem.storage.counters import COMMITS, CONFLICTS, RECOVERIES
from deermem.storage.erasures import erased_at
from deermem.storage.legacy import base_image, read_user_source
from deermem.storage.opening import BucketGone, make_bucket, sync_above_bucket
from deermem.storage.patience import STALE_PAUSES, patience
from deermem.storage.predecessor import end_legacy_transaction
from deermem.storage.recovery import recover
from deermem.storage.transaction import Committed, check_first, commit
from deermem.storage.under_lock import Transaction
from deermem.storage.view import BucketView, EmptyView, View, young_after

T = TypeVar("T")

_OPTIMISTIC_TRIES: Final = 4
_QUIET_PAUSE: Final = 0.01
# So many times a writer finds its user erased while it waited, before it gives up.
_ERASURES: Final = 100
_MAY_NOT_WRITE: Final = frozenset([errno.EACCES, errno.EPERM, errno.EROFS])


class Engine(BucketAccess):
    """Reads and commits; safe to use from several threads, processes and hosts."""

    def read(self, user: UserId, work: Callable[[View], T], *, absent: T) -> T:
        """Runs `work` so that all it reads belongs to one committed state.

        The reading is optimistic: it counts if afterwards no journal is there and then `memory.json`
        is still the same, since a writer at work in between leaves one trace or the other. After a
        few tries, or when a journal is there, the lock is taken.

        Args:
            user: Whose memory to read.
            work: Reads through the view that it is given; it may run several times.
            absent: The result for a user about whom nothing was ever stored.

        Raises:
            Corruption: A file cannot be trusted.
        """
        paused = overtaken = 0
        while overtaken < _OPTIMISTIC_TRIES:
            try:
                with self.opened(user) as bucket:
                    if bucket is None:
                        self.check_progress(user, ABSENT_MANIFEST)
                        return absent
                    settled, result = self._read_once(bucket, work)
                    if settled:
                        return result  # type: ignore[return-value]  # settled means that it is there
                    overtaken += 1
                    if bucket.journal_is_there():
                        break
            except LegacyFormat:
                if not self.migrates:
                    raise
                break
            except (OSError, Corruption) as error:
                if paused >= patience(error):
                    raise
                self.file_system.wait(STALE_PAUSES[paused])
                paused += 1
        try:
            return self._read_under_lock(user, work)
        except BucketGone:
            # The user was erased while this reader waited; what is there now is read anew.
            return self.read(user, work, absent=absent)

    def look(self, scope: Scope) -> Snapshot | None:
        """Returns what is cached of a scope, if one look at `memory.json` shows that it is current.

        It takes no lock, waits for nobody, parses nothing and reads no more bytes than are known. `None`
        says that only `read` can tell.
        """
        known = self.cache.newest_image(scope.user)
        if known is None or known.identity is None:
            return None
        try:
            with self.opened(scope.user) as bucket:
                if bucket is None:
                    return None
                data, identity = bucket.directory.read(self.manifest_name, len(known.data))
        except (OSError, Corruption, InvalidInputError):
            return None  # a reader says what is wrong, and tries again where that helps
        if data != known.data:
            return None
        return self.cache.current(scope, known._replace(identity=identity))

    def _read_under_lock(self, user: UserId, work: Callable[[View], T]) -> T:
        try:
            with self.transaction(user) as transaction:
                result = transaction.attempt(work)
                transaction.view.keep()
                return result
        except OSError as error:
            if error.errno not in _MAY_NOT_WRITE:
                raise
            try:
                return self._read_without_lock(user, work, error)
            except LegacyFormat as legacy:
                reason = f"is of version 1 and cannot be migrated: {error.strerror}"
                raise MigrationError(legacy.path, reason) from error

    def _read_without_lock(self, user: UserId, work: Callable[[View], T], refusal: OSError) -> T:
        """Waits for a quiet moment, for a reader that may not write and so cannot have the lock.

        Raises:
            OSError: Why the lock could not be had, when none came within the lock's time-out. What a
                dead writer left has to be completed by somebody who may write.
        """
        waited = 0.0
        while waited < self.lock_timeout:
            self.file_system.wait(_QUIET_PAUSE)
            waited += _QUIET_PAUSE
            with self.opened(user) as bucket:
                settled, result = (False, None) if bucket is None else self._read_once(bucket, work)
            if settled:
                return result  # type: ignore[return-value]  # settled means that it is there
        raise refusal

    def _read_once(self, bucket: Bucket, work: Callable[[View], T]) -> tuple[bool, T | None]:
        """Reads without a lock; tells whether what was read is one committed state."""
        known = self.cache.newest_image(bucket.user) or ABSENT_MANIFEST
        try:
            image = bucket.read_manifest(known)
        except Corruption:
            # Facts without memory.json are what a user's first transaction leaves half-way.
            if bucket.journal_is_there():
                return False, None
            image = bucket.read_manifest(known)  # that transaction may just have ended
        self.check_progress(bucket.user, image)
        view = BucketView(bucket, image, self.cache)
        try:
            result = work(view)
        except (Corruption, FileNotFoundError):
            if bucket.journal_is_there() or bucket.read_manifest(image) != image:
                return False, None
            raise
        # The predecessor wrote memory.json before it was sure, so the first look at a user is one at the
        # journal, too.
        if view.used_disk or known is ABSENT_MANIFEST:
            # The order matters: the journal goes after memory.json was replaced.
            if bucket.journal_is_there() or bucket.read_manifest(image) != image:
                return False, None
            view.keep()
        if image.manifest.revision != known.manifest.revision:
            self.cache.remember(bucket.user, image)
        return True, result

    @contextmanager
    def transaction(self, user: UserId) -> Iterator[Transaction]:
        """Holds the user's lock on a bucket that is recovered and migrated.

        Raises:
            LockTimeout: Another writer held the lock too long.
            FileNotFoundError: The user has no bucket.
            Corruption: A file cannot be trusted.
            MigrationError: The user's `memory.json` is of version 1 and cannot be migrated.
        """
        with self.opened(user) as bucket:
            if bucket is None:
                raise no_bucket(user)
            with self.settled(bucket) as transaction:
                transaction.migrate_user()
                yield transaction

    @contextmanager
    def settled(self, bucket: Bucket) -> Iterator[Transaction]:
        """Holds the lock on an open bucket that is recovered, but whose version-1 files may still be there.

        What was migrated meanwhile is told of after the lock was released.
        """
        migrated: list[Committed] = []
        try:
            with self.locked(bucket):
                if self._recover(bucket):
                    self.counters.count(RECOVERIES)
                yield self._begin(bucket, migrated)
        finally:
            for committed in migrated:
                self.on_migrated(bucket.user, committed)

    def _recover(self, bucket: Bucket) -> bool:
        try:
            return recover(bucket)
        except LegacyFormat:
            end_legacy_transaction(bucket, self.stamps.operation())
            recover(bucket)
            return True

    def _begin(self, bucket: Bucket, migrated: list[Committed]) -> Transaction:
        try:
            return Transaction(self, bucket, self.current_image(bucket), migrated)
        except LegacyFormat:
            source = read_user_source(bucket, self.now())
            if source is None:
                raise
            image = base_image(bucket, source)
            self.check_progress(bucket.user, image)
            return Transaction(self, bucket, image, migrated, source)

    def commit(
        self, user: UserId, decide: Callable[[View], ChangeSet], *, supersedes: bool = False
    ) -> Committed:
        """Commits what `decide` makes of the state under the lock.

        A user without a bucket gets one only if there is something to commit.

        Args:
            user: Whose memory to change.
            decide: Says what to change; it may run several times.
            supersedes: Whether nothing that is stored will be left, so that files of version 1 need not be
                migrated first: they are backed up and go.

        Raises:
            RevisionConflict: A precondition does not hold; nothing was written.
            LockTimeout: Another writer held the lock too long; nothing was written.
            Corruption: A file cannot be trusted; nothing was written.
            CommitInDoubt: The disk failed after the commit point; the next access completes the change.
        """
        for _ in range(_ERASURES):
            with suppress(BucketGone):
                return self._commit(user, decide, supersedes)
        raise no_bucket(user)

    def _commit(self, user: UserId, decide: Callable[[View], ChangeSet], supersedes: bool) -> Committed:
        """Commits once; `BucketGone` says that the user was erased meanwhile and nothing was written."""
        known = self.cache.newest_image(user)  # before looking: another thread may be making the bucket
        with self.opened(user) as bucket:
            if bucket is not None:
                with self.settled(bucket) as transaction:
                    if supersedes:
                        return transaction.commit(transaction.attempt(decide), supersedes=True)
                    transaction.migrate_user()
                    return transaction.attempt(lambda view: transaction.commit(decide(view)))
        if known is not None:
            self.check_progress(user, ABSENT_MANIFEST)
        resolution = self._resolve_against_nothing(user, decide)
        if resolution.manifest is NO_MANIFEST:
            return Committed(resolution, ABSENT_MANIFEST, ABSENT_MANIFEST)
        check_first(resolution, windows_names=self.file_system.windows_names)
        make_bucket(self.file_system, user)
        with self.transaction(user) as transaction:
            return transaction.attempt(lambda view: transaction.commit(decide(view)))

    def _resolve_against_nothing(self, user: UserId, decide: Callable[[View], ChangeSet]) -> Resolution:
        """Resolves a change for a user without a bucket, so that a refused one leaves no trace."""
        changes = decide(EmptyView())
        before = Before(user, NO_MANIFEST, dict.fromkeys(changes.fact_keys()), {}, NO_FENCES)
        return resolve(changes, before, self.now())

    def apply(
        self,
        bucket: Bucket,
        base: ManifestImage,
        changes: ChangeSet,
        superseded: Superseded = NOTHING,
    ) -> Committed:
        """Commits a change set under the lock and lets the cache follow."""
        if base.identity is None:
            sync_above_bucket(self.file_system, bucket.user)
        # An erased user's memory begins anew, or with a file of version 1 that somebody has put back.
        begins = base.identity is None or bool(superseded.sources)
        erased = erased_at(self.file_system, bucket.user) if begins else 0
        try:
            committed = commit(
                bucket,
                base,
                changes,
                now=self.stamps.time_after(base),
                operation=self.stamps.operation(),
                known_fact=self.cache.known_fact,
                superseded=superseded,
                erased_at=erased,
                undo_days=self.undo_days,
            )
        except RevisionConflict:
            self.counters.count(CONFLICTS)
            raise
        except CommitInDoubt:
            # Readers who know all from the cache look at `memory.json` alone, which may still be the old one.
            self.cache.forget_user(bucket.user)
            raise
        if committed.image is not base:
            self.counters.count(COMMITS)
            self._follow(bucket, committed)
        return committed

    def _follow(self, bucket: Bucket, committed: Committed) -> None:
        oldest = young_after(committed.image) or 0
        written = [
            stored if stored.identity and stored.identity.mtime_ns < oldest else StoredFact(stored.fact, None)
            for stored in committed.written
        ]
        self.cache.advance(bucket.user, committed.base, committed.image, committed.resolution, written)
