"""The repository: facts and summaries of many users, and every operation on them."""

from __future__ import annotations

from deermem.repository.migrations import MigrationReport, Migrations
from deermem.repository.reads import FactPage, Reads
from deermem.repository.sets import SetOperations

__all__ = ["FactPage", "MemoryRepository", "MigrationReport"]


class MemoryRepository(Reads, SetOperations, Migrations):
    """Stores facts and summaries below one storage root.

    Safe to use from several threads, processes and hosts at once. Every write is one transaction:
    when it returns, it survives loss of power; when it raises, nothing of it is visible
    (`CommitInDoubt` is the one exception to that, and says so).

    Args:
        storage: The storage root, or a `FileSystem`.
        clock: Returns the time, with a zone.
        new_token: Returns 32 hex digits that were never returned before.
        lock_timeout: How long a writer waits for its turn, in seconds.
        manifest_filename: The name of the summary file.
        cache_bytes: How much of what was read is kept, as an estimate in bytes; 0 keeps nothing.
        retrieval_adapter: A search index, or its entry point or dotted path.
        strict_user_scope: Refuse `user_id=None`, the one user of a store without users.
        undo_days: How long it is kept what a clear, an import, a restore or a trim to the cap replaced, so
            that it can be taken back; 0 keeps nothing.

    Raises:
        InvalidInputError: The root is a file, or a setting breaks its rule.
    """
