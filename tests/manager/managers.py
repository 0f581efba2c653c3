"""What the tests of the memory manager share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deermem import DeerMem, ExtractionHook, MemoryRepository
from tests.support.watched import WatchedFileSystem


def manager_at(
    root: Path, hook: ExtractionHook | None = None, mode: Any = "middleware", **settings: Any
) -> DeerMem:
    """Returns a manager of a storage root."""
    return DeerMem({"storage_path": str(root), **settings}, mode=mode, extraction_hook=hook)


def watched_manager(
    root: Path, hook: ExtractionHook | None = None, **settings: Any
) -> tuple[DeerMem, WatchedFileSystem]:
    """Returns a manager, and its disk as a double that counts, fails and stops."""
    disk = WatchedFileSystem(root)
    timeout = settings.get("file_lock_timeout_seconds", 10)
    repository = MemoryRepository(disk, lock_timeout=timeout)
    return DeerMem(settings, extraction_hook=hook, repository=repository), disk


def contents(document: dict[str, Any]) -> list[str]:
    """Returns what the facts of a document say, sorted."""
    return sorted(fact["content"] for fact in document["facts"])


def fact_of(document: dict[str, Any], fact_id: str | None) -> dict[str, Any]:
    """Returns one fact of a document."""
    (found,) = [fact for fact in document["facts"] if fact["id"] == fact_id]
    assert isinstance(found, dict)
    return found


def summary(document: dict[str, Any], group: str, name: str) -> str:
    """Returns one summary of a document."""
    text = document[group][name]["summary"]
    assert isinstance(text, str)
    return text
