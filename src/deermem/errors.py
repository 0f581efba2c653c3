"""Every error that the package raises on purpose.

    DeerMemError                        base
    ├── InvalidInputError (ValueError)  the caller's mistake; the disk was not touched
    │   └── DuplicateFact               the same text is stored already
    ├── FactNotFoundError (KeyError)
    ├── AgentNotFoundError (KeyError)
    ├── NotACustomAgent                 a directory that holds memories alone was preserved
    ├── RevisionConflict                nothing was written; read again and retry
    │   ├── ManifestConflict
    │   └── FactConflict
    ├── LockTimeout (TimeoutError)      nothing was written
    ├── Corruption                      bytes that cannot be trusted; nothing was written
    ├── UnsupportedFormat               another version's file; nothing was written
    │   └── LegacyFormat                version 1, not migrated yet
    ├── MigrationError                  the source was kept
    ├── ArchiveError                    a backup that cannot be trusted; nothing of it was written
    ├── RestoreConflict                 a restore would replace memories; nothing was written
    ├── CommitInDoubt (OSError)         journalled, not yet applied; the next access completes it
    ├── SearchIndexError                the facts are safe; rebuild the index
    └── MemoryManagerError              what crosses the boundary of a memory manager
        ├── MemoryConflictError         for a RevisionConflict
        ├── MemoryCorruptionError       for Corruption, UnsupportedFormat and MigrationError
        └── MemoryManagerClosed         the manager was closed before the call

An `OSError` of the disk is not wrapped: a full disk stays a full disk.
"""

from __future__ import annotations


class DeerMemError(Exception):
    """Is the base of everything the package raises on purpose."""


class InvalidInputError(DeerMemError, ValueError):
    """Says that a value the caller passed breaks a rule; the disk was not touched."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class DuplicateFact(InvalidInputError):
    """Says that the scope holds a fact with the same text; nothing was written.

    `args[0]` is `"Duplicate fact"`, which old callers compare with.
    """

    def __init__(self, message: str = "Duplicate fact", fact_id: str | None = None) -> None:
        super().__init__(message, fact_id or "")
        self.field = "content"
        self.reason = message
        self.fact_id = fact_id

    def __str__(self) -> str:
        return str(self.args[0])


class FactNotFoundError(DeerMemError, KeyError):
    """Says that the scope holds no fact with this id; nothing was written."""

    def __init__(self, fact_id: str) -> None:
        super().__init__(fact_id)
        self.fact_id = fact_id

    def __str__(self) -> str:
        return f"no fact with the id {self.fact_id!r}"


class AgentNotFoundError(DeerMemError, KeyError):
    """Says that the user has no such agent; nothing was written."""

    def __init__(self, agent_name: str) -> None:
        super().__init__(agent_name)
        self.agent_name = agent_name

    def __str__(self) -> str:
        return f"no agent with the name {self.agent_name!r}"


class NotACustomAgent(DeerMemError):
    """Says that an agent's directory has facts but no `config.yaml`; it was preserved."""

    def __init__(self, agent_name: str) -> None:
        super().__init__(agent_name)
        self.agent_name = agent_name

    def __str__(self) -> str:
        return f"{self.agent_name!r} has memories but is no custom agent: its config.yaml is missing"


class RevisionConflict(DeerMemError):
    """Says that another writer came first; nothing was written."""


class ManifestConflict(RevisionConflict):
    """Says that `memory.json` is at another revision than the caller expected."""

    def __init__(self, expected: int, actual: int, reason: str = "") -> None:
        super().__init__(expected, actual, reason)
        self.expected = expected
        self.actual = actual
        self.reason = reason

    def __str__(self) -> str:
        tail = f" ({self.reason})" if self.reason else ""
        return f"memory.json is at revision {self.actual}, not {self.expected}{tail}"


class FactConflict(RevisionConflict):
    """Says that a fact is not what the caller expected.

    `expected` and `actual` are fact revisions; `None` means absent. After a hand edit both are the
    same number and the two texts differ.
    """

    def __init__(
        self,
        fact_id: str,
        expected: int | None,
        actual: int | None,
        expected_text: str | None = None,
        actual_text: str | None = None,
    ) -> None:
        super().__init__(fact_id, expected, actual, expected_text, actual_text)
        self.fact_id = fact_id
        self.expected = expected
        self.actual = actual
        self.expected_text = expected_text
        self.actual_text = actual_text

    def __str__(self) -> str:
        if self.expected is not None and self.expected == self.actual:
            return f"fact {self.fact_id!r} was changed outside the store since it was read"
        wanted = "absent" if self.expected is None else f"at revision {self.expected}"
        found = "absent" if self.actual is None else f"at revision {self.actual}"
        return f"fact {self.fact_id!r} was expected {wanted} but is {found}"


