"""SQLite from the standard library, as a careful program would use it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.peers.port import TOP, Documents, document_of
from deermem import Fact

_TABLE = """
CREATE TABLE IF NOT EXISTS facts (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    confidence REAL NOT NULL,
    document TEXT NOT NULL
) WITHOUT ROWID
"""
_INSERT = "INSERT INTO facts (id, title, content, confidence, document) VALUES (?, ?, ?, ?, ?)"
_BUSY_SECONDS = 60.0


def connect(path: Path) -> sqlite3.Connection:
    """Opens a database in which each commit waits until its part of the log is on the disk."""
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


class Sqlite:
    """Keeps a row a fact: its document as JSON, and what searches need beside it."""

    name: ClassVar[str] = "SQLite"
    keeps: ClassVar[str] = "WAL, synchronous FULL: a commit that returned survives loss of power; one host"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._connection = connect(folder / "facts.db")
        self._connection.execute(_TABLE)

    def fill(self, facts: Sequence[Fact]) -> None:
        """Inserts in one transaction, and empties the log."""
        self._connection.execute("BEGIN")
        self._connection.executemany(_INSERT, map(_row, facts))
        self._connection.execute("COMMIT")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def create(self, fact: Fact) -> None:
        """Inserts a row."""
        self._connection.execute(_INSERT, _row(fact))

    def update(self, fact_id: str, content: str) -> None:
        """Reads the row and writes it back, in a transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        document = self.get(fact_id)
        document["content"] = content
        document["revision"] += 1
        self._connection.execute(
            "UPDATE facts SET content = ?, document = ? WHERE id = ?",
            (content, json.dumps(document), fact_id),
        )
        self._connection.execute("COMMIT")

    def delete(self, fact_id: str) -> None:
        """Deletes the row."""
        self._connection.execute("DELETE FROM facts WHERE id = ?", (fact_id,))

    def get(self, fact_id: str) -> Any:
        """Reads the row."""
        row = self._connection.execute("SELECT document FROM facts WHERE id = ?", (fact_id,)).fetchone()
        return None if row is None else json.loads(row[0])

    def read_all(self) -> Sequence[object]:
        """Reads all rows."""
        return self.documents()

    def documents(self) -> Documents:
        """Reads all rows."""
        return [
            json.loads(row[0]) for row in self._connection.execute("SELECT document FROM facts ORDER BY id")
        ]

    def search(self, text: str) -> Sequence[object]:
        """Has the database look through its rows, and parses what it found."""
        found = self._connection.execute(
            "SELECT document FROM facts WHERE instr(lower(content), ?) OR instr(lower(title), ?) "
            "ORDER BY confidence DESC, id LIMIT ?",
            (text.lower(), text.lower(), TOP),
        )
        return [json.loads(row[0]) for row in found]

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()


def _row(fact: Fact) -> tuple[str, str, str, float, str]:
    return fact.id, fact.title, fact.content, fact.confidence, json.dumps(document_of(fact))
