"""Migrations that somebody asks for; reads and writes migrate what they touch by themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deermem.errors import MigrationError
from deermem.model.changes import Delta, FactKey
from deermem.model.manifest import MANIFEST_VERSION
from deermem.repository.core import RepositoryCore
from deermem.storage.agents import is_custom
from deermem.storage.bucket import Bucket
from deermem.storage.copies import backup_parts
from deermem.storage.legacy import base_image, legacy_agents, read_agent_sources, read_user_source
from deermem.storage.migration import (
    LEAD_AGENT,
    MigrationPlan,
    OnInvalid,
    RefusedValue,
    plan_adoption,
    plan_migration,
)
from deermem.storage.rollback import RolledBack, roll_back
from deermem.storage.under_lock import Transaction


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """Reports what migrating a user did, or would do.

    `sources` are the version-1 files, by path below the storage root. `delta` says what was written;
    `planned` which facts would be. `there_already` counts facts that were stored with the same meaning.
    `adopted` are the ids of facts that went from `lead-agent` to the default agent. `set_aside` are copies
    of files that a version-1 file names and that lay where they would be taken for facts of another shard.
    """

    sources: tuple[str, ...] = ()
    from_version: str | None = None
    to_version: str = MANIFEST_VERSION
    revision: int = 0
    migrated: bool = False
    delta: Delta | None = None
    planned: tuple[FactKey, ...] = ()
    there_already: int = 0
    refused: tuple[RefusedValue, ...] = ()
    quarantine: str | None = None
    backups: tuple[str, ...] = ()
    adopted: tuple[str, ...] = ()
    interrupted: bool = False
    set_aside: tuple[str, ...] = ()

    @property
    def needed(self) -> bool:
        """Whether there was anything to migrate, to adopt or to end."""
        return bool(self.sources or self.adopted or self.interrupted)


class Migrations(RepositoryCore):
    """Migrates, says what a migration would do, and takes one back."""

    def migrate(
        self, user_id: str | None, *, on_invalid: OnInvalid = "fail", adopt_lead_agent: bool = False
    ) -> MigrationReport:
        """Migrates all that a user has of version 1, in one transaction; idempotent.

        Args:
            user_id: Whose memory; the name of a bucket will do.
            on_invalid: What becomes of values that no version-2 memory can hold: with `"quarantine"` they
                are kept in a file that the report names.
            adopt_lead_agent: Move the facts of an agent `lead-agent` without a `config.yaml` to the default
                agent: an early predecessor kept them there. It takes a second transaction.

        Raises:
            MigrationError: Something cannot be migrated; the sources are as they were.
        """
        user = self._user(user_id)
        with self.engine.opened(user) as bucket:
            if bucket is None:
                return MigrationReport()
            with self.engine.settled(bucket) as transaction:
                report = self._migrate(transaction, on_invalid)
                adopted = self._adopt(transaction) if adopt_lead_agent else ()
                return replace(report, adopted=adopted, revision=transaction.view.manifest.revision)

    def _migrate(self, transaction: Transaction, on_invalid: OnInvalid) -> MigrationReport:
        bucket = transaction.bucket
        agents = legacy_agents(bucket)
        if transaction.user_source is None and not agents:
            return MigrationReport(revision=transaction.view.manifest.revision)
        done = transaction.migrate(agents, on_invalid)
        report = _report(bucket, done.plan, quarantine=done.quarantine, delta=self._delta(done.committed))
        return replace(report, set_aside=done.set_aside)

    def _adopt(self, transaction: Transaction) -> tuple[str, ...]:
        """Moves the facts of `lead-agent` to the default agent."""
        changes = plan_adoption(transaction.bucket, self.engine.now())
        if changes is None:
            return ()
        return tuple(fact_id for _, fact_id in transaction.commit_migration(changes).resolution.deleted)

    def plan_migration(self, user_id: str | None, *, adopt_lead_agent: bool = False) -> MigrationReport:
        """Says what `migrate` would do; writes nothing, and takes no lock.

        Raises:
            MigrationError: What stops it.
        """
        user = self._user(user_id)
        with self.engine.opened(user) as bucket:
            if bucket is None:
                return MigrationReport()
            now = self.engine.now()
            source = read_user_source(bucket, now)
            image = bucket.read_manifest() if source is None else base_image(bucket, source)
            sources = [] if source is None else [source]
            sources += read_agent_sources(bucket, legacy_agents(bucket), now)
            plan = plan_migration(bucket, image, sources, now)
            report = _report(bucket, plan)
            if not adopt_lead_agent or is_custom(bucket, LEAD_AGENT):
                return report
            lead = [key[1] for key in report.planned if key[0] == LEAD_AGENT]
            if plan_adoption(bucket, now) is not None:
                lead += [file.fact_id for file in bucket.list_facts(LEAD_AGENT)]
            return replace(report, adopted=tuple(lead))

    def roll_migration_back(self, user_id: str | None) -> RolledBack:
        """Puts the version-1 files of a user back from their backups, for the application that reads them.

        Raises:
            MigrationError: There is no backup, or the memory was changed since; nothing was written.
        """
        user = self._user(user_id)
        with self.engine.opened(user) as bucket:
            if bucket is None:
                raise MigrationError(str(user), "there is no such user")
            with self.engine.settled(bucket) as transaction:
                if transaction.user_source is not None:
                    raise MigrationError(bucket.path_of(transaction.user_source.parts), "is of version 1")
                stamps = self.engine.stamps
                done = roll_back(bucket, transaction.view.manifest, stamps.operation(), stamps.time())
                self.engine.cache.forget_user(user)
        self._indexer.committed(user, Delta(done.revision, self.engine.now(), cleared=done.agents))
        return done


def _report(
    bucket: Bucket, plan: MigrationPlan, *, quarantine: str | None = None, delta: Delta | None = None
) -> MigrationReport:
    planned = tuple(upsert.key for upsert in plan.changes.upserts)
    return MigrationReport(
        sources=tuple(bucket.path_of(source.parts) for source in plan.sources),
        from_version=(plan.sources[0].document.version or "1.0") if plan.sources else None,
        revision=plan.base.manifest.revision if delta is None else delta.revision,
        migrated=delta is not None,
        delta=delta,
        planned=planned,
        there_already=plan.found - len(planned),
        refused=plan.refused,
        quarantine=quarantine,
        backups=tuple(bucket.path_of(backup_parts(source.parts)) for source in plan.sources),
        interrupted=bucket.journal_is_there(),
    )
