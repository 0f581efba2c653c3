"""The contract of a memory manager: what hosts call, whatever stores the memory behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]


class ManagerContract(ABC):
    """Names the operations of contract section 6; `MemoryManager` adds an `a…` twin of each.

    A memory belongs to a user and, for facts, an agent. `user_id=None` is the one user of a store
    without users, `agent_name=None` the default agent. A backend has to implement `add` and
    `get_context`; what else it does not implement raises `NotImplementedError` with its name.

    Nothing but these errors crosses: `MemoryConflictError`, `MemoryCorruptionError` and their base
    `MemoryManagerError`, `ValueError` for bad input, `KeyError` for a missing fact, `TimeoutError` for a
    lock that is held too long, `OSError`, and `NotImplementedError`.

    A document is `{version, revision, lastUpdated, user, history, facts}`; `docs/reference/manager.md`
    lists the keys of a fact.
    """

    @abstractmethod
    def add(
        self,
        thread_id: str | None,
        messages: Sequence[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Hands a conversation over, for facts and summaries to be extracted from it later."""

    def add_nowait(
        self,
        thread_id: str | None,
        messages: Sequence[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Hands a conversation over that is about to be lost: it goes before those that wait."""
        self.add(thread_id, messages, agent_name=agent_name, user_id=user_id, trace_id=trace_id)

    @abstractmethod
    def get_context(
        self, user_id: str | None, *, agent_name: str | None = None, thread_id: str | None = None
    ) -> str:
        """Returns the text to put before a model."""

    def search(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[Document]:
        """Returns the facts that match, best first, at most `top_k`; the category is applied before."""
        raise NotImplementedError("search")

    def get_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Returns the document; a user about whom nothing is known has one too."""
        raise NotImplementedError("get memory")

    def reload_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Forgets what is cached and returns the document."""
        raise NotImplementedError("reload memory")

    def export_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Returns the document, for `import_memory` to take back."""
        return self.get_memory(user_id=user_id, agent_name=agent_name)

    def import_memory(
        self, memory_data: Mapping[str, Any], *, user_id: str | None = None, agent_name: str | None = None
    ) -> Document:
        """Replaces the summaries and the agent's facts by those of a document."""
        raise NotImplementedError("import memory")

    def clear_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Deletes an agent's facts or, without an agent, all that is known of the user."""
        raise NotImplementedError("clear memory")

    def delete_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> None:
        """Does what `clear_memory` does, without a result."""
        self.clear_memory(user_id=user_id, agent_name=agent_name)

    def create_fact(
        self,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> tuple[Document, str | None]:
        """Adds a fact; returns the document and the new id, `None` if a cap evicted just this fact."""
        raise NotImplementedError("create fact")

    def update_fact(
        self,
        fact_id: str,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> Document:
        """Changes what is given of a fact; returns the document."""
        raise NotImplementedError("update fact")

    def delete_fact(
        self, fact_id: str, *, agent_name: str | None = None, user_id: str | None = None
    ) -> Document:
        """Deletes a fact; returns the document."""
        raise NotImplementedError("delete fact")

    def warm(self) -> bool | None:
        """Prepares what a first call would wait for; tells whether that is ready, `None` for nothing."""
        return None

    def shutdown_flush(self, timeout: float) -> bool:  # noqa: ARG002 - nothing waits here
        """Waits for what is under way; tells whether all of it ended within `timeout` seconds."""
        return True

    def close(self) -> None:  # noqa: B027 - a backend that holds nothing need not say so
        """Releases what the manager holds; a second time does nothing."""
