"""DeerMem among its peers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.peers.port import SCOPE, TOP, Documents, document_of
from benchmarks.samples import build_scope
from deermem import Fact, MemoryRepository

_CACHE_BYTES = 1_000_000_000


class Own:
    """Keeps a Markdown file a fact, with a repository whose cache is large enough."""

    name: ClassVar[str] = "DeerMem"
    keeps: ClassVar[str] = (
        "a call that returned survives loss of power; a file a fact, which people can read; many writers"
    )

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._repository = MemoryRepository(folder, cache_bytes=_CACHE_BYTES)

    def fill(self, facts: Sequence[Fact]) -> None:
        """Lays the files down."""
        build_scope(self._folder, SCOPE, len(facts))

    def create(self, fact: Fact) -> None:
        """Adds a fact."""
        self._repository.upsert_fact(SCOPE, fact.draft())

    def update(self, fact_id: str, content: str) -> None:
        """Changes a fact."""
        self._repository.edit_fact(SCOPE, fact_id, {"content": content})

    def delete(self, fact_id: str) -> None:
        """Removes a fact."""
        self._repository.delete_fact(SCOPE, fact_id)

    def get(self, fact_id: str) -> object:
        """Returns a fact."""
        return self._repository.get_fact(SCOPE, fact_id)

    def read_all(self) -> Sequence[object]:
        """Returns the snapshot's facts, which nobody can change."""
        return self._repository.snapshot(SCOPE).facts

    def documents(self) -> Documents:
        """Makes dictionaries of them."""
        return [document_of(fact) for fact in self._repository.snapshot(SCOPE).facts]

    def search(self, text: str) -> Sequence[object]:
        """Finds a text."""
        return self._repository.search_facts(text, [SCOPE], top_k=TOP)

    def close(self) -> None:
        """Closes the repository."""
        self._repository.close()
