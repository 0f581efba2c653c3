"""LangGraph's long-term memory in a DeerMem store: `DeerMemStore` is a `BaseStore`.

How namespaces, keys and values become users, agents and facts is told in `namespaces` and `items`.
"""

from __future__ import annotations

try:
    import langgraph.store.base  # noqa: F401 - so that what is missing is named in one place
except ImportError as error:
    raise ImportError(
        'deermem.integrations.langgraph needs LangGraph: pip install "deermem[langgraph]"'
    ) from error

from deermem.integrations.langgraph.namespaces import label_of
from deermem.integrations.langgraph.store import DeerMemStore

__all__ = ["DeerMemStore", "label_of"]
