"""What `DeerMemStorage` does: the methods that DeerFlow calls on its storage, over a `MemoryRepository`.

Each write is one transaction of the store, and its commit point is the store's; docs/internals/deerflow.md
says for each method which call it is. The class proper is made in `deermem.integrations.deerflow`, where
DeerFlow's base class is known.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from deermem.errors import CommitInDoubt, DeerMemError, InvalidInputError
from deermem.integrations.deerflow.changes import FullSave, read_change_set, read_full_save
from deermem.integrations.deerflow.hints import Hints
from deermem.integrations.deerflow.host import Host
from deermem.integrations.deerflow.opening import note_ignored_adapter, open_host_repository
from deermem.integrations.deerflow.search import Searching
from deermem.integrations.deerflow.values import (
    Document,
    document_of,
    fact_dictionary,
    passes,
    read_patch,
    scope_of,
)
from deermem.model.changes import ChangeSet, Delta
from deermem.model.identity import DEFAULT_AGENT, Scope, UserId
from deermem.model.manifest import MANIFEST_VERSION, Manifest
from deermem.repository import MemoryRepository
from deermem.storage.view import View

_log = logging.getLogger(__name__)


class StorageMethods(Searching):
    """Stores DeerFlow's memory; safe to use from several threads and processes.

    Args:
        config: DeerFlow's `DeerMemConfig`.
        retrieval: DeerFlow's retrieval adapter, which is not used.
        repository: Where to store, in place of what `config` says; `close` closes it.
    """

    host: ClassVar[Host]

    def __init__(
        self, config: Any, retrieval: object = None, *, repository: MemoryRepository | None = None
    ) -> None:
        self._config = config
        self._repository = open_host_repository(config) if repository is None else repository
        self._hints = Hints(
            self._repository.engine,
            half_life_days=config.eviction_access_half_life_days,
            max_events=config.eviction_audit_max_entries,
        )
        note_ignored_adapter(config.retrieval_adapter or ("" if retrieval is None else "given"))

    def close(self) -> None:
        """Forgets what is cached; commits need no close."""
        self._repository.close()

    # Documents

    def load(self, agent_name: str | None = None, *, user_id: str | None = None) -> Document:
        """Returns the summaries and an agent's facts; without an agent `facts` is empty.

        Raises:
            MemoryStorageCorruption: What is stored cannot be read safely.
        """
        with self.host.translated():
            return self._load(agent_name, user_id)

    def reload(self, agent_name: str | None = None, *, user_id: str | None = None) -> Document:
        """Forgets what is cached of the user and loads; edits made by hand are seen then."""
        with self.host.translated():
            if agent_name is not None:
                scope = scope_of(user_id, agent_name, "reload")
                snapshot = self._repository.reload(scope, accept_root=False)
                return document_of(snapshot.manifest, snapshot.facts, user_id)
            self._repository.engine.cache.forget_user(self._repository.parse_user(user_id))
            return self._load(None, user_id)

    def _load(self, agent_name: str | None, user_id: str | None) -> Document:
        if agent_name is None:
            return document_of(self._repository.get_manifest(user_id), (), user_id)
        snapshot = self._repository.snapshot(scope_of(user_id, agent_name, "load"))
        return document_of(snapshot.manifest, snapshot.facts, user_id)

    def save(
        self,
        memory_data: Document,
        agent_name: str | None = None,
        *,
        user_id: str | None = None,
        expected_revision: int | None = None,
    ) -> bool:
        """Replaces an agent's facts or, without an agent, the summaries; `False` says that it did not.

        Raises:
            MemoryManifestRevisionConflict: `memory.json` is not at the expected revision.
            MemoryFactRevisionConflict: A fact is not at the revision that the document gives it.
        """
        try:
            with self.host.translated():
                self._save(memory_data, agent_name, user_id, expected_revision)
        except CommitInDoubt as error:
            return self._settled(user_id, error)
        except self.host.conflict:
            raise
        except (OSError, ValueError, self.host.storage_error) as error:
            _log.error("the memory of %s was not saved: %s", user_id, error)
            return False
        return True

    def _save(
        self, memory_data: Document, agent_name: str | None, user_id: str | None, expected: int | None
    ) -> None:
        if not isinstance(memory_data, Mapping):
            raise InvalidInputError("memory_data", "must be an object")
        if agent_name is None:
            if memory_data.get("facts"):
                raise InvalidInputError("agent_name", "is required to save facts")
            self._patch(user_id, memory_data, expected)
            return
        scope = scope_of(user_id, agent_name, "save")
        saving: FullSave = read_full_save(memory_data, scope, self._repository.new_fact_id, expected)
        self._forget_deleted(scope, self._repository.commit(self._user(scope), saving.decide))

    def _settled(self, user_id: str | None, doubt: CommitInDoubt) -> bool:
        """Tells whether a change that was journalled came to be: the next access completes it."""
        try:
            revision = self._repository.get_manifest(user_id).revision
        except (OSError, DeerMemError):
            revision = 0
        if revision < doubt.revision:
            _log.error("the memory of %s was not saved: %s", user_id, doubt)
        return revision >= doubt.revision

    def clear_all(self, *, user_id: str | None = None) -> Document:
        """Deletes the facts of all agents and the summaries, in one transaction, which can be undone.

        Returns:
            The document of the default agent.
        """
        with self.host.translated():
            self._repository.clear_all(user_id)
            self._hints.forget_user(UserId.parse(user_id))
            return self._load(DEFAULT_AGENT, user_id)

    # Facts

    def get_fact(
        self, fact_id: str, *, user_id: str | None = None, agent_name: str | None = None
    ) -> Document | None:
        """Returns one fact, or `None`."""
        with self.host.translated():
            fact = self._repository.get_fact(scope_of(user_id, agent_name, "get a fact"), fact_id)
            return None if fact is None else fact_dictionary(fact, user_id)

    def list_facts(
        self,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        filters: Document | None = None,
        cursor: int = 0,
        limit: int = 100,
    ) -> list[Document]:
        """Returns facts that have exactly the filters' values, sorted by id, from the place `cursor` on."""
        if cursor < 0 or limit < 1:
            raise InvalidInputError("cursor and limit", "must be at least 0 and 1")
        facts = self.load(agent_name, user_id=user_id)["facts"]
        return [fact for fact in facts if passes(fact, filters or {})][cursor : cursor + limit]

    def apply_changes(
        self,
        change_set: Mapping[str, Any],
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        expected_manifest_revision: int | None = None,
        allow_manifest_rebase: bool = False,
    ) -> Document:
        """Commits facts and summaries together, in one transaction; returns what changed.

        Raises:
            MemoryManifestRevisionConflict: `memory.json` is at another revision and the change set may not
                be rebased.
            MemoryFactRevisionConflict: A fact is not as expected.
        """
        with self.host.translated():
            if not isinstance(change_set, Mapping):
                raise InvalidInputError("change_set", "must be an object")
            if agent_name is None and (change_set.get("upserts") or change_set.get("deletes")):
                raise InvalidInputError("agent_name", "is required to change facts")
            scope = scope_of(user_id, DEFAULT_AGENT if agent_name is None else agent_name, "change facts")
            changes = read_change_set(
                change_set,
                scope,
                self._repository.new_fact_id,
                expected_manifest_revision=expected_manifest_revision,
                may_rebase=allow_manifest_rebase,
            )
            delta = self._repository.commit(self._user(scope), changes.decide)
            self._forget_deleted(scope, delta)
        return {
            "complete": delta.complete,
            "version": delta.version,
            "revision": delta.revision,
            "lastUpdated": delta.last_updated,
            "upsertedFacts": [fact_dictionary(fact, user_id) for fact in delta.written],
            "deletedFactIds": [fact_id for _, fact_id in delta.deleted],
        }

    def upsert_fact(
        self,
        fact: Document,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        expected_manifest_revision: int | None = None,
        expected_fact_revision: int | None = None,
    ) -> Document:
        """Writes one fact, which must be at the expected revision or, without one, be absent."""
        scope_of(user_id, agent_name, "upsert a fact")
        if not isinstance(fact, Mapping):
            raise InvalidInputError("fact", "must be an object")
        fact_id = str(fact.get("id") or self._repository.new_fact_id())
        return self.apply_changes(
            {"upserts": [{**fact, "id": fact_id}], "upsertRevisions": {fact_id: expected_fact_revision}},
            user_id=user_id,
            agent_name=agent_name,
            expected_manifest_revision=expected_manifest_revision,
            allow_manifest_rebase=True,
        )

    def delete_fact(
        self,
        fact_id: str,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        expected_manifest_revision: int | None = None,
        expected_fact_revision: int | None = None,
    ) -> Document:
        """Deletes one fact; an absent one is no error unless something is expected of it."""
        scope_of(user_id, agent_name, "delete a fact")
        return self.apply_changes(
            {"deletes": [fact_id], "deleteRevisions": {fact_id: expected_fact_revision}},
            user_id=user_id,
            agent_name=agent_name,
            expected_manifest_revision=expected_manifest_revision,
            allow_manifest_rebase=True,
        )

    # Summaries and upkeep

    def get_summaries(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Returns the summaries, which all agents of a user share, and the manifest revision."""
        document = self.load(agent_name, user_id=user_id)
        return {name: document[name] for name in ("user", "history", "revision")}

    def update_summaries(
        self,
        summaries: Document,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,  # noqa: ARG002 - DeerFlow's name; summaries are the user's
        expected_revision: int | None = None,
    ) -> Document:
        """Replaces the summaries that are given; returns the document without facts."""
        with self.host.translated():
            self._patch(user_id, summaries, expected_revision)
            return self._load(None, user_id)

    def migrate(self, *, user_id: str | None = None, agent_name: str | None = None) -> Document:
        """Migrates all that the user has of version 1; idempotent."""
        with self.host.translated():
            scope_of(user_id, agent_name, "migrate")
            report = self._repository.migrate(user_id)
        before = report.from_version or (MANIFEST_VERSION if report.revision else None)
        return {
            "migrated": report.migrated,
            "fromVersion": before,
            "toVersion": report.to_version,
            "revision": report.revision,
        }

    def _patch(self, user_id: str | None, given: Any, expected: int | None) -> Delta:
        def decide(view: View) -> ChangeSet:
            manifest: Manifest = view.manifest
            return ChangeSet(summaries=read_patch(given, manifest), expected_manifest_revision=expected)

        return self._repository.commit(self._repository.parse_user(user_id), decide)

    def _user(self, scope: Scope) -> UserId:
        return self._repository.parse_user(scope.user.raw)

    def _forget_deleted(self, scope: Scope, delta: Delta) -> None:
        if delta.deleted:
            self._hints.forget(scope, None if delta.cleared else [fact_id for _, fact_id in delta.deleted])
