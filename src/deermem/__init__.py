"""DeerMem: what agents remember of their users, kept as files that a person can read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deermem.config import DeerMemConfig
    from deermem.errors import (
        AgentNotFoundError,
        ArchiveError,
        CommitInDoubt,
        Corruption,
        DeerMemError,
        DuplicateFact,
        FactConflict,
        FactNotFoundError,
        InvalidInputError,
        LockTimeout,
        ManifestConflict,
        MemoryConflictError,
        MemoryCorruptionError,
        MemoryManagerClosed,
        MemoryManagerError,
        MigrationError,
        NotACustomAgent,
        RestoreConflict,
        RevisionConflict,
        SearchIndexError,
        UnsupportedFormat,
    )
    from deermem.manager import DeerMem, ExtractionHook, ExtractionRequest, MemoryManager
    from deermem.model.changes import (
        ABSENT,
        ANYTHING,
        AtRevision,
        ChangeSet,
        Delete,
        Delta,
        Unchanged,
        Upsert,
    )
    from deermem.model.fact import Fact, FactDraft, Source
    from deermem.model.identity import Scope, UserId
    from deermem.model.snapshot import Snapshot
    from deermem.model.summaries import Section, Summaries, SummaryPatch
    from deermem.repository import FactPage, MemoryRepository
    from deermem.search.indexer import RebuildReport
    from deermem.search.port import Hit
    from deermem.storage.view import View

__all__ = [
    "ABSENT",
    "ANYTHING",
    "AgentNotFoundError",
    "ArchiveError",
    "AtRevision",
    "ChangeSet",
    "CommitInDoubt",
    "Corruption",
    "DeerMem",
    "DeerMemConfig",
    "DeerMemError",
    "Delete",
    "Delta",
    "DuplicateFact",
    "ExtractionHook",
    "ExtractionRequest",
    "Fact",
    "FactConflict",
    "FactDraft",
    "FactNotFoundError",
    "FactPage",
    "Hit",
    "InvalidInputError",
    "LockTimeout",
    "ManifestConflict",
    "MemoryConflictError",
    "MemoryCorruptionError",
    "MemoryManager",
    "MemoryManagerClosed",
    "MemoryManagerError",
    "MemoryRepository",
    "MigrationError",
    "NotACustomAgent",
    "RebuildReport",
    "RestoreConflict",
    "RevisionConflict",
    "Scope",
    "SearchIndexError",
    "Section",
    "Snapshot",
    "Source",
    "Summaries",
    "SummaryPatch",
    "Unchanged",
    "UnsupportedFormat",
    "Upsert",
    "UserId",
    "View",
]

# Where each public name lives. A program pays for what it uses: the help of the command line needs no store.
_NAMES_BY_MODULE = {
    "deermem.config": ("DeerMemConfig",),
    "deermem.errors": (
        "AgentNotFoundError",
        "ArchiveError",
        "CommitInDoubt",
        "Corruption",
        "DeerMemError",
        "DuplicateFact",
        "FactConflict",
        "FactNotFoundError",
        "InvalidInputError",
        "LockTimeout",
        "ManifestConflict",
        "MemoryConflictError",
        "MemoryCorruptionError",
        "MemoryManagerClosed",
        "MemoryManagerError",
        "MigrationError",
        "NotACustomAgent",
        "RestoreConflict",
        "RevisionConflict",
        "SearchIndexError",
        "UnsupportedFormat",
    ),
    "deermem.manager": (
        "DeerMem",
        "ExtractionHook",
        "ExtractionRequest",
        "MemoryManager",
    ),
    "deermem.model.changes": (
        "ABSENT",
        "ANYTHING",
        "AtRevision",
        "ChangeSet",
        "Delete",
        "Delta",
        "Unchanged",
        "Upsert",
    ),
    "deermem.model.fact": (
        "Fact",
        "FactDraft",
        "Source",
    ),
    "deermem.model.identity": (
        "Scope",
        "UserId",
    ),
    "deermem.model.snapshot": ("Snapshot",),
    "deermem.model.summaries": (
        "Section",
        "Summaries",
        "SummaryPatch",
    ),
    "deermem.repository": (
        "FactPage",
        "MemoryRepository",
    ),
    "deermem.search.indexer": ("RebuildReport",),
    "deermem.search.port": ("Hit",),
    "deermem.storage.view": ("View",),
}
_HOMES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("deermem")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return __all__
