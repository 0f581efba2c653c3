"""The indexer: keeps a retrieval adapter beside the store, and searches with it or without."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from deermem.errors import SearchIndexError
from deermem.model.changes import Delta
from deermem.model.identity import AgentName, Scope, UserId
from deermem.model.rules import check_text
from deermem.model.snapshot import Snapshot
from deermem.search.filters import fact_filter
from deermem.search.follower import Follower, LoadAll, View, load_together
from deermem.search.guarded import GuardedAdapter, index_scope
from deermem.search.port import DEFAULT_MODE, DEFAULT_TOP_K, NO_FILTERS, AdapterHit, Hit, RetrievalAdapter
from deermem.search.substring import check_query, check_top_k, substring_search

PATIENCE_SECONDS: Final = 5.0
MAX_USERS: Final = 10_000
_TRIES_TO_SEE_ONE_STATE: Final = 3


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """Tells what came of a rebuild, counted in facts; `reason` is empty when all went well."""

    supported: bool
    indexed: int = 0
    failed: int = 0
    reason: str = ""


class Indexer:
    """Searches facts, with an adapter that is told of every commit or, without one, by substring.

    Safe to share between threads. An adapter is called while no lock is held and may use the store
    that it serves. A search waits for other threads' calls at most `patience` seconds and then goes
    by substring; searches that an adapter makes from inside its own calls always do.

    Args:
        adapter: The index, or `None`.
        load: Reads one scope; called while no lock is held. What it raises, a search raises.
        load_all: Reads several scopes of one user at one revision. Without it they are read one by
            one, and again if a commit came in between, which under many commits may go on failing:
            then the facts found are of more than one revision.
        patience: How many seconds a search, a rebuild and `close` wait for calls of other threads.
        max_users: Of how many users it is remembered what the index shows. The scopes of others are
            rebuilt when they are searched.
    """

    def __init__(
        self,
        adapter: RetrievalAdapter | None,
        load: Callable[[Scope], Snapshot],
        *,
        load_all: LoadAll | None = None,
        patience: float = PATIENCE_SECONDS,
        max_users: int = MAX_USERS,
    ) -> None:
        self._load_all = load_all or partial(load_together, load)
        guarded = None if adapter is None else GuardedAdapter(adapter)
        self._follower = None if guarded is None else Follower(guarded, self._load_all, patience, max_users)

    def committed(self, user: UserId, delta: Delta) -> None:
        """Tells the adapter of a commit; to be called after the locks are released.

        Call it for every commit, also for one of summaries alone, and for nothing else: a change that
        came to nothing reports a revision that may be another process's. What the adapter raises
        stays here: the scope becomes stale. While another thread is telling commits of this user, it
        tells this one too.
        """
        if self._follower is not None:
            self._follower.committed(user, delta)

    def search(
        self,
        query: str,
        scopes: Iterable[Scope],
        *,
        top_k: int = DEFAULT_TOP_K,
        mode: str = DEFAULT_MODE,
        filters: Mapping[str, object] = NO_FILTERS,
    ) -> list[Hit]:
        """Finds facts of these scopes, best first; in no scope there is nothing to find.

        Stale scopes are rebuilt first. If the adapter fails, the substring search answers. The facts
        found are those of one committed state of each user.

        Raises:
            InvalidInputError: The query, the limit, the mode or a filter breaks its rule.
        """
        query, top_k, mode = check_query(query), check_top_k(top_k), check_text("mode", mode)
        fact_filter(filters)
        filters = MappingProxyType(dict(filters))
        question = _Question(query, top_k, mode, filters)
        snapshots, hits = self._consult(_by_user(scopes), question)
        return substring_search(snapshots, query, top_k, filters) if hits is None else hits

    def rebuild(self, scopes: Iterable[Scope]) -> RebuildReport:
        """Replaces what the index holds of these scopes by what the store holds."""
        if self._follower is None:
            return RebuildReport(supported=False, reason="no retrieval adapter is configured")
        with self._follower.at_work() as adapter:
            if adapter is None:
                return RebuildReport(
                    supported=True, reason="the retrieval adapter is closed or is the caller"
                )
            reports = [
                _report(self._follower.bring_up_to_date(group, everything=True)) for group in _by_user(scopes)
            ]
        return RebuildReport(
            supported=True,
            indexed=sum(report.indexed for report in reports),
            failed=sum(report.failed for report in reports),
            reason=next((report.reason for report in reports if report.reason), ""),
        )

    def clear(self, scopes: Iterable[Scope]) -> None:
        """Has the index forget these scopes; they are rebuilt before they are searched again.

        Raises:
            SearchIndexError: It did not, or not all.
        """
        if self._follower is None:
            return
        for group in _by_user(scopes):
            reason = self._follower.clear(group)
            if reason:
                raise SearchIndexError(self._follower.name, f"did not forget {group[0].user} ({reason})")

    def mark_stale(self, user: UserId | None = None) -> None:
        """Has the scopes of one user, or of all, rebuilt before their next search.

        For changes that were no commits, such as edits by hand: call it when reads show them.
        """
        if self._follower is not None:
            self._follower.mark_stale(user)

    def close(self) -> None:
        """Closes the adapter once, after the calls that are under way; searches go on by substring."""
        if self._follower is not None:
            self._follower.close()

    def _consult(
        self, groups: Sequence[Sequence[Scope]], question: _Question
    ) -> tuple[Sequence[Snapshot], list[Hit] | None]:
        """Returns what is stored and what the adapter finds of it; `None` if there is no asking it.

        It is asked again if the index followed a commit meanwhile: it may have found what is not in
        the snapshots, and not what is.
        """
        if self._follower is not None:
            with self._follower.at_work() as adapter:
                if adapter is not None:
                    answer = _ask(self._follower, adapter, groups, question)
                    for _ in range(_TRIES_TO_SEE_ONE_STATE - 1):
                        if answer.hits is None or self._follower.still_shows(answer.snapshots):
                            break
                        answer = _ask(self._follower, adapter, groups, question)
                    return answer.snapshots, answer.hits
        return [each for group in groups for each in self._load_all(group)], None


@dataclass(frozen=True, slots=True)
class _Question:
    query: str
    top_k: int
    mode: str
    filters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Answer:
    """Holds what is stored in the scopes asked for, and what was found of it, if it could be asked."""

    snapshots: Sequence[Snapshot]
    hits: list[Hit] | None = None


def _ask(
    follower: Follower, adapter: GuardedAdapter, groups: Sequence[Sequence[Scope]], question: _Question
) -> _Answer:
    views = [follower.bring_up_to_date(group) for group in groups]
    snapshots = [snapshot for view in views for snapshot in view.snapshots]
    if not snapshots or any(view.reason for view in views):
        return _Answer(snapshots)
    scopes = [index_scope(snapshot.scope) for snapshot in snapshots]
    found = adapter.search(question.query, scopes, question.top_k, question.mode, question.filters)
    for group in groups:
        follower.catch_up(group[0].user)  # an adapter may write from inside its search
    if found is None:
        follower.suspect(snapshots, even_if_newer=True)
        return _Answer(snapshots)
    hits, doubtful = _confirm(found, snapshots, question.filters)
    follower.suspect(doubtful, even_if_newer=False)
    return _Answer(snapshots, hits[: question.top_k])


def _by_user(scopes: Iterable[Scope]) -> list[list[Scope]]:
    """Sorts scopes into groups of one user each; a scope that is named twice is searched once."""
    groups: dict[str | None, dict[AgentName, Scope]] = {}
    for scope in scopes:
        groups.setdefault(scope.user.bucket, {}).setdefault(scope.agent, scope)
    return [list(group.values()) for group in groups.values()]


def _confirm(
    found: Iterable[AdapterHit], snapshots: Sequence[Snapshot], filters: Mapping[str, object]
) -> tuple[list[Hit], list[Snapshot]]:
    """Looks up what an adapter found, and keeps what was asked for and is there.

    Returns:
        The hits, and the snapshots without a fact that the index shows.
    """
    asked = {index_scope(snapshot.scope): snapshot for snapshot in snapshots}
    accepts = fact_filter(filters)
    hits: dict[tuple[Scope, str], Hit] = {}
    doubtful: dict[Scope, Snapshot] = {}
    for hit in found:
        snapshot = asked.get(hit.scope)
        if snapshot is None:
            continue
        fact = snapshot.by_id.get(hit.fact_id)
        if fact is None:
            doubtful[hit.scope] = snapshot
        elif accepts(fact):
            hits.setdefault((hit.scope, hit.fact_id), Hit(fact, float(hit.score), hit.match_type))
    return list(hits.values()), list(doubtful.values())


def _report(view: View) -> RebuildReport:
    failed = sum(len(each.facts) for each in view.snapshots if each.scope.agent in view.failed)
    indexed = sum(len(each.facts) for each in view.snapshots) - failed
    return RebuildReport(supported=True, indexed=indexed, failed=failed, reason=view.reason)
