"""The two tools, for the SDK's synchronous and asynchronous tool runners."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from deermem.integrations.anthropic.memories import MAX_CHARACTERS, Memories, Work, told
from deermem.manager import DeerMem
from deermem.model.identity import Scope

Answer = TypeVar("Answer")


class _Commands(ABC, Generic[Answer]):
    """Offers the commands; how their work is run, and so what they return, is up to each tool."""

    _manager: DeerMem
    _memories: Memories

    @abstractmethod
    def _run(self, work: Work, *, writes: bool = True) -> Answer: ...

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> Answer:
        """Lists a directory or shows the lines of a file."""
        return self._run(self._memories.view(command), writes=False)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> Answer:
        """Makes a new file."""
        return self._run(self._memories.create(command))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> Answer:
        """Replaces a text that occurs once in a file."""
        return self._run(self._memories.str_replace(command))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> Answer:
        """Inserts lines into a file."""
        return self._run(self._memories.insert(command))

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> Answer:
        """Deletes a file or a directory."""
        return self._run(self._memories.delete(command))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> Answer:
        """Moves a file or a directory."""
        return self._run(self._memories.move(command))

    def clear_all_memory(self) -> Answer:
        """Deletes the agent's facts and the user's summaries; `deermem undo` takes it back."""
        return self._run(self._memories.clear())


class DeerMemMemoryTool(_Commands[str], BetaAbstractMemoryTool):
    """Gives Claude the memory of one user and agent; one tool serves one conversation at a time.

    Args:
        manager: Where the memory is kept.
        user_id: Whose memory it is; the model has no say in that.
        agent_name: Whose facts they are, `None` for the default agent.
        max_characters: How much of files and directories one answer shows; the model is told how to see the
            rest.
        cache_control: Where the SDK sets a cache breakpoint.

    Raises:
        InvalidInputError: The user, the agent or `max_characters` breaks its rule.
    """

    def __init__(
        self,
        manager: DeerMem,
        *,
        user_id: str | None,
        agent_name: str | None = None,
        max_characters: int = MAX_CHARACTERS,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._manager = manager
        self._memories = Memories(Scope.of(user_id, agent_name), max_characters)

    def _run(self, work: Work, *, writes: bool = True) -> str:  # noqa: ARG002 - threads need no queues
        with told():
            return self._manager.run_on_store(work)


class AsyncDeerMemMemoryTool(_Commands[Coroutine[Any, Any, str]], BetaAsyncAbstractMemoryTool):
    """Is `DeerMemMemoryTool` for an event loop, which it never blocks.

    Args:
        manager: Where the memory is kept.
        user_id: Whose memory it is; the model has no say in that.
        agent_name: Whose facts they are, `None` for the default agent.
        max_characters: How much of files and directories one answer shows; the model is told how to see the
            rest.
        cache_control: Where the SDK sets a cache breakpoint.

    Raises:
        InvalidInputError: The user, the agent or `max_characters` breaks its rule.
    """

    def __init__(
        self,
        manager: DeerMem,
        *,
        user_id: str | None,
        agent_name: str | None = None,
        max_characters: int = MAX_CHARACTERS,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._manager = manager
        self._memories = Memories(Scope.of(user_id, agent_name), max_characters)

    async def _run(self, work: Work, *, writes: bool = True) -> str:
        with told():
            return await self._manager.arun_on_store(work, writes=writes)
