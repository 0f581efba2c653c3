"""Access to user buckets: opening, locking, and knowing how far `memory.json` has come."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Final

from deermem.errors import Corruption, InvalidInputError
from deermem.format.layout import DEFAULT_MANIFEST, bucket_parts, check_manifest_name
from deermem.model.identity import UserId
from deermem.storage.bucket import ABSENT_MANIFEST, Bucket, ManifestImage
from deermem.storage.cache import DEFAULT_CACHE_BYTES, SnapshotCache
from deermem.storage.counters import Counters
from deermem.storage.erasures import erased_at
from deermem.storage.locks import UserLocks
from deermem.storage.opening import BucketGone, open_bucket
from deermem.storage.patience import STALE_PAUSES, StaleManifest, patience
from deermem.storage.port import FileSystem
from deermem.storage.safety import DEFAULT_UNDO_DAYS, MAX_UNDO_DAYS
from deermem.storage.stamps import Stamps
from deermem.storage.transaction import Committed

DEFAULT_LOCK_TIMEOUT: Final = 10.0
_LONGEST_TIMEOUT: Final = 3_600


class BucketAccess:
    """Opens user buckets below a storage root, with and without their locks.

    Args:
        file_system: The disk below the storage root.
        clock: Returns the time, with a zone.
        new_token: Returns 32 hex digits that were never returned before.
        lock_timeout: How long a writer waits for its turn, in seconds.
        manifest_name: The name of the summary file.
        cache_bytes: How much of what was read is kept, as an estimate in bytes.
        undo_days: Days for which what a clear, an import, a restore or a trim replaced is kept; 0 for never.
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
        undo_days: int = DEFAULT_UNDO_DAYS,
    ) -> None:
        if not 0 < lock_timeout <= _LONGEST_TIMEOUT:
            raise InvalidInputError("lock_timeout", f"must be above 0 and at most {_LONGEST_TIMEOUT} seconds")
        if isinstance(cache_bytes, bool) or not isinstance(cache_bytes, int) or cache_bytes < 0:
            raise InvalidInputError("cache_bytes", "must be an integer of at least 0")
        if (
            isinstance(undo_days, bool)
            or not isinstance(undo_days, int)
            or not 0 <= undo_days <= MAX_UNDO_DAYS
        ):
            raise InvalidInputError("undo_days", f"must be an integer from 0 to {MAX_UNDO_DAYS:,}")
        self.file_system = file_system
        self.undo_days = undo_days
        self.lock_timeout = lock_timeout
        self.cache = SnapshotCache(cache_bytes)
        self.counters = Counters()
        self.locks = UserLocks(file_system.root, lock_timeout, self.counters)
        self._exact_names: set[str] = set()
        self.stamps = Stamps(clock, new_token)
        self.manifest_name = check_manifest_name(manifest_name)
        self.on_migrated: Callable[[UserId, Committed], object] = lambda _user, _committed: None
        # What only looks sets this aside: then files of version 1 raise `LegacyFormat` and stay.
        self.migrates = True

    def now(self) -> str:
        """Returns the time as it is stored."""
        return self.stamps.time()

    @contextmanager
    def maintenance(self, user: UserId) -> Iterator[Bucket]:
        """Holds the user's lock on a bucket as it is: nothing is recovered, migrated or checked.

        Raises:
            LockTimeout: Another writer held the lock too long.
            FileNotFoundError: The user has no bucket.
        """
        with self.opened(user) as bucket:
            if bucket is None:
                raise no_bucket(user)
            with self.locked(bucket):
                yield bucket

    @contextmanager
    def locked(self, bucket: Bucket) -> Iterator[None]:
        """Holds the user's lock while the block runs.

        Raises:
            LockTimeout: Another writer held it too long.
        """
        with self.locks.hold(bucket.directory):
            # A lock does not make a caching network client look again; a listing does, on some. Seen
            # on JuiceFS with its default caches: 3 to 5 lost updates in 20 s without it, none with it.
            bucket.directory.names()
            yield

    @contextmanager
    def opened(self, user: UserId) -> Iterator[Bucket | None]:
        """Opens a user's bucket, `None` when there is none; takes no lock."""
        directory = open_bucket(self.file_system, user, self._exact_names)
        if directory is None:
            yield None
            return
        windows = self.file_system.windows_names
        with closing(Bucket(directory, user, self.manifest_name, windows_names=windows)) as bucket:
            yield bucket

    def check_progress(self, user: UserId, image: ManifestImage) -> None:
        """Makes sure that `memory.json` is not older than this process has seen it.

        A half-synced folder, a vanished mount and a stale network client show less than there was. Only
        where the user was erased after what was seen, that there is nothing is the truth.
        """
        newest = self.cache.newest_image(user)
        if newest is not None and newest.manifest.revision > image.manifest.revision:
            if image.identity is None and erased_at(self.file_system, user) >= newest.manifest.revision:
                self.cache.forget_user(user)
                return
            raise StaleManifest(
                "/".join((*bucket_parts(user), self.manifest_name)),
                f"went back from revision {newest.manifest.revision} to {image.manifest.revision}",
                "if it was put back on purpose, reload",
            )

    def current_image(self, bucket: Bucket) -> ManifestImage:
        """Reads `memory.json` under the lock, which on some networks does not by itself make it fresh."""
        paused = 0
        while True:
            try:
                image = bucket.read_manifest(self.cache.newest_image(bucket.user) or ABSENT_MANIFEST)
                self.check_progress(bucket.user, image)
            except (OSError, Corruption) as error:
                if paused >= patience(error):
                    raise
                # Listing a directory makes some clients ask the server again.
                bucket.directory.names()
                self.file_system.wait(STALE_PAUSES[paused])
                paused += 1
            else:
                return image


def no_bucket(user: UserId) -> FileNotFoundError:
    """Returns the error that says that a user has no bucket."""
    return BucketGone(errno.ENOENT, "no such user bucket", str(user))
