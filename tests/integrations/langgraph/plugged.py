"""A pytest plugin for LangGraph's own tests: its stores in memory and on SQLite are `DeerMemStore`.

It is loaded by its file's name alone: LangGraph's tests are a package `tests` of their own.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

from deermem.integrations.langgraph import DeerMemStore

_memory: Any = importlib.import_module("langgraph.store.memory")
_sqlite: Any = importlib.import_module("langgraph.store.sqlite")
_roots = tempfile.TemporaryDirectory(prefix="deermem-")


class InMemoryStore(DeerMemStore):
    """Is made as LangGraph's tests make a store: with an index, and empty."""

    MIGRATIONS = _sqlite.SqliteStore.MIGRATIONS  # which one of the tests reads
    index_config = None

    def __init__(self, **_index: Any) -> None:
        super().__init__(tempfile.mkdtemp(dir=_roots.name), across_users=True)


class SqliteStore(InMemoryStore):
    """Is opened as LangGraph's tests open a database."""

    def setup(self) -> None:
        """Has no tables to make."""

    @classmethod
    @contextmanager
    def from_conn_string(cls, _connection: str, **index: Any) -> Iterator[Self]:
        """Opens an empty store, whatever database is meant."""
        with cls(**index) as store:
            yield store


class AsyncSqliteStore(InMemoryStore):
    """Is opened as LangGraph's tests of its asynchronous store open a database."""

    async def setup(self) -> None:
        """Has no tables to make."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, _connection: str, **index: Any) -> AsyncIterator[Self]:
        """Opens an empty store, whatever database is meant."""
        with cls(**index) as store:
            yield store


_memory.InMemoryStore = InMemoryStore
_sqlite.SqliteStore = SqliteStore
_sqlite.AsyncSqliteStore = AsyncSqliteStore


def pytest_unconfigure() -> None:
    """Removes what the stores left."""
    _roots.cleanup()
