"""The repository: facts and summaries of many users, and every operation on them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from deermem.errors import FactNotFoundError, InvalidInputError, ManifestConflict
from deermem.format.layout import DEFAULT_MANIFEST
from deermem.model import plans
from deermem.model.changes import (
    ABSENT,
    ANYTHING,
    AtRevision,
    ChangeSet,
    Delete,
    Delta,
    Precondition,
    Unchanged,
    Upsert,
)
from deermem.model.fact import Fact, FactDraft
from deermem.model.identity import AgentName, FactId, Scope, UserId, parse_fact_id
from deermem.model.manifest import NO_MANIFEST, Manifest
from deermem.model.snapshot import Snapshot
from deermem.model.summaries import Summaries, SummaryPatch
from deermem.search.filters import fact_filter
from deermem.search.indexer import Indexer, RebuildReport
from deermem.search.loading import load_adapter
from deermem.search.port import DEFAULT_MODE, DEFAULT_TOP_K, NO_FILTERS, Hit, RetrievalAdapter
from deermem.storage.cache import DEFAULT_CACHE_BYTES
from deermem.storage.engine import DEFAULT_LOCK_TIMEOUT, Engine
from deermem.storage.filesystem import LocalFileSystem
from deermem.storage.journal import DEFAULT_INLINE_LIMIT
from deermem.storage.port import FileSystem
from deermem.storage.users import list_buckets
from deermem.storage.view import Problem, View

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1_000
MAX_PLAN_TRIES: Final = 3

Expected = int | Fact | None
T = TypeVar("T")


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


class MemoryRepository:
    """Stores facts and summaries below one storage root.

    Safe to use from several threads, processes and hosts at once. Every write is one transaction:
    when it returns, it survives loss of power; when it raises, nothing of it is visible
    (`CommitInDoubt` is the exception that says so).

    Args:
        storage: The storage root, or a `FileSystem`.
        clock: Returns the time, with a zone.
        new_token: Returns 32 hex digits that were never returned before.
        lock_timeout: How long a writer waits for its turn, in seconds.
        manifest_filename: The name of the summary file.
        cache_bytes: How much of what was read is kept, as an estimate in bytes; 0 keeps nothing.
        inline_limit: How many bytes of images a journal may hold.
        retrieval_adapter: A search index, or its entry point or dotted path.
        strict_user_scope: Refuse `user_id=None`, the one user of a store without users.

    Raises:
        InvalidInputError: The root is a file, or a setting breaks its rule.
    """

    def __init__(
        self,
        storage: str | os.PathLike[str] | FileSystem,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_token: Callable[[], str] = lambda: secrets.token_hex(16),
        lock_timeout: float = DEFAULT_LOCK_TIMEOUT,
        manifest_filename: str = DEFAULT_MANIFEST,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        inline_limit: int = DEFAULT_INLINE_LIMIT,
        retrieval_adapter: RetrievalAdapter | str | None = None,
        strict_user_scope: bool = False,
    ) -> None:
        file_system = LocalFileSystem(storage) if isinstance(storage, str | os.PathLike) else storage
        self._engine = Engine(
            file_system,
            clock=clock,
            new_token=new_token,
            lock_timeout=lock_timeout,
            manifest_name=manifest_filename,
            cache_bytes=cache_bytes,
            inline_limit=inline_limit,
        )
        if isinstance(retrieval_adapter, str):
            retrieval_adapter = load_adapter(retrieval_adapter)
        self._indexer = Indexer(retrieval_adapter, self.snapshot)
        self._new_token = new_token
        self._strict = strict_user_scope

    @property
    def storage_root(self) -> str:
        """The storage root as an absolute path."""
        return self._engine.file_system.root

    def new_fact_id(self) -> FactId:
        """Returns an id that no fact has."""
        return FactId(f"fact_{self._new_token()[:16]}")

    # Reads

    def snapshot(self, scope: Scope) -> Snapshot:
        """Returns all facts of a scope and the summaries, at one revision.

        A user about whom nothing was stored reads as revision 0 without facts; nothing is written.

        Raises:
            Corruption: One of the files cannot be trusted.
        """
        empty = Snapshot.of(scope, NO_MANIFEST, ())
        return self._read(scope.user, lambda view: view.snapshot(scope), empty)

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
        problems: tuple[Problem, ...] = ()
        if skip_corrupt:
            nothing = (Snapshot.of(scope, NO_MANIFEST, ()), problems)
            snapshot, problems = self._read(scope.user, lambda view: view.readable_facts(scope), nothing)
        else:
            snapshot = self.snapshot(scope)
        after = "" if cursor is None else parse_fact_id(cursor)
        found = [fact for fact in snapshot.facts if fact.id > after and accepts(fact)]
        more = found[limit - 1].id if len(found) > limit else None
        return FactPage(tuple(found[:limit]), more, snapshot.revision, problems)

    def get_manifest(self, user_id: str | None) -> Manifest:
        """Returns the revision and the summaries of a user."""
        return self._read(self._user(user_id), lambda view: view.manifest, NO_MANIFEST)

    def get_summaries(self, user_id: str | None) -> Summaries:
        """Returns the summaries of a user."""
        return self.get_manifest(user_id).summaries

    def list_agents(self, user_id: str | None) -> tuple[AgentName, ...]:
        """Returns the agents that have a directory for facts, sorted."""
        return self._read(self._user(user_id), lambda view: view.agents(), ())

    def list_users(self) -> tuple[str, ...]:
        """Returns the bucket names of all users, sorted; the raw id of an encoded one is unknown."""
        return list_buckets(self._engine.file_system)

    def reload(self, scope: Scope) -> Snapshot:
        """Forgets what is cached of a user and reads again; edits made by hand are seen then."""
        self._engine.cache.forget_user(scope.user)
        self._indexer.mark_stale(scope.user)
        return self.snapshot(scope)

    # Point operations

    def upsert_fact(
        self,
        scope: Scope,
        draft: FactDraft,
        *,
        expected: Expected = None,
        expected_manifest_revision: int | None = None,
    ) -> Delta:
        """Writes one fact.

        Args:
            scope: Where the fact lives.
            draft: What it should say; without an id it gets a new one.
            expected: `None`: the fact must not exist. A number: it must be at this revision. A fact:
                it must be this very fact, unchanged.
            expected_manifest_revision: The revision of `memory.json` that the change is based on. A
                stale one is accepted if the fact is as expected and the scope was not cleared since.

        Raises:
            FactConflict: The fact is not as expected.
            ManifestConflict: The scope was cleared since the base revision.
        """
        upsert = Upsert(scope.agent, self._identified(draft), _precondition(expected, ABSENT))
        changes = ChangeSet(
            upserts=(upsert,), expected_manifest_revision=expected_manifest_revision, may_rebase=True
        )
        return self._commit(scope.user, lambda _: changes)

    def edit_fact(
        self, scope: Scope, fact_id: str, changes: Mapping[str, Any], *, expected: Expected = None
    ) -> Delta:
        """Changes some fields of a fact, whatever the others are at that moment.

        Args:
            scope: Where the fact lives.
            fact_id: Which fact.
            changes: Fields of `FactDraft` by name.
            expected: As in `upsert_fact`, but `None` expects only that the fact exists.

        Raises:
            FactNotFoundError: There is no such fact.
            FactConflict: The fact is not as expected, or was edited by hand.
        """
        wanted = parse_fact_id(fact_id)

        def decide(view: View) -> ChangeSet:
            fact = view.fact(scope, wanted)
            if fact is None:
                raise FactNotFoundError(wanted)
            condition = _precondition(expected, Unchanged(fact))
            return ChangeSet(upserts=(Upsert(scope.agent, fact.draft(**changes), condition),))

        return self._commit(scope.user, decide)

    def adopt_fact(self, scope: Scope, fact_id: str) -> Delta:
        """Makes a commit, with a new revision, of a fact as it was edited by hand.

        Raises:
            FactNotFoundError: There is no such fact.
            Corruption: The edited file cannot be read.
        """
        wanted = parse_fact_id(fact_id)
        self._engine.cache.forget(scope)

        def decide(view: View) -> ChangeSet:
            fact = view.fact(scope, wanted)
            if fact is None:
                raise FactNotFoundError(wanted)
            return ChangeSet(upserts=(Upsert(scope.agent, fact.draft(), Unchanged(fact), renew=True),))

        return self._commit(scope.user, decide)

    def delete_fact(
        self,
        scope: Scope,
        fact_id: str,
        *,
        expected: Expected = None,
        expected_manifest_revision: int | None = None,
    ) -> Delta:
        """Deletes one fact; an absent one is no error unless something is expected of it.

        Raises:
            FactConflict: The fact is not as expected.
            ManifestConflict: The scope was cleared since the base revision.
        """
        delete = Delete(scope.agent, parse_fact_id(fact_id), _precondition(expected, ANYTHING))
        changes = ChangeSet(
            deletes=(delete,),
            expected_manifest_revision=expected_manifest_revision,
            may_rebase=expected is not None,
        )
        return self._commit(scope.user, lambda _: changes)

    def apply_changes(self, user_id: str | None, changes: ChangeSet) -> Delta:
        """Commits several changes of one user as one transaction.

        Returns:
            What changed, not the whole memory: a caller that promises a full document reads again.

        Raises:
            RevisionConflict: A precondition does not hold; nothing was written.
        """
        upserts = tuple(replace(upsert, draft=self._identified(upsert.draft)) for upsert in changes.upserts)
        identified = replace(changes, upserts=upserts)
        return self._commit(self._user(user_id), lambda _: identified)

    def update_summaries(
        self,
        user_id: str | None,
        patch: SummaryPatch | Mapping[str, Any],
        *,
        expected_manifest_revision: int | None = None,
    ) -> Delta:
        """Replaces the summaries that the patch names; the others stay (plan section 8).

        Raises:
            InvalidInputError: The patch names an unknown summary or has a value of the wrong shape.
            ManifestConflict: `memory.json` is not at the expected revision.
        """
        parsed = patch if isinstance(patch, SummaryPatch) else SummaryPatch.parse(patch)
        changes = ChangeSet(summaries=parsed, expected_manifest_revision=expected_manifest_revision)
        return self._commit(self._user(user_id), lambda _: changes)

    # Operations that depend on all facts of a scope

    def create_fact(
        self, scope: Scope, draft: FactDraft, *, max_facts: int | None = None
    ) -> tuple[Delta, FactId | None]:
        """Adds a fact unless its text is there already, and keeps the cap.

        Returns:
            What changed, and the new fact's id, `None` when the cap evicted the new fact itself.

        Raises:
            DuplicateFact: The scope holds the same text.
        """
        identified = self._identified(draft)
        _check_cap(max_facts)
        now = self._engine.now()
        delta = self._commit(
            scope.user, lambda view: plans.create(view.snapshot(scope), identified, now, max_facts)
        )
        return delta, identified.id if delta.written else None

    def clear(self, scope: Scope) -> Delta:
        """Deletes all facts of a scope; no writer that read before can bring one back."""
        changes = ChangeSet(clears=frozenset([scope.agent]))
        return self._commit(scope.user, lambda _: changes)

    def clear_all(self, user_id: str | None) -> Delta:
        """Deletes all facts of all agents of a user, and the summaries, in one transaction."""
        everything = ChangeSet(clear_all=True, summaries=SummaryPatch.replace_all(NO_MANIFEST.summaries))
        return self._commit(self._user(user_id), lambda _: everything)

    def trim(self, scope: Scope, max_facts: int) -> Delta:
        """Deletes the facts that a cap evicts: the highest confidence stays."""
        _check_cap(max_facts)
        return self._commit(scope.user, lambda view: plans.trim(view.snapshot(scope), max_facts))

    def consolidate(self, scope: Scope, fact_ids: Iterable[str], draft: FactDraft) -> Delta:
        """Replaces several facts by one that names them in `consolidatedFrom`.

        Raises:
            FactNotFoundError: One of the facts is not there; nothing was written.
        """
        wanted = [parse_fact_id(fact_id) for fact_id in fact_ids]
        merged = self._identified(draft)
        return self._commit(
            scope.user, lambda view: plans.consolidate(view.snapshot(scope), wanted, merged)
        )

    def replace_all(self, scope: Scope, drafts: Iterable[FactDraft], summaries: Summaries) -> Delta:
        """Sets the facts of a scope and the user's summaries to those given (import)."""
        identified = [self._identified(draft) for draft in drafts]
        return self._commit(
            scope.user, lambda view: plans.replace_all(view.snapshot(scope), identified, summaries)
        )

    def run(self, scope: Scope, plan: plans.Plan) -> Delta:
        """Commits what a plan makes of the scope's facts, and computes it anew after a conflict.

        The plan runs without a lock and may take its time; it may run up to three times.

        Raises:
            ManifestConflict: Other writers came first three times; nothing was written.
        """
        for remaining in reversed(range(MAX_PLAN_TRIES)):
            snapshot = self.snapshot(scope)
            changes = replace(
                plan(snapshot), expected_manifest_revision=snapshot.revision, may_rebase=False
            )
            try:
                return self.apply_changes(scope.user.raw, changes)
            except ManifestConflict:
                if not remaining:
                    raise
        raise AssertionError("unreachable")

    # Search

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

    def rebuild_index(self, scopes: Iterable[Scope]) -> RebuildReport:
        """Makes the retrieval adapter hold exactly the facts of these scopes."""
        return self._indexer.rebuild(scopes)

    def close(self) -> None:
        """Forgets what is cached and closes the retrieval adapter."""
        self._indexer.close()
        self._engine.cache.clear()

    def __enter__(self) -> MemoryRepository:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _user(self, user_id: str | None) -> UserId:
        return self._allowed(UserId.parse(user_id))

    def _allowed(self, user: UserId) -> UserId:
        if self._strict and user.raw is None:
            raise InvalidInputError("user_id", "is required")
        return user

    def _identified(self, draft: FactDraft) -> FactDraft:
        return draft if draft.id is not None else draft.with_id(self.new_fact_id())

    def _read(self, user: UserId, work: Callable[[View], T], absent: T) -> T:
        return self._engine.read(self._allowed(user), work, absent=absent)

    def _commit(self, user: UserId, decide: Callable[[View], ChangeSet]) -> Delta:
        committed = self._engine.commit(self._allowed(user), decide)
        resolution = committed.resolution
        delta = Delta(
            revision=resolution.manifest.revision,
            last_updated=resolution.manifest.last_updated,
            written=resolution.written,
            unchanged=resolution.unchanged,
            deleted=resolution.deleted,
            cleared=resolution.cleared,
        )
        if committed.image is not committed.base:
            self._indexer.committed(user, delta)
        return delta


def _precondition(expected: Expected, otherwise: Precondition) -> Precondition:
    if expected is None:
        return otherwise
    if isinstance(expected, Fact):
        return Unchanged(expected)
    if isinstance(expected, bool) or not isinstance(expected, int) or expected < 1:
        raise InvalidInputError("expected", "must be a fact or a revision of at least 1")
    return AtRevision(expected)


def _check_cap(max_facts: int | None) -> None:
    if max_facts is not None and (isinstance(max_facts, bool) or max_facts < 1):
        raise InvalidInputError("max_facts", "must be an integer of at least 1")
