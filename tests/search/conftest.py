"""A store, a watched adapter, and the indexer between them."""

from __future__ import annotations

import pytest

from deermem.search.indexer import Indexer
from tests.search.store import Store
from tests.search.watched import WatchedAdapter


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def adapter() -> WatchedAdapter:
    return WatchedAdapter()


@pytest.fixture
def indexer(store: Store, adapter: WatchedAdapter) -> Indexer:
    """Follows the store; nobody in these tests has to wait long."""
    indexer = Indexer(adapter, store.load, patience=0.05)
    store.tell = indexer.committed
    return indexer
