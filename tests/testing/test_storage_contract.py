"""The published contract lets a good storage pass and refuses each kind of bad one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deermem import MemoryRepository
from deermem.testing.storage_contract import StorageContract


class TestMemoryRepository(StorageContract):
    def make_storage(self, root: Path, **settings: Any) -> MemoryRepository:
        return MemoryRepository(root, **settings)
