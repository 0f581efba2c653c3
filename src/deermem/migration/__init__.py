"""An operator's migration of many users: who there is, what becomes of each, and how it is told."""

from __future__ import annotations

from deermem.migration.outcomes import Status, UserOutcome
from deermem.migration.requests import MAX_JOBS, MigrationRequest
from deermem.migration.texts import Account
from deermem.migration.users import migrate_users, roll_back_users, stored_users

__all__ = [
    "MAX_JOBS",
    "Account",
    "MigrationRequest",
    "Status",
    "UserOutcome",
    "migrate_users",
    "roll_back_users",
    "stored_users",
]
