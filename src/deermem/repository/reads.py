"""Reads and searches: each shows one committed state, and none writes anything."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Final

from deermem.errors import InvalidInputError
from deermem.model.fact import Fact
from deermem.model.identity import AgentName, Scope, UserId, parse_fact_id
from deermem.model.manifest import NO_MANIFEST, Manifest
from deermem.model.snapshot import Snapshot
from deermem.model.summaries import Summaries
from deermem.repository.core import RepositoryCore
from deermem.search.filters import fact_filter
from deermem.search.indexer import RebuildReport
from deermem.search.port import DEFAULT_MODE, DEFAULT_TOP_K, NO_FILTERS, Hit
from deermem.storage.agents import AgentEntry
from deermem.storage.erasures import erased_at
from deermem.storage.opening import list_buckets
from deermem.storage.view import Problem

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class FactPage:
    """Is a part of a list of facts, sorted by id.

    `next_cursor` asks for the following part; `None` means that there is none. `problems` says what
    is wrong with files that were left out because they cannot be read.
    """

    facts: tuple[Fact, ...]
    next_cursor: str | None
    revision: int
    problems: tuple[Problem, ...] = ()


class Reads(RepositoryCore):
    """Gets, lists and searches."""

    def get_fact(self, scope: Scope, fact_id: str) -> Fact | None:
        """Returns one fact, or `None`; no other fact is looked at.

        Raises:
            Corruption: The fact's file cannot be trusted.
        """
        wanted = parse_fact_id(fact_id)
        return self._read(scope.user, lambda view: view.fact(scope, wanted), None)

    def list_facts(
        self,
        scope: Scope,
        *,
        filters: Mapping[str, object] = NO_FILTERS,
        limit: int = DEFAULT_PAGE,
        cursor: str | None = None,
        skip_corrupt: bool = False,
    ) -> FactPage:
        """Returns a part of a scope's facts, sorted by id.

        Args:
            scope: Where to look.
            filters: Exact values that the facts have, see `deermem.search.filters`.
            limit: The most facts to return, 1 to 1,000.
            cursor: `next_cursor` of the part before.
            skip_corrupt: Leave files out that cannot be read, and report them, instead of raising.

        Raises:
            Corruption: One of the files cannot be trusted.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
            raise InvalidInputError("limit", f"must be an integer from 1 to {MAX_PAGE:,}")
        accepts = fact_filter(filters)
        snapshot, problems = self.readable_snapshot(scope) if skip_corrupt else (self.snapshot(scope), ())
        facts = snapshot.facts
        # A page costs what it shows, not what lies before it.
        start = 0 if cursor is None else bisect_right(facts, parse_fact_id(cursor), key=attrgetter("id"))
        found = [*islice(filter(accepts, (facts[at] for at in range(start, len(facts)))), limit + 1)]
        more = found[limit - 1].id if len(found) > limit else None
        return FactPage(tuple(found[:limit]), more, snapshot.revision, problems)

    def readable_snapshot(self, scope: Scope) -> tuple[Snapshot, tuple[Problem, ...]]:
        """Returns the facts of a scope that can be read, and what is wrong with each of the others."""
        nothing: tuple[Snapshot, tuple[Problem, ...]] = (Snapshot.of(scope, NO_MANIFEST, ()), ())
        return self._read(scope.user, lambda view: view.readable_facts(scope), nothing)

    def get_manifest(self, user_id: str | None) -> Manifest:
        """Returns the revision and the summaries of a user."""
        return self._read(self._user(user_id), lambda view: view.manifest, NO_MANIFEST)

    def get_summaries(self, user_id: str | None) -> Summaries:
        """Returns the summaries of a user."""
        return self.get_manifest(user_id).summaries

    def list_agents(self, user_id: str | None) -> tuple[AgentName, ...]:
        """Returns the agents that have a directory for facts, sorted."""
        return self._read(self._user(user_id), lambda view: view.agents(), ())

    def agent_entries(self, user_id: str | None) -> tuple[AgentEntry, ...]:
        """Returns the agents that are custom ones or have facts, sorted, with how many facts each has.

        Raises:
            Corruption: A directory or a link lies where a fact should be.
        """
        return self._read(self._user(user_id), lambda view: view.agent_entries(), ())

    def snapshot_since(self, scope: Scope, revision: int) -> Snapshot:
        """Returns a snapshot at this revision or a later one.

        If the scope was cached before a commit of this store, the revision of that commit costs no read,
        so nothing can fail any more.
        """
        return self.engine.cache.since(scope, revision) or self.snapshot(scope)

    def parse_user(self, user_id: str | None) -> UserId:
        """Returns a user that this store may work on.

        Raises:
            InvalidInputError: The id breaks a rule, or there is none and the store wants one.
        """
        return self._user(user_id)

    def cleared_at(self, scope: Scope) -> int:
        """Returns the manifest revision of the scope's last clear, 0 if it was never cleared.

        What was made of an older revision must not be written any more (guarantee G7). Erasing the user
        counts.
        """
        erased = erased_at(self.engine.file_system, scope.user)
        return max(erased, self._read(scope.user, lambda view: view.cleared_at(scope.agent), 0))

    def list_users(self) -> tuple[str, ...]:
        """Returns the bucket names of all users, sorted; the raw id of an encoded one is unknown."""
        return list_buckets(self.engine.file_system)

    def reload(self, scope: Scope, *, accept_root: bool = True) -> Snapshot:
        """Forgets what is cached of a user and reads again; edits made by hand are seen then.

        Args:
            scope: What to read.
            accept_root: Whether another file system may lie at the storage root than before. That is for
                all users: whoever acts for one of them must not say so.
        """
        self.engine.cache.forget_user(scope.user)
        if accept_root:
            self.engine.file_system.accept_root()
        self._indexer.mark_stale(scope.user)
        return self.snapshot(scope)

    def search_facts(
        self,
        query: str,
        scopes: Iterable[Scope],
        *,
        top_k: int = DEFAULT_TOP_K,
        mode: str = DEFAULT_MODE,
        filters: Mapping[str, object] = NO_FILTERS,
    ) -> list[Hit]:
        """Finds facts by the retrieval adapter, or by substring, the best confidence first."""
        return self._indexer.search(query, scopes, top_k=top_k, mode=mode, filters=filters)

    def clear_index(self, scopes: Iterable[Scope]) -> None:
        """Has the retrieval adapter forget these scopes, whatever is stored.

        Raises:
            SearchIndexError: It did not.
        """
        self._indexer.clear(scopes)

    def rebuild_index(self, scopes: Iterable[Scope]) -> RebuildReport:
        """Makes the retrieval adapter hold exactly the facts of these scopes."""
        return self._indexer.rebuild(scopes)
