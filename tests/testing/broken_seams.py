"""Storages that each break one rule of the contract: the seams."""

# ruff: noqa: ARG002 - what a broken storage is told, it may ignore

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deermem import (
    ChangeSet,
    Delta,
    InvalidInputError,
    MemoryRepository,
    Scope,
    Summaries,
    UserId,
    View,
)
from deermem.repository import FactPage
from deermem.storage.transaction import Committed
from deermem.testing.storage_seam_contract import Refused
from tests.testing.planted import Planted

BROKEN: Planted[type[MemoryRepository]] = Planted()
breaks = BROKEN.breaks


@breaks(
    "test_every_write_passes_before_a_commit_and_after_it",
    also=["test_a_commit_that_is_refused_writes_nothing"],
)
class AdoptsPastItself(MemoryRepository):
    def adopt_fact(self, scope: Scope, fact_id: str) -> Delta:
        if fact_id != "both":
            return super().adopt_fact(scope, fact_id)
        with MemoryRepository(self.storage_root) as storage:
            return storage.adopt_fact(scope, fact_id)


@breaks("test_a_commit_that_is_refused_writes_nothing")
class InsistsOnAnImport(MemoryRepository):
    def replace_all(self, scope: Scope, drafts: Any, summaries: Summaries) -> Delta:
        wanted = list(drafts)
        try:
            return super().replace_all(scope, wanted, summaries)
        except Refused:
            with MemoryRepository(self.storage_root) as storage:
                return storage.replace_all(scope, wanted, summaries)


@breaks("test_a_write_that_changes_nothing_is_not_told")
class TellsOfEverything(MemoryRepository):
    def _announce(self, user: UserId, committed: Committed) -> Delta:
        delta = super()._announce(user, committed)
        if committed.image is committed.base:
            self.after_commit(user, delta)
        return delta


@breaks("test_a_read_that_is_refused_shows_nothing")
class ListsAllTheSame(MemoryRepository):
    def list_facts(self, scope: Scope, **options: Any) -> FactPage:
        try:
            return super().list_facts(scope, **options)
        except Refused:
            return FactPage((), None, 0)


@breaks("test_its_own_before_commit_may_run_again")
class RefusesWhatItHasSeen(MemoryRepository):
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.seen: set[str] = set()

    def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:
        texts = {each.draft.content for each in changes.upserts if each.draft.id == "new"}
        if view.manifest.revision == 0 and not texts.isdisjoint(self.seen):
            raise InvalidInputError("content", "was seen before")
        self.seen |= texts
        return changes


@breaks("test_its_own_before_commit_keeps_what_callers_rely_on")
class LetsOldWritersBack(MemoryRepository):
    def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:
        return replace(changes, fences_all=False)


@breaks("test_its_own_after_commit_raises_nothing")
class CannotTellOfAClear(MemoryRepository):
    def after_commit(self, user: UserId, delta: Delta) -> None:
        if delta.cleared:
            raise ConnectionError("the log is down")
