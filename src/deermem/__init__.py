"""DeerMem: what agents remember of their users, kept as files that a person can read."""

from __future__ import annotations

from deermem.config import DeerMemConfig
from deermem.errors import (
    AgentNotFoundError,
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
from deermem.model.identity import Scope
from deermem.model.snapshot import Snapshot
from deermem.model.summaries import Section, Summaries, SummaryPatch
from deermem.repository import FactPage, MemoryRepository
from deermem.search.indexer import RebuildReport
from deermem.search.port import Hit

__all__ = [
    "ABSENT",
    "ANYTHING",
    "AgentNotFoundError",
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
]
