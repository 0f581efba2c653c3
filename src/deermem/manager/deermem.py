"""DeerMem, the memory manager of this package: a facade over the repository."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deermem.compat import fact_document, read_document, snapshot_document
from deermem.errors import FactNotFoundError
from deermem.manager.context import ContextBudget, context_text
from deermem.manager.contract import Document
from deermem.manager.core import ManagerCore
from deermem.model.changes import Delta
from deermem.model.fact import MANUAL_SOURCE, FactDraft
from deermem.model.identity import Scope

_TOLD_IDS: Final = 20

_log = logging.getLogger(__name__)


class DeerMem(ManagerCore):
    """Keeps memories in files, through a `MemoryRepository`; safe to use from several threads.

    Args:
        backend_config: The settings, or a host's dictionary of them; `None` for the defaults.
        mode: `"tool"` leaves facts out of contexts: the model searches for them.
        extraction_hook: Makes facts of conversations; without it `add` raises `NotImplementedError`.
        repository: Where to store, in place of what the settings say of storage; `close` closes it.

    Raises:
        InvalidInputError: A setting breaks its rule.
    """

    def add(
        self,
        thread_id: str | None,
        messages: Sequence[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Hands a conversation to the extraction hook and returns; `shutdown_flush` waits for the outcome.

        Raises:
            NotImplementedError: There is no extraction hook.
        """
        with self._crossing():
            self._extraction().put(Scope.of(user_id, agent_name), thread_id, messages, trace_id, urgent=False)

    def add_nowait(
        self,
        thread_id: str | None,
        messages: Sequence[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Hands a conversation over that is about to be lost: it goes before those that wait, and always in.

        Raises:
            NotImplementedError: There is no extraction hook.
        """
        with self._crossing():
            self._extraction().put(Scope.of(user_id, agent_name), thread_id, messages, trace_id, urgent=True)

    def get_context(
        self,
        user_id: str | None,
        *,
        agent_name: str | None = None,
        thread_id: str | None = None,  # noqa: ARG002 - for backends that choose facts by conversation
    ) -> str:
        """Returns the text to put before a model; in mode `"tool"` it has no facts."""
        with self._crossing() as repository:
            scope = Scope.of(user_id, agent_name)
            if self.mode == "tool":
                return context_text(repository.get_summaries(user_id), (), self._budget())
            snapshot = repository.snapshot(scope)
            return context_text(snapshot.summaries, snapshot.facts, self._budget())

    def search(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[Document]:
        """Returns the facts that match, best first; a blank query, or a limit below 1, finds nothing."""
        with self._crossing() as repository:
            scope = Scope.of(user_id, agent_name)
            if (isinstance(query, str) and not query.strip()) or (isinstance(top_k, int) and top_k < 1):
                return []
            filters = {"category": category} if category else {}
            hits = repository.search_facts(query, [scope], top_k=top_k, filters=filters)
            return [fact_document(hit.fact) for hit in hits]

    def get_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Returns the document; a user about whom nothing is known has one too."""
        with self._crossing() as repository:
            return snapshot_document(repository.snapshot(Scope.of(user_id, agent_name)))

    def reload_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Forgets what is cached of the user and returns the document; edits by hand are seen then."""
        with self._crossing() as repository:
            return snapshot_document(repository.reload(Scope.of(user_id, agent_name)))

    def import_memory(
        self, memory_data: Mapping[str, Any], *, user_id: str | None = None, agent_name: str | None = None
    ) -> Document:
        """Replaces the summaries and the agent's facts by those of a document, in one transaction.

        A fact with a known id keeps its creation time and, if it says something else, gets the next
        revision. Where the document has more facts than the cap, those with the highest confidence stay.

        Raises:
            InvalidInputError: Names the value that breaks its rule; nothing was written.
        """
        with self._crossing() as repository:
            scope = Scope.of(user_id, agent_name)
            drafts, summaries = read_document(memory_data)
            identified = [
                draft if draft.id is not None else draft.with_id(repository.new_fact_id()) for draft in drafts
            ]
            identified.sort(key=lambda draft: (-draft.confidence, draft.id or ""))
            kept, left_out = identified[: self.config.max_facts], identified[self.config.max_facts :]
            repository.snapshot(scope)  # what can fail fails before the commit
            delta = repository.replace_all(scope, kept, summaries)
            self._tell_left_out(scope, delta, [draft.id for draft in left_out])
            return snapshot_document(repository.snapshot_since(scope, delta.revision))

    def clear_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Deletes an agent's facts or, without an agent, the facts of all agents and the summaries."""
        with self._crossing() as repository:
            scope = Scope.of(user_id, agent_name)
            delta = repository.clear_all(user_id) if agent_name is None else repository.clear(scope)
            return snapshot_document(repository.snapshot_since(scope, delta.revision))

    def create_fact(
        self,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> tuple[Document, str | None]:
        """Adds a fact and keeps the cap, in one transaction.

        Returns:
            The document, at the commit or after it, and the new id: `None` if the cap evicted just this fact.

        Raises:
            DuplicateFact: The scope holds the same text.
        """
        with self._crossing() as repository:
            scope = Scope.of(user_id, agent_name)
            draft = FactDraft(content, category=category, confidence=confidence, source=MANUAL_SOURCE)
            delta, fact_id = repository.create_fact(scope, draft, max_facts=self.config.max_facts)
            return snapshot_document(repository.snapshot_since(scope, delta.revision)), fact_id

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
        """Changes what is given of a fact, whatever the rest of it is at that moment.

        Raises:
            FactNotFoundError: There is no such fact.
            MemoryConflictError: The fact's file was edited by hand since it was read.
        """
        given = {"content": content, "category": category, "confidence": confidence}
        changes = {name: value for name, value in given.items() if value is not None}
        with self._crossing() as repository:
            scope = Scope.of(user_id, agent_name)
            repository.snapshot(scope)  # what can fail fails before the commit
            delta = repository.edit_fact(scope, fact_id, changes)
            return snapshot_document(repository.snapshot_since(scope, delta.revision))

    def delete_fact(
        self, fact_id: str, *, agent_name: str | None = None, user_id: str | None = None
    ) -> Document:
        """Deletes a fact.

        Raises:
            FactNotFoundError: There is no such fact.
        """
        with self._crossing() as repository:
            scope = Scope.of(user_id, agent_name)
            repository.snapshot(scope)  # what can fail fails before the commit
            delta = repository.delete_fact(scope, fact_id)
            if not delta.deleted:
                raise FactNotFoundError(fact_id)
            return snapshot_document(repository.snapshot_since(scope, delta.revision))

    def _budget(self) -> ContextBudget:
        config = self.config
        categories = frozenset(config.guaranteed_categories)
        return ContextBudget(config.max_injection_tokens, categories, config.guaranteed_token_budget)

    def _tell_left_out(self, scope: Scope, delta: Delta, fact_ids: Sequence[str | None]) -> None:
        if fact_ids:
            more = len(fact_ids) - _TOLD_IDS
            _log.info(
                "the cap of %d facts evicted from %s at revision %d: %s%s",
                self.config.max_facts,
                scope,
                delta.revision,
                ", ".join(map(str, fact_ids[:_TOLD_IDS])),
                f" and {more:,} more" if more > 0 else "",
            )
