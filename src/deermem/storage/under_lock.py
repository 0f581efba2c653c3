"""What is done while a user's lock is held: reading, migrating, and one commit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

from deermem.errors import LegacyFormat, LockTimeout
from deermem.format.journal_json import Parts
from deermem.format.layout import LOCK
from deermem.model.changes import ChangeSet
from deermem.model.identity import AgentName
from deermem.model.manifest import MANIFEST_VERSION
from deermem.storage.bucket import Bucket, ManifestImage
from deermem.storage.cache import SnapshotCache
from deermem.storage.copies import NOTHING, Superseded
from deermem.storage.legacy import LegacySource, legacy_agents, read_agent_sources, read_raw, refuse_legacy
from deermem.storage.migration import (
    Migrated,
    MigrationPlan,
    OnInvalid,
    plan_migration,
    quarantine_refused,
    set_aside,
)
from deermem.storage.stamps import Stamps
from deermem.storage.transaction import Committed
from deermem.storage.view import BucketView, View

T = TypeVar("T")


class _Engine(Protocol):
    cache: SnapshotCache
    stamps: Stamps
    migrates: bool

    def apply(
        self,
        bucket: Bucket,
        base: ManifestImage,
        changes: ChangeSet,
        superseded: Superseded = NOTHING,
    ) -> Committed: ...


class Transaction:
    """Is a user's bucket under the lock, recovered, at a known revision; commits at most once.

    Migrations are commits of their own, before that one. The lock is this process's: a child that was
    forked meanwhile does not have it.

    Args:
        engine: Commits, and has the clock and the cache.
        bucket: The user's open bucket.
        image: `memory.json` as it is; for one of version 1 what a migration starts from.
        migrated: Takes the commits of migrations.
        user_source: The user's `memory.json`, if it is of version 1.
    """

    def __init__(
        self,
        engine: _Engine,
        bucket: Bucket,
        image: ManifestImage,
        migrated: list[Committed],
        user_source: LegacySource | None = None,
    ) -> None:
        self._engine = engine
        self._process = os.getpid()
        self._migrated = migrated
        self.user_source = user_source
        self.bucket = bucket
        self.view = BucketView(bucket, image, engine.cache)

    def attempt(self, work: Callable[[View], T]) -> T:
        """Runs `work`; an agent whose facts are still in a version-1 file is migrated first.

        Args:
            work: Reads through the view that it is given, or commits; it may run several times.
        """
        while True:
            try:
                return work(self.view)
            except LegacyFormat as legacy:
                if legacy.agent is None or not self._engine.migrates:
                    raise
                self.migrate([AgentName(legacy.agent)])

    def commit(self, changes: ChangeSet, *, supersedes: bool = False) -> Committed:
        """Commits a change set as a whole, or changes nothing.

        Args:
            changes: What to change.
            supersedes: Whether the files of version 1 go as well, after they were backed up.

        Raises:
            LockTimeout: This is a forked child and the lock is its parent's; nothing was written.
            LegacyFormat: Facts of an agent that is named are still in a version-1 file.
        """
        self._check_process()
        sources: list[tuple[Parts, bytes]] = []
        if supersedes:
            sources = self._raw_sources()
            # As many as a migration and a clear after it would take.
            least = self.view.manifest.revision + 2 if sources else 0
            changes = replace(changes, least_revision=max(least, changes.least_revision))
        else:
            for agent in sorted(changes.agents() - changes.removes):
                refuse_legacy(self.bucket, agent)
        self.view.keep()
        superseded = Superseded.of(sources, self.bucket.manifest_name)
        return self._engine.apply(self.bucket, self.view.image, changes, superseded)

    def migrate_user(self) -> None:
        """Migrates the user's `memory.json`, if it is of version 1.

        Raises:
            LegacyFormat: It is, and the engine does not migrate.
        """
        if self.user_source is None:
            return
        if not self._engine.migrates:
            raise LegacyFormat(self.bucket.path_of(self.user_source.parts), "1.0", MANIFEST_VERSION)
        self.migrate(())

    def plan_migration(self, agents: Iterable[AgentName]) -> MigrationPlan:
        """Says what migrating the user's `memory.json` and the files of these agents would change."""
        now = self._engine.stamps.time()
        sources = [] if self.user_source is None else [self.user_source]
        sources += read_agent_sources(self.bucket, agents, now)
        return plan_migration(self.bucket, self.view.image, sources, now)

    def migrate(self, agents: Iterable[AgentName], on_invalid: OnInvalid = "fail") -> Migrated:
        """Migrates the user's `memory.json` and the files of these agents: one commit.

        Raises:
            MigrationError: Something cannot be migrated; nothing was changed.
        """
        self._check_process()
        plan = self.plan_migration(agents)
        stamps = self._engine.stamps
        now = stamps.time()
        quarantine = quarantine_refused(self.bucket, plan, stamps.operation(), now, on_invalid)
        aside = set_aside(self.bucket, plan, stamps.operation(), now)
        raw = [(source.parts, source.data) for source in plan.sources]
        leaving = [parts for parts, _ in plan.leaving]
        superseded = Superseded.of(raw, self.bucket.manifest_name, leaving)
        committed = self.commit_migration(plan.changes, plan.base, superseded)
        self.user_source = None
        return Migrated(plan, committed, quarantine, aside)

    def commit_migration(
        self,
        changes: ChangeSet,
        base: ManifestImage | None = None,
        superseded: Superseded = NOTHING,
    ) -> Committed:
        """Commits a part of a migration, and goes on from there."""
        committed = self._engine.apply(self.bucket, base or self.view.image, changes, superseded)
        self._migrated.append(committed)
        self.view = BucketView(self.bucket, committed.image, self._engine.cache)
        return committed

    def _raw_sources(self) -> list[tuple[Parts, bytes]]:
        sources = [] if self.user_source is None else [(self.user_source.parts, self.user_source.data)]
        agents = legacy_agents(self.bucket)
        if agents:
            now = self._engine.stamps.time()
            sources += [read_raw(self.bucket, agent, now) for agent in agents]
        return sources

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise LockTimeout(self.bucket.path_of((LOCK,)), 0.0, "the parent process")