class LockTimeout(DeerMemError, TimeoutError):
    """Says that another writer held the user's lock too long; nothing was written.

    `waited` is in seconds; `holder` describes the process that holds the lock, where it is known.
    """

    def __init__(self, lock_file: str, waited: float, holder: str | None = None) -> None:
        super().__init__(lock_file, waited, holder)
        self.errno = None  # OSError takes the first argument for one
        self.lock_file = lock_file
        self.waited = waited
        self.holder = holder

    def __str__(self) -> str:
        by = f", held by {self.holder}" if self.holder else ""
        return f"no lock on {self.lock_file} after {self.waited:.1f} s{by}"


class Corruption(DeerMemError):
    """Says that a file cannot be trusted; nothing was written.

    `path` is relative to the storage root.
    """

    def __init__(self, path: str, reason: str, hint: str = "") -> None:
        super().__init__(path, reason, hint)
        self.path = path
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class UnsupportedFormat(DeerMemError):
    """Says that a file has a version that this release does not write; nothing was written."""

    def __init__(self, path: str, found: str, supported: str) -> None:
        super().__init__(path, found, supported)
        self.path = path
        self.found = found
        self.supported = supported

    def __str__(self) -> str:
        return f"{self.path}: version {self.found} is not supported (supported: {self.supported})"


class LegacyFormat(UnsupportedFormat):
    """Says that a file of version 1 is still to be migrated; nothing was written.

    `agent` is the agent whose file it is, `None` for one of the whole user's.
    """

    def __init__(self, path: str, found: str, supported: str, agent: str | None = None) -> None:
        super().__init__(path, found, supported)
        self.args = (path, found, supported, agent)
        self.agent = agent


class MigrationError(DeerMemError):
    """Says that a version-1 source could not be migrated; the source was kept."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class ArchiveError(DeerMemError):
    """Says that a backup cannot be trusted; `member` is empty for the archive as a whole."""

    def __init__(self, member: str, reason: str) -> None:
        super().__init__(member, reason)
        self.member = member
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.member!r} in the archive {self.reason}" if self.member else f"the archive {self.reason}"
        )


class RestoreConflict(DeerMemError):
    """Says that users, its arguments, have another memory than a backup; nothing was written."""

    def __str__(self) -> str:
        return f"these users have another memory than the backup: {', '.join(self.args)}"


class CommitInDoubt(DeerMemError, OSError):
    """Says that a change is journalled but the disk failed before it was applied.

    The next access from any process completes it, or, if the journal's name did not become durable
    and power is lost before that, drops it as a whole. `__cause__` is the disk's error.
    """

    def __init__(self, revision: int, reason: str) -> None:
        super().__init__(revision, reason)
        self.errno = None  # OSError takes the first argument for one
        self.revision = revision
        self.reason = reason

    def __str__(self) -> str:
        return f"the change to revision {self.revision} is journalled but not applied: {self.reason}"


class SearchIndexError(DeerMemError):
    """Says that a retrieval adapter failed; the facts are safe, rebuild the index."""

    def __init__(self, adapter: str, reason: str) -> None:
        super().__init__(adapter, reason)
        self.adapter = adapter
        self.reason = reason

    def __str__(self) -> str:
        return f"retrieval adapter {self.adapter}: {self.reason}"


class MemoryManagerError(DeerMemError):
    """Is the base of what a memory manager raises in place of the store's own errors."""


class MemoryConflictError(MemoryManagerError):
    """Says that another writer came first; nothing was written, read again and retry.

    `fact_id` is `None` where `memory.json` as a whole is at another revision. `expected_revision` and
    `current_revision` are fact revisions where a fact is named, with `None` for an absent one; else they
    are manifest revisions. After a hand edit both texts are given.
    """

    def __init__(
        self,
        reason: str,
        fact_id: str | None = None,
        expected_revision: int | None = None,
        current_revision: int | None = None,
        expected_text: str | None = None,
        current_text: str | None = None,
    ) -> None:
        super().__init__(reason, fact_id, expected_revision, current_revision, expected_text, current_text)
        self.reason = reason
        self.fact_id = fact_id
        self.expected_revision = expected_revision
        self.current_revision = current_revision
        self.expected_text = expected_text
        self.current_text = current_text

    def __str__(self) -> str:
        return f"memory changed concurrently; reload and retry: {self.reason}"


class MemoryCorruptionError(MemoryManagerError):
    """Says that what is stored cannot be read safely; nothing was written.

    `path` is relative to the storage root: it is for logs and operators, not for other users.
    """

    def __init__(self, path: str, reason: str, hint: str = "") -> None:
        super().__init__(path, reason, hint)
        self.path = path
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"stored memory cannot be read: {self.path}: {self.reason}"


class MemoryManagerClosed(MemoryManagerError):
    """Says that the memory manager was closed before the call; nothing was written."""

    def __str__(self) -> str:
        return "the memory manager is closed"
