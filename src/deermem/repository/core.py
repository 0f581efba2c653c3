"""What every operation of the repository shares: the engine, the indexer, the seams, and how they meet."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Self, TypeVar

from deermem.errors import InvalidInputError
from deermem.format.layout import DEFAULT_MANIFEST
from deermem.model.changes import ChangeSet, Delta
from deermem.model.fact import FactDraft
from deermem.model.identity import FactId, Scope, UserId
from deermem.model.manifest import NO_MANIFEST
from deermem.model.snapshot import Snapshot
from deermem.repository.evictions import tell_evicted
from deermem.repository.seams import Seams, check_passed
from deermem.search.indexer import Indexer
from deermem.search.port import RetrievalAdapter
from deermem.storage.access import DEFAULT_LOCK_TIMEOUT
from deermem.storage.cache import DEFAULT_CACHE_BYTES
from deermem.storage.engine import Engine
from deermem.storage.filesystem import LocalFileSystem
from deermem.storage.port import FileSystem
from deermem.storage.removal import delete_agent
from deermem.storage.safety import DEFAULT_UNDO_DAYS
from deermem.storage.transaction import Committed
from deermem.storage.view import View

T = TypeVar("T")

_log = logging.getLogger(__name__)


class RepositoryCore(Seams):
    """Reads and commits through the engine and the seams, and tells the indexer of commits.

    `MemoryRepository` says what each argument means.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        storage: str | os.PathLike[str] | FileSystem,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_token: Callable[[], str] = lambda: secrets.token_hex(16),
        lock_timeout: float = DEFAULT_LOCK_TIMEOUT,
        manifest_filename: str = DEFAULT_MANIFEST,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        retrieval_adapter: RetrievalAdapter | str | None = None,
        strict_user_scope: bool = False,
        undo_days: int = DEFAULT_UNDO_DAYS,
    ) -> None:
        file_system = LocalFileSystem(storage) if isinstance(storage, str | os.PathLike) else storage
        self.engine = Engine(
            file_system,
            clock=clock,
            new_token=new_token,
            lock_timeout=lock_timeout,
            manifest_name=manifest_filename,
            cache_bytes=cache_bytes,
            undo_days=undo_days,
        )
        if retrieval_adapter == "":
            retrieval_adapter = None
        if isinstance(retrieval_adapter, str):
            from deermem.search.loading import load_adapter  # costs 20 ms, for the lists of all packages

            retrieval_adapter = load_adapter(retrieval_adapter)
        self._indexer = Indexer(retrieval_adapter, self.snapshot, load_all=self.snapshots)
        self.engine.on_migrated = self._announce
        self._new_token = new_token
        self._strict = strict_user_scope
        ways_to_read = type(self).snapshot, type(self).before_read
        self._reads_its_own_way = ways_to_read != (RepositoryCore.snapshot, Seams.before_read)

    @property
    def storage_root(self) -> str:
        """The storage root as an absolute path."""
        return self.engine.file_system.root

    def counters(self) -> dict[str, int]:
        """Returns what the store has counted since it was opened, by name."""
        cache = self.engine.cache
        return {
            **self.engine.counters.counts(),
            "cache_hits": cache.hits,
            "cache_misses": cache.misses,
        }

    def new_fact_id(self) -> FactId:
        """Returns an id that no fact has."""
        return FactId(f"fact_{self._new_token()[:16]}")

    def snapshot(self, scope: Scope) -> Snapshot:
        """Returns all facts of a scope and the summaries, at one revision.

        A user about whom nothing was stored reads as revision 0 without facts; nothing is written.

        Raises:
            Corruption: One of the files cannot be trusted.
        """
        empty = Snapshot.of(scope, NO_MANIFEST, ())
        return self._read(scope.user, lambda view: view.snapshot(scope), empty)

    def snapshot_if_unchanged(self, scope: Scope) -> Snapshot | None:
        """Returns the snapshot if it is cached and one look at the disk shows that it is current.

        For callers that must not wait: no lock is taken and nothing is parsed. `None` says that only
        `snapshot` can tell, as it does where a subclass reads in a way of its own; what `snapshot` would
        raise is not raised here.
        """
        if self._reads_its_own_way or (self._strict and scope.user.raw is None):
            return None
        return self.engine.look(scope)

    def snapshots(self, scopes: Sequence[Scope]) -> list[Snapshot]:
        """Returns the snapshots of several agents of one user, all at one revision.

        Raises:
            InvalidInputError: The scopes are of different users.
        """
        users = {scope.user.bucket for scope in scopes}
        if len(users) != 1:
            raise InvalidInputError("scopes", "must be of one user")
        nothing = [Snapshot.of(scope, NO_MANIFEST, ()) for scope in scopes]
        return self._read(scopes[0].user, lambda view: [view.snapshot(scope) for scope in scopes], nothing)

    def commit(self, user: UserId, decide: Callable[[View], ChangeSet], *, supersedes: bool = False) -> Delta:
        """Commits what `decide` makes of all that a user has; every write comes through here.

        Args:
            user: Whose memory to change.
            decide: Says what to change; it runs under the lock, perhaps several times.
            supersedes: Whether nothing that is stored will be left, as `Engine.commit` has it.
        """
        changes = ChangeSet()

        def passed(view: View) -> ChangeSet:
            nonlocal changes
            changes = self._passed(user, decide(view), view)
            return changes

        delta = self._announce(user, self.engine.commit(self._allowed(user), passed, supersedes=supersedes))
        if changes.evicts:
            tell_evicted(user, changes, delta.revision, kept_days=self.engine.undo_days)
        return delta

    def close(self) -> None:
        """Forgets what is cached and closes the retrieval adapter."""
        self._indexer.close()
        self.engine.cache.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _user(self, user_id: str | None) -> UserId:
        return self._allowed(UserId.parse(user_id))

    def _allowed(self, user: UserId) -> UserId:
        if self._strict and user.raw is None:
            raise InvalidInputError("user_id", "is required")
        return user

    def _identified(self, draft: FactDraft) -> FactDraft:
        return draft if draft.id is not None else draft.with_id(self.new_fact_id())

    def _read(self, user: UserId, work: Callable[[View], T], absent: T) -> T:
        self.before_read(self._allowed(user))
        return self.engine.read(user, work, absent=absent)

    def _passed(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:
        return check_passed(self.before_commit(user, changes, view), changes, type(self).__name__)

    def _removed(self, scope: Scope) -> Delta | None:
        user = self._allowed(scope.user)
        committed = delete_agent(
            self.engine, user, scope.agent, lambda changes, view: self._passed(user, changes, view)
        )
        return None if committed is None else self._announce(user, committed)

    def _announce(self, user: UserId, committed: Committed) -> Delta:
        """Tells of a commit, if it changed something; the locks are released."""
        delta = self._delta(committed)
        if committed.image is not committed.base:
            self._indexer.committed(user, delta)
            try:
                self.after_commit(user, delta)
            except Exception as error:  # noqa: BLE001 - whatever a storage raises, the commit stands
                # Its message may quote what is remembered.
                name, reason = type(self).__name__, type(error).__name__
                _log.error(
                    "%s.after_commit failed after revision %d of %s: %s", name, delta.revision, user, reason
                )
        return delta

    @staticmethod
    def _delta(committed: Committed) -> Delta:
        resolution = committed.resolution
        return Delta(
            revision=resolution.manifest.revision,
            last_updated=resolution.manifest.last_updated,
            written=resolution.written,
            unchanged=resolution.unchanged,
            deleted=resolution.deleted,
            cleared=resolution.cleared,
        )
