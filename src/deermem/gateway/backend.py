"""What the routes call: a memory manager and, where it is DeerMem, the repository behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from deermem.compat import fact_document
from deermem.errors import FactNotFoundError, InvalidInputError, MemoryManagerError
from deermem.gateway.conditions import Changes, Tags, find_fact
from deermem.gateway.documents import (
    Rendered,
    RenderedSnapshots,
    public_document,
    public_fact,
    render,
    render_fact,
    render_memory,
)
from deermem.gateway.errors import EVICTED, Refusal, agent_not_found, invalid
from deermem.gateway.quick_looks import QuickLooks
from deermem.manager import DeerMem, MemoryManager
from deermem.model.identity import DEFAULT_AGENT, Scope, is_fact_id
from deermem.repository import MemoryRepository
from deermem.storage.mounts import is_local

T = TypeVar("T")

# A user that has no memory: to look for it needs the storage, and no lock that somebody may hold.
_NOBODY = "\0"

# What clients may need to know. No path, and nothing that tells how the server is built.
_TOLD_SETTINGS = (
    "max_facts",
    "fact_confidence_threshold",
    "max_injection_tokens",
    "guaranteed_categories",
    "guaranteed_token_budget",
    "file_lock_timeout_seconds",
)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Names a part of a list of facts."""

    filters: Mapping[str, Any]
    limit: int
    cursor: str | None


