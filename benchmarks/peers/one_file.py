"""All facts in one JSON file, which each change replaces as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.floors import replace_durably
from benchmarks.peers.port import Documents, document_of, surest
from deermem import Fact

_NAME = "facts.json"


class OneFile:
    """Keeps what it parsed until the file is another one."""

    name: ClassVar[str] = "one JSON file"
    keeps: ClassVar[str] = (
        "file and folder are synced: a change that returned survives loss of power; there is no lock, so of "
        "two writers one loses its change"
    )

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = os.open(folder, os.O_RDONLY)
        self._path = folder / _NAME
        self._seen: tuple[int, ...] = ()
        self._facts: dict[str, dict[str, Any]] = {}

    def fill(self, facts: Sequence[Fact]) -> None:
        """Writes the file once."""
        self._facts = {fact.id: document_of(fact) for fact in facts}
        self._save()

    def create(self, fact: Fact) -> None:
        """Writes the file with one fact more."""
        self._load()[fact.id] = document_of(fact)
        self._save()

    def update(self, fact_id: str, content: str) -> None:
        """Writes the file with another text."""
        document = self._load()[fact_id]
        document["content"] = content
        document["revision"] += 1
        self._save()

    def delete(self, fact_id: str) -> None:
        """Writes the file with one fact less."""
        del self._load()[fact_id]
        self._save()

    def get(self, fact_id: str) -> object:
        """Looks the fact up."""
        return self._load().get(fact_id)

    def read_all(self) -> Sequence[object]:
        """Returns what is kept in memory; a caller that changes it changes the store."""
        return list(self._load().values())

    def documents(self) -> Documents:
        """Copies what is kept in memory."""
        return [
            {
                **fact,
                "topics": list(fact["topics"]),
                "scope": dict(fact["scope"]),
                "consolidatedFrom": list(fact["consolidatedFrom"]),
            }
            for fact in self._load().values()
        ]

    def search(self, text: str) -> Sequence[object]:
        """Looks at every fact."""
        return surest(list(self._load().values()), text)

    def close(self) -> None:
        """Closes the folder."""
        os.close(self._folder)

    def _load(self) -> dict[str, dict[str, Any]]:
        if self._identity() != self._seen:
            self._facts = json.loads(self._path.read_bytes())
            self._seen = self._identity()
        return self._facts

    def _save(self) -> None:
        replace_durably(self._folder, _NAME, json.dumps(self._facts).encode())
        self._seen = self._identity()

    def _identity(self) -> tuple[int, ...]:
        status = self._path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
