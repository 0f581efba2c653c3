"""The store that LangGraph is given."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import Self

from langgraph.store.base import BaseStore, Op, Result

from deermem.config import DeerMemConfig
from deermem.integrations.langgraph.batches import Batch
from deermem.integrations.langgraph.namespaces import USER, Layout
from deermem.manager import DeerMem


class DeerMemStore(BaseStore):
    """Keeps LangGraph's items as facts of DeerMem's users; for any number of threads and event loops.

    Args:
        manager: Where to keep them; or the path of a storage root, whose manager `close` then closes.
        layout: What the first labels of a namespace are: `"{user}"`, `"{agent}"`, or fixed text.
        user_id: The user of all namespaces, for a layout without `"{user}"`; `None` is the one user of a
            store without users.
        agent_name: The agent of all namespaces, for a layout without `"{agent}"`.
        across_users: Whether a search or a list of namespaces that names no user may look at all of them.

    Raises:
        InvalidInputError: The layout contradicts itself or is no namespace, or the storage root is a file.
    """

    supports_ttl = False

    def __init__(
        self,
        manager: DeerMem | str | os.PathLike[str],
        *,
        layout: Sequence[str] = (USER,),
        user_id: str | EllipsisType | None = ...,
        agent_name: str | None = None,
        across_users: bool = False,
    ) -> None:
        super().__init__()
        self._layout = Layout(layout, user_id, agent_name)
        self._across_users = across_users
        self._owns = not isinstance(manager, DeerMem)
        self.manager = manager if isinstance(manager, DeerMem) else _opened(manager)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations: reads show the state before the puts, and one user's puts are one transaction.

        Raises:
            InvalidNamespaceError: A namespace breaks a rule; nothing was read or written.
            InvalidInputError: A value, a key or a filter breaks its rule; nothing was read or written.
            MemoryConflictError: A fact was edited by hand since it was read; that user has none of the puts.
        """
        return self.manager.run_on_store(self._checked(ops).run)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Is `batch` for an event loop, which it never blocks."""
        batch = self._checked(ops)
        return await self.manager.arun_on_store(batch.run, writes=batch.writes)

    def close(self) -> None:
        """Closes the manager if this store opened it."""
        if self._owns:
            self.manager.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _checked(self, ops: Iterable[Op]) -> Batch:
        return Batch(ops, self._layout, across_users=self._across_users)


def _opened(storage_path: str | os.PathLike[str]) -> DeerMem:
    return DeerMem(DeerMemConfig(storage_path=os.fspath(storage_path)))