class Backend:
    """Answers with encoded documents.

    Every method but `document_at_once` blocks, and is safe to call from several threads.

    Args:
        manager: The memory manager. One that is not DeerMem has the operations of the contract alone.
        read_only: Whether clients are told that nothing can be changed.
        max_facts_per_request: How many facts a batch may name.
    """

    def __init__(self, manager: MemoryManager, *, read_only: bool, max_facts_per_request: int) -> None:
        self.name = type(manager).__name__
        self._manager = manager
        self._read_only = read_only
        self._max_batch = max_facts_per_request
        self._documents = RenderedSnapshots()
        self._looks = QuickLooks(self._is_local)

    def document_at_once(self, scope: Scope) -> Rendered | None:
        """Returns the document if it was encoded before and is current, for the event loop.

        `None` says that only `document` can tell.
        """
        return self._looks.take(lambda: self._unchanged(scope))

    def document(self, scope: Scope) -> Rendered:
        """Returns the document."""
        self._looks.judge()
        if isinstance(self._manager, DeerMem):
            return self._documents.of(self._manager.repository.snapshot(scope))
        return render_memory(self._manager.get_memory(**_names(scope)))

    def export(self, scope: Scope) -> Rendered:
        """Returns the document for an import elsewhere."""
        if isinstance(self._manager, DeerMem):
            return self.document(scope)
        return render_memory(self._manager.export_memory(**_names(scope)))

    def reload(self, scope: Scope) -> Rendered:
        """Forgets what is cached of the user and returns the document."""
        if isinstance(self._manager, DeerMem):
            # A mount that has vanished must not be taken for an empty store because one user asks to reload.
            return self._on_store(
                lambda repository: self._documents.of(repository.reload(scope, accept_root=False))
            )
        return render_memory(self._manager.reload_memory(**_names(scope)))

    def clear(self, scope: Scope, if_match: Tags) -> Rendered:
        """Deletes everything of the user or, of a custom agent, its facts."""
        if if_match:
            return self._changed(scope, if_match, Changes.clear)
        return render_memory(self._manager.clear_memory(**_names(scope)))

    def import_document(self, scope: Scope, document: Mapping[str, Any], if_match: Tags) -> Rendered:
        """Replaces the summaries and the agent's facts."""
        if if_match:
            return self._changed(scope, if_match, lambda changes: changes.import_document(document))
        return render_memory(self._manager.import_memory(document, **_names(scope)))

    def update_summaries(self, scope: Scope, patch: Mapping[str, Any], if_match: Tags) -> Rendered:
        """Replaces the summaries that are named."""
        return self._changed(scope, if_match, lambda changes: changes.update_summaries(patch))

    def settings(self) -> Rendered:
        """Returns the settings that clients may need to know."""
        return render(self._settings(), 0)

    def status(self, scope: Scope) -> Rendered:
        """Returns the settings and the document."""
        document = self._manager.get_memory(**_names(scope))
        return render({"config": self._settings(), "data": public_document(document)}, document["revision"])

    def page(self, scope: Scope, wanted: PageRequest) -> Rendered:
        """Returns a part of the facts."""
        page = self._on_store(
            lambda repository: repository.list_facts(
                scope, filters=wanted.filters, limit=wanted.limit, cursor=wanted.cursor
            )
        )
        answer: dict[str, Any] = {"facts": [public_fact(fact_document(fact)) for fact in page.facts]}
        if page.next_cursor is not None:
            answer["nextCursor"] = page.next_cursor
        return render({**answer, "revision": page.revision}, page.revision)

    def fact(self, scope: Scope, fact_id: str) -> Rendered:
        """Returns one fact."""
        return render_fact(self._on_store(lambda repository: find_fact(repository, scope, fact_id)))

    def create(self, scope: Scope, values: Mapping[str, Any], if_match: Tags, key: str | None) -> Rendered:
        """Adds a fact, and tells its id beside the document.

        Raises:
            Refusal: The cap evicted the fact, or the key was used for another content.
        """
        if if_match or key is not None:

            def work(repository: MemoryRepository) -> Rendered:
                revision, created = self._changes(repository, scope, if_match).create(values, key)
                return self._documents.of(repository.snapshot_since(scope, revision))._replace(
                    fact_id=created
                )

            return self._on_store(work)
        document, fact_id = self._manager.create_fact(**values, **_names(scope))
        if fact_id is None:
            raise Refusal(409, EVICTED)
        return render_memory(document)._replace(fact_id=fact_id)

    def create_all(
        self, scope: Scope, batch: Sequence[Mapping[str, Any]], if_match: Tags, key: str | None
    ) -> Rendered:
        """Adds facts, all of them or none."""
        self._check_batch("facts", len(batch))
        return self._changed(scope, if_match, lambda changes: changes.create_all(batch, key))

    def update(self, scope: Scope, fact_id: str, values: Mapping[str, Any], if_match: Tags) -> Rendered:
        """Changes what is given of a fact."""
        if not is_fact_id(fact_id):
            raise FactNotFoundError(fact_id)
        if if_match:
            return self._changed(scope, if_match, lambda changes: changes.update(fact_id, values))
        return render_memory(self._manager.update_fact(fact_id, **values, **_names(scope)))

    def delete(self, scope: Scope, fact_id: str, if_match: Tags) -> Rendered:
        """Deletes a fact."""
        if not is_fact_id(fact_id):
            raise FactNotFoundError(fact_id)
        if if_match:
            return self._changed(scope, if_match, lambda changes: changes.delete(fact_id))
        return render_memory(self._manager.delete_fact(fact_id, **_names(scope)))

    def delete_all(self, scope: Scope, fact_ids: Sequence[str], if_match: Tags) -> Rendered:
        """Deletes facts, all of them or none."""
        self._check_batch("ids", len(fact_ids))
        return self._changed(scope, if_match, lambda changes: changes.delete_all(fact_ids))

    def agents(self, scope: Scope) -> Rendered:
        """Returns the agents beside the default one that are custom ones or have facts."""

        def look(repository: MemoryRepository) -> Rendered:
            revision = repository.get_manifest(scope.user.raw).revision
            agents = [
                {"name": entry.name, "custom": entry.is_custom, "facts": entry.facts}
                for entry in repository.agent_entries(scope.user.raw)
                if entry.name != DEFAULT_AGENT
            ]
            return render({"agents": agents}, revision)

        return self._on_store(look)

    def delete_agent(self, scope: Scope, name: str) -> None:
        """Deletes a custom agent with all it owns."""
        try:
            agent = Scope.of(scope.user.raw, name)
        except InvalidInputError:
            raise agent_not_found(name) from None
        self._on_store(lambda repository: repository.delete_agent(agent))

    def counters(self) -> Mapping[str, int]:
        """Returns what the store has counted."""
        return self._manager.repository.counters() if isinstance(self._manager, DeerMem) else {}

    def is_reachable(self) -> bool:
        """Tells whether the storage can be read; it does not depend on anybody's memory."""
        try:
            if isinstance(self._manager, DeerMem):
                self._on_store(lambda repository: repository.get_manifest(_NOBODY))
                return True
            return self._manager.warm() is not False
        except (OSError, MemoryManagerError):
            return False

    def close(self, timeout: float) -> bool:
        """Waits for what is under way and releases everything; tells whether all came to its end."""
        flushed = self._manager.shutdown_flush(timeout)
        self._manager.close()
        return flushed

    def _unchanged(self, scope: Scope) -> Rendered | None:
        assert isinstance(self._manager, DeerMem)  # noqa: S101 - of no other is it known where it lies
        snapshot = self._manager.repository.snapshot_if_unchanged(scope)
        return None if snapshot is None else self._documents.known(snapshot)

    def _is_local(self) -> bool:
        return isinstance(self._manager, DeerMem) and is_local(self._manager.repository.storage_root)

    def _changed(self, scope: Scope, if_match: Tags, change: Callable[[Changes], int]) -> Rendered:
        """Commits a change and returns the document at its revision or a later one."""

        def work(repository: MemoryRepository) -> Rendered:
            revision = change(self._changes(repository, scope, if_match))
            return self._documents.of(repository.snapshot_since(scope, revision))

        return self._on_store(work)

    def _on_store(self, work: Callable[[MemoryRepository], T]) -> T:
        if not isinstance(self._manager, DeerMem):
            raise NotImplementedError
        return self._manager.run_on_store(work)

    def _changes(self, repository: MemoryRepository, scope: Scope, if_match: Tags) -> Changes:
        assert isinstance(self._manager, DeerMem)  # noqa: S101 - there is a repository
        return Changes(repository, self._documents, scope, if_match, self._manager.config.max_facts)

    def _settings(self) -> dict[str, Any]:
        told: dict[str, Any] = {"backend": self.name, "read_only": self._read_only}
        if isinstance(self._manager, DeerMem):
            told["mode"] = self._manager.mode
            told |= {name: getattr(self._manager.config, name) for name in _TOLD_SETTINGS}
        return told

    def _check_batch(self, field: str, length: int) -> None:
        if length > self._max_batch:
            raise invalid(field, f"has more than {self._max_batch:,} items")


def _names(scope: Scope) -> dict[str, Any]:
    return {"user_id": scope.user.raw, "agent_name": None if scope.agent == DEFAULT_AGENT else scope.agent}
