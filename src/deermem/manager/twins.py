"""The `a…` twins: the same operations for an event loop, which they never block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from deermem.manager.contract import Document, ManagerContract

T = TypeVar("T")


class MemoryManager(ManagerContract):
    """Is the contract with an `a…` twin of each operation.

    A twin runs its operation in another thread. If its await is cancelled, an operation that has begun
    runs to its end, once; one that has not begun never will.
    """

    async def _off_loop(self, work: Callable[[], T], *, writes: bool) -> T:  # noqa: ARG002 - for subclasses
        """Runs something in another thread.

        Args:
            work: What to run.
            writes: Whether it may wait for a writer's turn, which can take long.
        """
        import asyncio

        return await asyncio.to_thread(work)

    async def aadd(
        self,
        thread_id: str | None,
        messages: Sequence[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Is `add` for an event loop."""
        await self._off_loop(
            lambda: self.add(thread_id, messages, agent_name=agent_name, user_id=user_id, trace_id=trace_id),
            writes=False,
        )

    async def aadd_nowait(
        self,
        thread_id: str | None,
        messages: Sequence[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Is `add_nowait` for an event loop."""
        await self._off_loop(
            lambda: self.add_nowait(
                thread_id, messages, agent_name=agent_name, user_id=user_id, trace_id=trace_id
            ),
            writes=False,
        )

    async def aget_context(
        self, user_id: str | None, *, agent_name: str | None = None, thread_id: str | None = None
    ) -> str:
        """Is `get_context` for an event loop."""
        return await self._off_loop(
            lambda: self.get_context(user_id, agent_name=agent_name, thread_id=thread_id), writes=False
        )

    async def asearch(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[Document]:
        """Is `search` for an event loop."""
        return await self._off_loop(
            lambda: self.search(query, top_k, user_id=user_id, agent_name=agent_name, category=category),
            writes=False,
        )

    async def aget_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Is `get_memory` for an event loop."""
        return await self._off_loop(
            lambda: self.get_memory(user_id=user_id, agent_name=agent_name), writes=False
        )

    async def areload_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Is `reload_memory` for an event loop."""
        return await self._off_loop(
            lambda: self.reload_memory(user_id=user_id, agent_name=agent_name), writes=False
        )

    async def aexport_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Is `export_memory` for an event loop."""
        return await self._off_loop(
            lambda: self.export_memory(user_id=user_id, agent_name=agent_name), writes=False
        )

    async def aimport_memory(
        self, memory_data: Mapping[str, Any], *, user_id: str | None = None, agent_name: str | None = None
    ) -> Document:
        """Is `import_memory` for an event loop."""
        return await self._off_loop(
            lambda: self.import_memory(memory_data, user_id=user_id, agent_name=agent_name), writes=True
        )

    async def aclear_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Is `clear_memory` for an event loop."""
        return await self._off_loop(
            lambda: self.clear_memory(user_id=user_id, agent_name=agent_name), writes=True
        )

    async def adelete_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> None:
        """Is `delete_memory` for an event loop."""
        await self._off_loop(lambda: self.delete_memory(user_id=user_id, agent_name=agent_name), writes=True)

    async def acreate_fact(
        self,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> tuple[Document, str | None]:
        """Is `create_fact` for an event loop."""
        return await self._off_loop(
            lambda: self.create_fact(content, category, confidence, agent_name=agent_name, user_id=user_id),
            writes=True,
        )

    async def aupdate_fact(
        self,
        fact_id: str,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> Document:
        """Is `update_fact` for an event loop."""
        return await self._off_loop(
            lambda: self.update_fact(
                fact_id, content, category, confidence, agent_name=agent_name, user_id=user_id
            ),
            writes=True,
        )

    async def adelete_fact(
        self, fact_id: str, *, agent_name: str | None = None, user_id: str | None = None
    ) -> Document:
        """Is `delete_fact` for an event loop."""
        return await self._off_loop(
            lambda: self.delete_fact(fact_id, agent_name=agent_name, user_id=user_id), writes=True
        )

    async def awarm(self) -> bool | None:
        """Is `warm` for an event loop."""
        return await self._off_loop(self.warm, writes=False)

    async def ashutdown_flush(self, timeout: float) -> bool:  # noqa: ASYNC109 - the contract's own name
        """Is `shutdown_flush` for an event loop."""
        import asyncio

        # Not among the operations that it waits for.
        return await asyncio.to_thread(self.shutdown_flush, timeout)

    async def aclose(self) -> None:
        """Is `close` for an event loop."""
        import asyncio

        await asyncio.to_thread(self.close)
