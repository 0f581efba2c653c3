"""The engine: reads that show one committed state, and transactions, for every user below a root."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Final, TypeVar

from deermem.errors import CommitInDoubt, Corruption, InvalidInputError, LockTimeout, RevisionConflict
from deermem.format.layout import DEFAULT_MANIFEST, LOCK, bucket_parts, check_manifest_name
from deermem.model.changes import ChangeSet
from deermem.model.identity import UserId
from deermem.model.manifest import NO_MANIFEST
from deermem.model.resolution import NO_FENCES, Before, Resolution, resolve
from deermem.storage.bucket import (
    ABSENT_MANIFEST,
    Bucket,
    ManifestImage,
    StoredFact,
)
from deermem.storage.cache import DEFAULT_CACHE_BYTES, SnapshotCache
from deermem.storage.counters import COMMITS, CONFLICTS, RECOVERIES, Counters
from deermem.storage.locks import UserLocks
from deermem.storage.opening import make_bucket, open_bucket, sync_above_bucket
from deermem.storage.patience import STALE_PAUSES, StaleManifest, patience
from deermem.storage.port import FileSystem
from deermem.storage.recovery import recover
from deermem.storage.stamps import Stamps
from deermem.storage.transaction import Committed, check_first, commit
from deermem.storage.view import BucketView, EmptyView, View, young_after

T = TypeVar("T")

DEFAULT_LOCK_TIMEOUT: Final = 10.0
_OPTIMISTIC_TRIES: Final = 4
_QUIET_PAUSE: Final = 0.01
_MAY_NOT_WRITE: Final = frozenset([errno.EACCES, errno.EPERM, errno.EROFS])
_LONGEST_TIMEOUT: Final = 3_600


class Engine:
    """Reads and commits; safe to use from several threads, processes and hosts.

    Args:
        file_system: The disk below the storage root.
        clock: Returns the time, with a zone.
        new_token: Returns 32 hex digits that were never returned before.
        lock_timeout: How long a writer waits for its turn, in seconds.
        manifest_name: The name of the summary file.
        cache_bytes: How much of what was read is kept, as an estimate in bytes.
    """

    def __init__(
        self,
        file_system: FileSystem,
        *,
        clock: Callable[[], datetime],
        new_token: Callable[[], str],
        lock_timeout: float = DEFAULT_LOCK_TIMEOUT,
        manifest_name: str = DEFAULT_MANIFEST,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> None:
        if not 0 < lock_timeout <= _LONGEST_TIMEOUT:
            raise InvalidInputError("lock_timeout", f"must be above 0 and at most {_LONGEST_TIMEOUT} seconds")
        if isinstance(cache_bytes, bool) or not isinstance(cache_bytes, int) or cache_bytes < 0:
            raise InvalidInputError("cache_bytes", "must be an integer of at least 0")
        self.file_system = file_system
        self._lock_timeout = lock_timeout
        self.cache = SnapshotCache(cache_bytes)
        self.counters = Counters()
        self.locks = UserLocks(file_system.root, lock_timeout, self.counters)
        self._exact_names: set[str] = set()
        self._stamps = Stamps(clock, new_token)
        self._manifest_name = check_manifest_name(manifest_name)

    def now(self) -> str:
        """Returns the time as it is stored."""
        return self._stamps.time()

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
                with self._opened(user) as bucket:
                    if bucket is None:
                        self._check_progress(user, ABSENT_MANIFEST)
                        return absent
                    settled, result = self._read_once(bucket, work)
                    if settled:
                        return result  # type: ignore[return-value]  # settled means that it is there
                    overtaken += 1
                    if bucket.journal_is_there():
                        break
            except (OSError, Corruption) as error:
                if paused >= patience(error):
                    raise
                self.file_system.wait(STALE_PAUSES[paused])
                paused += 1
        try:
            with self.transaction(user) as transaction:
                result = work(transaction.view)
                transaction.view.keep()
                return result
        except OSError as error:
            if error.errno not in _MAY_NOT_WRITE:
                raise
            return self._read_without_lock(user, work, error)

    def _read_without_lock(self, user: UserId, work: Callable[[View], T], refusal: OSError) -> T:
        """Waits for a quiet moment, for a reader that may not write and so cannot have the lock.

        Raises:
            OSError: Why the lock could not be had, when none came within the lock's time-out. What a
                dead writer left has to be completed by somebody who may write.
        """
        waited = 0.0
        while waited < self._lock_timeout:
            self.file_system.wait(_QUIET_PAUSE)
            waited += _QUIET_PAUSE
            with self._opened(user) as bucket:
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
            raise
        self._check_progress(bucket.user, image)
        view = BucketView(bucket, image, self.cache)
        try:
            result = work(view)
        except (Corruption, FileNotFoundError):
            if bucket.journal_is_there() or bucket.read_manifest(image) != image:
                return False, None
            raise
        if view.used_disk:
            # The order matters: the journal goes after memory.json was replaced.
            if bucket.journal_is_there() or bucket.read_manifest(image) != image:
                return False, None
            view.keep()
        if image.manifest.revision != known.manifest.revision:
            self.cache.remember(bucket.user, image)
        return True, result

    def _check_progress(self, user: UserId, image: ManifestImage) -> None:
        """Makes sure that `memory.json` is not older than this process has seen it.

        A half-synced folder, a vanished mount and a stale network client show less than there was.
        """
        newest = self.cache.newest_image(user)
        if newest is not None and newest.manifest.revision > image.manifest.revision:
            raise StaleManifest(
                "/".join((*bucket_parts(user), self._manifest_name)),
                f"went back from revision {newest.manifest.revision} to {image.manifest.revision}",
                "if it was put back on purpose, reload",
            )

    @contextmanager
    def _opened(self, user: UserId) -> Iterator[Bucket | None]:
        directory = open_bucket(self.file_system, user, self._exact_names)
        if directory is None:
            yield None
            return
        windows = self.file_system.windows_names
        with closing(Bucket(directory, user, self._manifest_name, windows_names=windows)) as bucket:
            yield bucket

    @contextmanager
    def transaction(self, user: UserId) -> Iterator[Transaction]:
        """Holds the user's lock on a recovered bucket.

        Raises:
            LockTimeout: Another writer held the lock too long.
            FileNotFoundError: The user has no bucket.
            Corruption: A file cannot be trusted.
        """
        with self._opened(user) as bucket:
            if bucket is None:
                raise FileNotFoundError(errno.ENOENT, "no such user bucket", str(user))
            with self._locked(bucket) as transaction:
                yield transaction

    @contextmanager
    def _locked(self, bucket: Bucket) -> Iterator[Transaction]:
        with self.locks.hold(bucket.directory):
            # A lock does not make a caching network client look again; a listing does, on some. Seen
            # on JuiceFS with its default caches: 3 to 5 lost updates in 20 s without it, none with it.
            bucket.directory.names()
            if recover(bucket):
                self.counters.count(RECOVERIES)
            yield Transaction(self, bucket, self._current_image(bucket))

    def _current_image(self, bucket: Bucket) -> ManifestImage:
        """Reads `memory.json` under the lock, which on some networks does not by itself make it fresh."""
        paused = 0
        while True:
            try:
                image = bucket.read_manifest(self.cache.newest_image(bucket.user) or ABSENT_MANIFEST)
                self._check_progress(bucket.user, image)
            except (OSError, Corruption) as error:
                if paused >= patience(error):
                    raise
                # Listing a directory makes some clients ask the server again.
                bucket.directory.names()
                self.file_system.wait(STALE_PAUSES[paused])
                paused += 1
            else:
                return image

    def commit(self, user: UserId, decide: Callable[[View], ChangeSet]) -> Committed:
        """Commits what `decide` makes of the state under the lock.

        A user without a bucket gets one only if there is something to commit.

        Raises:
            RevisionConflict: A precondition does not hold; nothing was written.
            LockTimeout: Another writer held the lock too long; nothing was written.
            Corruption: A file cannot be trusted; nothing was written.
            CommitInDoubt: The disk failed after the commit point; the next access completes the change.
        """
        known = self.cache.newest_image(user)  # before looking: another thread may be making the bucket
        with self._opened(user) as bucket:
            if bucket is not None:
                with self._locked(bucket) as transaction:
                    return transaction.commit(decide(transaction.view))
        if known is not None:
            self._check_progress(user, ABSENT_MANIFEST)
        resolution = self._resolve_against_nothing(user, decide)
        if resolution.manifest is NO_MANIFEST:
            return Committed(resolution, ABSENT_MANIFEST, ABSENT_MANIFEST)
        check_first(resolution, windows_names=self.file_system.windows_names)
        make_bucket(self.file_system, user)
        with self.transaction(user) as transaction:
            return transaction.commit(decide(transaction.view))

    def _resolve_against_nothing(self, user: UserId, decide: Callable[[View], ChangeSet]) -> Resolution:
        """Resolves a change for a user without a bucket, so that a refused one leaves no trace."""
        changes = decide(EmptyView())
        before = Before(user, NO_MANIFEST, dict.fromkeys(changes.fact_keys()), {}, NO_FENCES)
        return resolve(changes, before, self.now())

    def apply(self, bucket: Bucket, base: ManifestImage, changes: ChangeSet) -> Committed:
        """Commits a change set under the lock and lets the cache follow."""
        if base.identity is None:
            sync_above_bucket(self.file_system, bucket.user)
        try:
            committed = commit(
                bucket,
                base,
                changes,
                now=self._stamps.time_after(base),
                operation=self._stamps.operation(),
                known_fact=self.cache.known_fact,
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


class Transaction:
    """Is a user's bucket under the lock, recovered, at a known revision; commits at most once.

    The lock is this process's: a child that was forked meanwhile does not have it.
    """

    def __init__(self, engine: Engine, bucket: Bucket, image: ManifestImage) -> None:
        self._engine = engine
        self._process = os.getpid()
        self.view = BucketView(bucket, image, engine.cache)

    def commit(self, changes: ChangeSet) -> Committed:
        """Commits a change set as a whole, or changes nothing.

        Raises:
            LockTimeout: This is a forked child and the lock is its parent's; nothing was written.
        """
        if os.getpid() != self._process:
            raise LockTimeout(self.view.bucket.path_of((LOCK,)), 0.0, "the parent process")
        self.view.keep()
        return self._engine.apply(self.view.bucket, self.view.image, changes)
