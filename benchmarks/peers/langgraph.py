"""LangGraph's `SqliteStore`, on a connection with the settings of the peer that is SQLite alone."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

from benchmarks.peers.port import Documents, document_of, surest
from benchmarks.peers.sqlite import connect
from deermem import Fact

_NAMESPACE: Final = ("alice", "assistant")
_BATCH: Final = 1_000
_ALL: Final = 10_000_000


class LangGraphStore:
    """Keeps an item a fact, without an index of vectors."""

    name: ClassVar[str] = "SqliteStore"
    keeps: ClassVar[str] = (
        "WAL, synchronous FULL as here: a put that returned survives loss of power; an update is a get and a "
        "put, between which another writer's is lost; one host"
    )

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._connection = connect(folder / "store.db")
        self._put = import_module("langgraph.store.base").PutOp
        self._store: Any = import_module("langgraph.store.sqlite").SqliteStore(self._connection)
        self._store.setup()

    def fill(self, facts: Sequence[Fact]) -> None:
        """Puts in batches, and empties the log."""
        for start in range(0, len(facts), _BATCH):
            batch = facts[start : start + _BATCH]
            self._store.batch([self._put(_NAMESPACE, fact.id, document_of(fact), False) for fact in batch])
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def create(self, fact: Fact) -> None:
        """Puts an item."""
        self._store.put(_NAMESPACE, fact.id, document_of(fact), index=False)

    def update(self, fact_id: str, content: str) -> None:
        """Gets the item and puts it back."""
        document = {**self._store.get(_NAMESPACE, fact_id).value, "content": content}
        document["revision"] += 1
        self._store.put(_NAMESPACE, fact_id, document, index=False)

    def delete(self, fact_id: str) -> None:
        """Deletes the item."""
        self._store.delete(_NAMESPACE, fact_id)

    def get(self, fact_id: str) -> object:
        """Gets the item."""
        item = self._store.get(_NAMESPACE, fact_id)
        return None if item is None else item.value

    def read_all(self) -> Sequence[object]:
        """Lists the items."""
        return self.documents()

    def documents(self) -> Documents:
        """Lists the items."""
        return [item.value for item in self._store.search(_NAMESPACE, limit=_ALL)]

    def search(self, text: str) -> Sequence[object]:
        """Lists the items and looks through them: without vectors the store finds no texts."""
        return surest(self.documents(), text)

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()
