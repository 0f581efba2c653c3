"""Migrating many users: one that fails never stops the others."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from deermem.errors import Corruption, DeerMemError
from deermem.format.layout import JOURNAL
from deermem.migration.outcomes import Status, UserOutcome, reason_of
from deermem.model.identity import UserId
from deermem.repository import MemoryRepository
from deermem.storage.bucket import Bucket
from deermem.storage.legacy import legacy_agents
from deermem.storage.migration import OnInvalid

_log = logging.getLogger(__name__)

_Work = Callable[[UserId], UserOutcome]


def stored_users(repository: MemoryRepository) -> list[str | None]:
    """Returns the names of all buckets, sorted; `None` comes first if the root is one of them.

    Raises:
        Corruption: There is a link or a file in place of the directory of the buckets.
    """
    with repository.engine.opened(UserId.parse(None)) as root:
        without_user = [None] if root is not None and _holds_memory(root) else []
    return [*without_user, *repository.list_users()]


def _holds_memory(root: Bucket) -> bool:
    """Tells whether the storage root is the bucket of the one user of a store without users."""
    names = root.directory.names()
    if root.manifest_name in names or JOURNAL in names:
        return True
    try:
        return bool(legacy_agents(root))
    except Corruption:
        return False  # an `agents` that is a link is the host's own
    except OSError:
        return True  # what cannot be read is reported, and never passes for nothing


def migrate_users(
    repository: MemoryRepository,
    users: Iterable[str | None],
    *,
    dry_run: bool = False,
    on_invalid: OnInvalid = "fail",
    adopt_lead_agent: bool = False,
    jobs: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> Iterator[UserOutcome]:
    """Migrates each user in a transaction of its own, and yields what became of it.

    Safe while other processes read and write the same users, and while they migrate them. Outcomes
    come in the order of the buckets' names; only a few are held at a time.

    Args:
        repository: The store.
        users: Raw ids or names of buckets; `None` is the memory without a user.
        dry_run: Only say what would be done: nothing is written, and no lock is taken.
        on_invalid: What becomes of values that no version-2 memory can hold; with `"quarantine"` they
            are kept in a file that the report names.
        adopt_lead_agent: Move the facts of an agent `lead-agent` without a `config.yaml` to the default
            agent.
        jobs: How many users are migrated at a time.
        progress: Called once for each user as soon as it is done, from any thread.

    Raises:
        InvalidInputError: A user id breaks its rule; nothing was done.
    """

    def migrate(user: UserId) -> UserOutcome:
        if dry_run:
            return _planned(repository, user, on_invalid, adopt_lead_agent)
        report = repository.migrate(user.raw, on_invalid=on_invalid, adopt_lead_agent=adopt_lead_agent)
        changed = report.migrated or report.adopted
        return UserOutcome(user, Status.MIGRATED if changed else Status.CURRENT, report=report)

    return _each(_unique(users), _for_stored(repository, migrate), jobs, progress)


def roll_back_users(
    repository: MemoryRepository,
    users: Iterable[str | None],
    *,
    jobs: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> Iterator[UserOutcome]:
    """Puts the version-1 files of each user back, and yields what became of it, as `migrate_users` does.

    Raises:
        InvalidInputError: A user id breaks its rule; nothing was done.
    """

    def roll_back(user: UserId) -> UserOutcome:
        done = repository.roll_migration_back(user.raw)
        return UserOutcome(user, Status.ROLLED_BACK, restored=done.restored)

    return _each(_unique(users), roll_back, jobs, progress)


def _planned(
    repository: MemoryRepository, user: UserId, on_invalid: OnInvalid, adopt_lead_agent: bool
) -> UserOutcome:
    try:
        report = repository.plan_migration(user.raw, adopt_lead_agent=adopt_lead_agent)
    except DeerMemError as error:
        return UserOutcome(user, Status.FAILED, f"{reason_of(error)}{_if_interrupted(repository, user)}")
    if report.refused and on_invalid == "fail":
        count = len(report.refused)
        reason = f"{report.refused[0]}{f' (and {count - 1} more)' if count > 1 else ''}"
        return UserOutcome(user, Status.FAILED, reason, report)
    needed = report.sources or report.adopted
    return UserOutcome(user, Status.PLANNED if needed else Status.CURRENT, report=report)


def _if_interrupted(repository: MemoryRepository, user: UserId) -> str:
    with repository.engine.opened(user) as bucket:
        interrupted = bucket is not None and bucket.journal_is_there()
    return " (an interrupted transaction is ended first, which may change this)" if interrupted else ""


def _unique(users: Iterable[str | None]) -> list[UserId]:
    """Returns the users by bucket; of two ids of one bucket the first counts."""
    by_bucket: dict[str, UserId] = {}
    for each in users:
        user = UserId.parse(each)
        by_bucket.setdefault(user.bucket or "", user)
    return [by_bucket[bucket] for bucket in sorted(by_bucket)]


def _for_stored(repository: MemoryRepository, work: _Work) -> _Work:
    """Leaves users out of whom nothing is stored: a mistyped id must not pass for a migrated one."""

    def checked(user: UserId) -> UserOutcome:
        with repository.engine.opened(user) as bucket:
            there = bucket is not None
        return work(user) if there else UserOutcome(user, Status.CURRENT, stored=False)

    return checked


def _each(
    users: list[UserId], work: _Work, jobs: int, progress: Callable[[], object]
) -> Iterator[UserOutcome]:
    """Works on some users at a time; yields in their order, so the oldest is the one to wait for."""

    def run(user: UserId) -> UserOutcome:
        outcome = _settled(user, work)
        progress()
        return outcome

    def outcomes() -> Iterator[UserOutcome]:
        pending: deque[Future[UserOutcome]] = deque()
        with ThreadPoolExecutor(jobs, "deermem-migration") as pool:
            try:
                for user in users:
                    pending.append(pool.submit(run, user))
                    if len(pending) > 2 * jobs:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)

    return outcomes()


def _settled(user: UserId, work: _Work) -> UserOutcome:
    try:
        return work(user)
    except (DeerMemError, OSError) as error:
        return UserOutcome(user, Status.FAILED, reason_of(error))
    except Exception as error:  # noqa: BLE001 - a bug must not stop the others, and is told in full
        _log.exception("a bug stopped the migration of %s", user)
        return UserOutcome(user, Status.FAILED, reason_of(error))
