"""diskcache, with the durability that can be asked of it and with what it comes with."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.peers.port import Documents, document_of, surest
from deermem import Fact


class DiskCache:
    """Keeps an entry a fact, never evicts one, and waits for the disk."""

    name: ClassVar[str] = "diskcache"
    keeps: ClassVar[str] = (
        "sqlite_synchronous=2, no eviction: a set that returned survives loss of power; values are pickles, "
        "which a reader must trust; one host"
    )
    synchronous: ClassVar[int] = 2

    def __init__(self, folder: Path) -> None:
        self._cache: Any = import_module("diskcache").Cache(
            str(folder), sqlite_synchronous=self.synchronous, eviction_policy="none", cull_limit=0
        )

    def fill(self, facts: Sequence[Fact]) -> None:
        """Sets all entries in one transaction."""
        with self._cache.transact():
            for fact in facts:
                self._cache[fact.id] = document_of(fact)

    def create(self, fact: Fact) -> None:
        """Sets an entry."""
        self._cache[fact.id] = document_of(fact)

    def update(self, fact_id: str, content: str) -> None:
        """Gets the entry and sets it, in a transaction."""
        with self._cache.transact():
            document = self._cache[fact_id]
            document["content"] = content
            document["revision"] += 1
            self._cache[fact_id] = document

    def delete(self, fact_id: str) -> None:
        """Deletes the entry."""
        del self._cache[fact_id]

    def get(self, fact_id: str) -> object:
        """Gets the entry."""
        return self._cache.get(fact_id)

    def read_all(self) -> Sequence[object]:
        """Gets every entry."""
        return self.documents()

    def documents(self) -> Documents:
        """Gets every entry."""
        return [self._cache[key] for key in self._cache]

    def search(self, text: str) -> Sequence[object]:
        """Gets every entry and looks at it."""
        return surest(self.documents(), text)

    def close(self) -> None:
        """Closes the database."""
        self._cache.close()


class LaxDiskCache(DiskCache):
    """Is what a caller gets who sets nothing."""

    name: ClassVar[str] = "diskcache as it comes"
    keeps: ClassVar[str] = "sqlite_synchronous=1: loss of power takes the last sets, though they returned"
    synchronous: ClassVar[int] = 1
