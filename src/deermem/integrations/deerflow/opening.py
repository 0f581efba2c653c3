"""Opens the store that DeerFlow's configuration names."""

from __future__ import annotations

import logging
from typing import Any, Final

from deermem.config import read_environment
from deermem.repository import MemoryRepository

_log = logging.getLogger(__name__)
_noted: Final[set[str]] = set()


def open_host_repository(config: Any) -> MemoryRepository:
    """Opens the store that DeerFlow's `DeerMemConfig` names.

    Without a path it lies where DeerFlow's own storage would put it: `DEERMEM_DATA_DIR`, else `~/.deermem`.
    """
    settings = read_environment()
    return MemoryRepository(
        settings.storage_path(config.storage_path or None),
        lock_timeout=config.file_lock_timeout_seconds,
        manifest_filename=config.manifest_filename,
        strict_user_scope=config.strict_user_scope,
        undo_days=settings.undo_days,
    )


def note_ignored_adapter(name: str) -> None:
    """Says once that DeerFlow's retrieval adapter is not used."""
    if name and name not in _noted:
        _noted.add(name)
        _log.info("retrieval_adapter %r is ignored: DeerMem searches its own facts by substring", name)
