"""The parts of a DeerFlow storage that are about finding facts, and about hints for their eviction."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar

from deermem.integrations.deerflow.hints import Hints
from deermem.integrations.deerflow.host import Host
from deermem.integrations.deerflow.side_json import eviction_event
from deermem.integrations.deerflow.values import Document, fact_dictionary, scope_of, store_filters
from deermem.model.identity import Scope
from deermem.repository import MemoryRepository
from deermem.search.port import DEFAULT_MODE, DEFAULT_TOP_K, MAX_TOP_K


class Searching:
    """Searches, and keeps usage and evictions; `StorageMethods` builds on it."""

    host: ClassVar[Host]
    _config: Any
    _repository: MemoryRepository
    _hints: Hints

    def search_facts(
        self,
        query: str,
        *,
        scopes: Iterable[Document],
        top_k: int = DEFAULT_TOP_K,
        mode: str = DEFAULT_MODE,
        filters: Document | None = None,
    ) -> list[Document]:
        """Returns `{fact, score, matchType}`, best first; a blank query finds nothing."""
        if not query.strip() or top_k < 1:
            return []
        with self.host.translated():
            wanted = self._scopes(scopes)
            hits = self._repository.search_facts(
                query, wanted, top_k=min(top_k, MAX_TOP_K), mode=mode, filters=store_filters(filters)
            )
        asked = {(scope.user.bucket, scope.agent): scope.user.raw for scope in wanted}
        return [
            {
                "fact": fact_dictionary(hit.fact, asked[hit.fact.scope.user.bucket, hit.fact.scope.agent]),
                "score": hit.score,
                "matchType": hit.match_type,
            }
            for hit in hits
        ]

    def rebuild_index(self, scopes: Iterable[Document] | None = None) -> Document:
        """Makes the search index hold what is stored, if there is one; without scopes, of all users."""
        with self.host.translated():
            wanted = self._all_scopes() if scopes is None else self._scopes(scopes)
            report = self._repository.rebuild_index(wanted)
        if not report.supported:
            return {"supported": False, "indexed": 0, "failed": 0, "reason": "retrieval_not_configured"}
        done: Document = {"supported": True, "indexed": report.indexed, "failed": report.failed}
        return {**done, "fatal": True, "reason": report.reason} if report.reason else done

    def retrieval_status(self) -> Document:
        """Tells how facts are searched."""
        configured = self._repository.rebuild_index(()).supported
        return {"configured": configured, "mode": "external" if configured else "substring_fallback"}

    def capabilities(self) -> set[str]:
        """Names what this storage can do, in DeerFlow's words."""
        found = {
            "fact-repository",
            "file",
            "global-summary-json",
            "journal",
            "markdown-facts",
            "revision",
            "substring-fallback",
        }
        return found | ({"retrieval"} if self.retrieval_status()["configured"] else set())

    def notify_fact_upsert(self, fact: Document, *, path: str = "") -> bool:  # noqa: ARG002 - DeerFlow's
        """Does nothing: the store tells its index of every commit by itself."""
        return False

    def notify_fact_remove(self, fact_id: str, *, scope: Document) -> bool:  # noqa: ARG002 - DeerFlow's
        """Does nothing: the store tells its index of every commit by itself."""
        return False

    def get_fact_usage(self, *, agent_name: str, user_id: str | None = None) -> dict[str, Document]:
        """Returns how often and when each fact was found by searches."""
        with self.host.translated():
            return self._hints.usage(self._checked(user_id, agent_name))

    def record_fact_accesses(
        self,
        fact_ids: list[str],
        *,
        agent_name: str,
        user_id: str | None = None,
        accessed_at: datetime | None = None,
    ) -> None:
        """Counts that a search found these facts."""
        with self.host.translated():
            scope = self._checked(user_id, agent_name)
            self._hints.note_accesses(scope, fact_ids, _utc(accessed_at))

    def record_capacity_eviction(
        self,
        decision: Any,
        *,
        max_facts: int,
        agent_name: str,
        user_id: str | None = None,
        occurred_at: datetime | None = None,
        shadow_decision: Any = None,
    ) -> None:
        """Keeps for a while which facts the cap evicted and why, by id, without their text."""
        if not decision.evicted:
            return
        with self.host.translated():
            event = eviction_event(decision, shadow_decision, max_facts, _utc(occurred_at))
            self._hints.note_eviction(self._checked(user_id, agent_name), event)

    def clear_fact_metadata(
        self, *, agent_name: str, user_id: str | None = None, fact_ids: list[str] | None = None
    ) -> None:
        """Forgets usage and evictions of some facts, or of all facts of an agent."""
        with self.host.translated():
            self._hints.forget(self._checked(user_id, agent_name), fact_ids)

    def _checked(self, user_id: str | None, agent_name: str) -> Scope:
        self._repository.parse_user(user_id)
        return scope_of(user_id, agent_name, "keep hints")

    @staticmethod
    def _scopes(scopes: Iterable[Document]) -> list[Scope]:
        return [
            scope_of(scope.get("userId"), scope["agentName"], "search")
            for scope in scopes
            if scope.get("agentName") is not None
        ]

    def _all_scopes(self) -> list[Scope]:
        users: list[str | None] = [*self._repository.list_users()]
        if not self._config.strict_user_scope:
            users.append(None)
        return [
            Scope(self._repository.parse_user(user), agent)
            for user in users
            for agent in self._repository.list_agents(user)
        ]


def _utc(moment: datetime | None) -> datetime:
    return datetime.now(UTC) if moment is None else moment.astimezone(UTC)
