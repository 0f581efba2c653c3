"""What the tests of runs over many users share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deermem import MemoryRepository
from deermem.migration import Status, UserOutcome, migrate_users, stored_users
from tests.migration.v1 import FACT, document, put
from tests.support.stores import bucket_path

NOT_TO_BE_MIGRATED = {"id": "fact_bad", "content": " "}


def facts(count: int) -> list[dict[str, Any]]:
    """Returns different facts of version 1."""
    return [{**FACT, "id": f"fact_{number:03}", "content": f"Says {number}."} for number in range(count)]


def put_users(root: Path, *user_ids: str, count: int = 2) -> None:
    """Writes users of version 1, each with some facts."""
    for user_id in user_ids:
        put(root, document(*facts(count)), user_id=user_id)


def statuses(outcomes: Iterable[UserOutcome]) -> dict[str, Status]:
    """Returns how it went, by user."""
    return {str(outcome.user): outcome.status for outcome in outcomes}


def migrate_all(root: Path, **options: Any) -> list[UserOutcome]:
    """Migrates every user of a storage root."""
    with MemoryRepository(root) as store:
        return list(migrate_users(store, stored_users(store), **options))


def stamped_tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Returns every entry below a directory, with the time stamps also of the directories."""
    return {
        path.relative_to(root).as_posix(): (
            path.lstat().st_ino,
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [root, *sorted(root.rglob("*"))]
    }


def fact_files(root: Path, user_id: str) -> list[str]:
    """Returns the names of all files of facts of a user, sorted."""
    return sorted(path.stem for path in bucket_path(root, user_id).glob("agents/*/facts/*/*.md"))
