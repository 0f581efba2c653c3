"""What an operator asks for: which users, and what to do. The command and the script share the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deermem.errors import InvalidInputError
from deermem.migration.outcomes import UserOutcome
from deermem.migration.users import migrate_users, roll_back_users, stored_users
from deermem.model.identity import UserId
from deermem.repository import MemoryRepository
from deermem.storage.migration import OnInvalid

DEFAULT_JOBS: Final = 4
MAX_JOBS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationRequest:
    """Asks for a migration, for what one would do, or for taking one back.

    Raises:
        InvalidInputError: Two options exclude each other, or a value breaks its rule.
    """

    all_users: bool = False
    user_ids: Sequence[str] = ()
    no_user: bool = False
    rollback: bool = False
    dry_run: bool = False
    on_invalid: OnInvalid = "fail"
    adopt_lead_agent: bool = False
    jobs: int = DEFAULT_JOBS

    def __post_init__(self) -> None:
        if self.all_users and (self.user_ids or self.no_user):
            raise InvalidInputError("--all-users", "goes with neither --user-id nor --no-user")
        if not (self.all_users or self.user_ids or self.no_user):
            raise InvalidInputError("the users", "are not named: give --all-users, --user-id or --no-user")
        if self.rollback:
            for option, given in {
                "--all-users": self.all_users,
                "--dry-run": self.dry_run,
                "--adopt-lead-agent": self.adopt_lead_agent,
                "--on-invalid": self.on_invalid != "fail",
            }.items():
                if given:
                    raise InvalidInputError("--rollback", f"does not go with {option}")
        if not 1 <= self.jobs <= MAX_JOBS:
            raise InvalidInputError("--jobs", f"must be from 1 to {MAX_JOBS}")
        for user_id in self.user_ids:
            UserId.parse(user_id)

    def users(self, repository: MemoryRepository) -> list[str | None]:
        """Returns the users that are meant, by raw id or, if all are, by the name of the bucket."""
        if self.all_users:
            return stored_users(repository)
        return [*([None] if self.no_user else []), *self.user_ids]

    def outcomes(
        self,
        repository: MemoryRepository,
        users: Sequence[str | None],
        progress: Callable[[], object] = lambda: None,
    ) -> Iterator[UserOutcome]:
        """Does what is asked for, and yields what became of each user, sorted by the name of the bucket."""
        if self.rollback:
            return roll_back_users(repository, users, jobs=self.jobs, progress=progress)
        return migrate_users(
            repository,
            users,
            dry_run=self.dry_run,
            on_invalid=self.on_invalid,
            adopt_lead_agent=self.adopt_lead_agent,
            jobs=self.jobs,
            progress=progress,
        )
