"""The two tools, for the SDK's synchronous and asynchronous tool runners."""

from __future__ import annotations

from collections.abc import Callable

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

from deermem.integrations.anthropic.memories import Memories, told
from deermem.manager import DeerMem
from deermem.model.identity import Scope
from deermem.repository import MemoryRepository

Work = Callable[[MemoryRepository], str]


class DeerMemMemoryTool(BetaAbstractMemoryTool):
    """Gives Claude the memory of one user and agent; one tool serves one conversation at a time.

    Args:
        manager: Where the memory is kept.
        user_id: Whose memory it is; the model has no say in that.
        agent_name: Whose facts they are, `None` for the default agent.
        cache_control: Where the SDK sets a cache breakpoint.

    Raises:
        InvalidInputError: The user or the agent breaks its rule.
    """

    def __init__(
        self,
        manager: DeerMem,
        *,
        user_id: str | None,
        agent_name: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._manager = manager
        self._memories = Memories(Scope.of(user_id, agent_name))

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Lists a directory or shows the lines of a file."""
        return self._run(self._memories.view(command))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Makes a new file."""
        return self._run(self._memories.create(command))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replaces a text that occurs once in a file."""
        return self._run(self._memories.str_replace(command))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Inserts lines into a file."""
        return self._run(self._memories.insert(command))

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Deletes a file or a directory."""
        return self._run(self._memories.delete(command))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Moves a file or a directory."""
        return self._run(self._memories.move(command))

    def clear_all_memory(self) -> str:
        """Deletes the agent's facts and the user's summaries; `deermem undo` takes it back."""
        return self._run(self._memories.clear())

    def _run(self, work: Work) -> str:
        with told():
            return self._manager.run_on_store(work)


class AsyncDeerMemMemoryTool(BetaAsyncAbstractMemoryTool):
    """Is `DeerMemMemoryTool` for an event loop, which it never blocks.

    Args:
        manager: Where the memory is kept.
        user_id: Whose memory it is; the model has no say in that.
        agent_name: Whose facts they are, `None` for the default agent.
        cache_control: Where the SDK sets a cache breakpoint.

    Raises:
        InvalidInputError: The user or the agent breaks its rule.
    """

    def __init__(
        self,
        manager: DeerMem,
        *,
        user_id: str | None,
        agent_name: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._manager = manager
        self._memories = Memories(Scope.of(user_id, agent_name))

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Lists a directory or shows the lines of a file."""
        return await self._run(self._memories.view(command), writes=False)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Makes a new file."""
        return await self._run(self._memories.create(command))

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replaces a text that occurs once in a file."""
        return await self._run(self._memories.str_replace(command))

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Inserts lines into a file."""
        return await self._run(self._memories.insert(command))

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Deletes a file or a directory."""
        return await self._run(self._memories.delete(command))

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Moves a file or a directory."""
        return await self._run(self._memories.move(command))

    async def clear_all_memory(self) -> str:
        """Deletes the agent's facts and the user's summaries; `deermem undo` takes it back."""
        return await self._run(self._memories.clear())

    async def _run(self, work: Work, *, writes: bool = True) -> str:
        with told():
            return await self._manager.arun_on_store(work, writes=writes)
