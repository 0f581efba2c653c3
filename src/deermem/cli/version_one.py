"""Memory of version 1: commands that only look leave it alone, and those that migrate it say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deermem.cli.output import Output
    from deermem.model.identity import UserId
    from deermem.repository import MemoryRepository
    from deermem.storage.transaction import Committed


@contextmanager
def only_looking(repository: MemoryRepository) -> Iterator[None]:
    """Keeps reads inside from migrating: they raise `LegacyFormat` instead, and no file is made."""
    engine = repository.engine
    before, engine.migrates = engine.migrates, False
    try:
        yield
    finally:
        engine.migrates = before


def tell_of_migrations(repository: MemoryRepository, out: Output, warn_of_owner: Callable[[], None]) -> None:
    """Lets a person know of each user whose memory a read or a write migrates, and whose store it is."""
    engine = repository.engine
    announce, told = engine.on_migrated, set[str | None]()

    def tell(user: UserId, committed: Committed) -> None:
        announce(user, committed)
        if user.bucket not in told:
            told.add(user.bucket)
            warn_of_owner()
            out.note(
                f"The memory of the user {user} was of version 1 and has been migrated; its old files are "
                f"kept as *.v1.bak, and `deermem migrate --rollback {option_of(user)}` puts them back."
            )

    engine.on_migrated = tell


def option_of(user: UserId) -> str:
    """Returns the option by which `migrate` knows a user."""
    import shlex

    return "--no-user" if user.raw is None else f"--user-id {shlex.quote(user.raw)}"


def how_to_migrate(which: str, storage_path: str | None) -> str:
    """Returns the command that migrates users, in the store that was named."""
    import shlex

    place = "" if storage_path is None else f" --storage-path {shlex.quote(storage_path)}"
    return f"`deermem migrate {which}{place}`"
