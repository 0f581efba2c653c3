"""Storages that each break one rule of the contract: operations on all facts, plans and agents."""

# ruff: noqa: ARG002 - what a broken storage is told, it may ignore

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from deermem import (
    ChangeSet,
    Delta,
    FactDraft,
    ManifestConflict,
    MemoryRepository,
    Scope,
    Summaries,
)
from deermem.model import plans
from deermem.model.identity import FactId, UserId
from deermem.storage.view import View
from deermem.testing.storage_samples import HERE, OTHER_USER, bucket_of
from tests.testing.planted import Planted

BROKEN: Planted[type[MemoryRepository]] = Planted()
breaks = BROKEN.breaks


@breaks("test_the_same_text_is_not_created_twice")
class ComparesTextsByCase(MemoryRepository):
    def create_fact(
        self, scope: Scope, draft: FactDraft, *, max_facts: int | None = None
    ) -> tuple[Delta, FactId | None]:
        if max_facts is not None:
            return super().create_fact(scope, draft, max_facts=max_facts)
        delta = self.upsert_fact(scope, draft)
        return delta, delta.written[0].id


@breaks("test_a_cap_evicts_the_fact_that_is_least_sure")
class EvictsTheFirstFact(MemoryRepository):
    def create_fact(
        self, scope: Scope, draft: FactDraft, *, max_facts: int | None = None
    ) -> tuple[Delta, FactId | None]:
        present = self.snapshot(scope).facts
        if max_facts == 3 and len(present) == 3:
            self.delete_fact(scope, present[0].id)
        return super().create_fact(scope, draft, max_facts=max_facts)


@breaks("test_a_new_fact_that_the_cap_evicts_has_no_id")
class TellsAnIdInAnyCase(MemoryRepository):
    def create_fact(
        self, scope: Scope, draft: FactDraft, *, max_facts: int | None = None
    ) -> tuple[Delta, FactId | None]:
        delta, fact_id = super().create_fact(scope, draft, max_facts=max_facts)
        return delta, fact_id or self.new_fact_id()


@breaks("test_a_clear_empties_one_agent_and_no_other")
class ClearsTheSummariesToo(MemoryRepository):
    def clear(self, scope: Scope) -> Delta:
        super().update_summaries(scope.user.raw, {"user": {"topOfMind": ""}})
        return super().clear(scope)


@breaks("test_clear_all_empties_one_user_and_no_other")
class ClearsTheDefaultAgentOnly(MemoryRepository):
    def clear_all(self, user_id: str | None) -> Delta:
        return super().clear(HERE) if self.snapshot(OTHER_USER).facts else super().clear_all(user_id)


@breaks("test_the_revision_of_the_last_clear_is_told")
class ForgetsWhenItCleared(MemoryRepository):
    def cleared_at(self, scope: Scope) -> int:
        return 0


@breaks("test_what_a_clear_deleted_can_be_taken_back")
class KeepsNoSafetyCopies(MemoryRepository):
    def __init__(self, root: Path, **settings: Any) -> None:
        super().__init__(root, **{**settings, "undo_days": 0})


@breaks(
    "test_a_trim_keeps_the_facts_that_are_surest",
    also=["test_every_write_passes_before_a_commit_and_after_it"],
)
class TrimsByAge(MemoryRepository):
    def trim(self, scope: Scope, max_facts: int) -> Delta:
        delta = None
        for fact in self.snapshot(scope).facts[max_facts:]:
            delta = self.delete_fact(scope, fact.id)
        assert delta
        return delta


@breaks(
    "test_a_consolidation_replaces_facts_by_one_that_names_them",
    also=["test_every_write_passes_before_a_commit_and_after_it"],
)
class ConsolidatesWithoutOrigins(MemoryRepository):
    def consolidate(self, scope: Scope, fact_ids: Iterable[str], draft: FactDraft) -> Delta:
        for fact_id in fact_ids:
            self.delete_fact(scope, fact_id)
        return self.upsert_fact(scope, draft)


@breaks("test_an_import_replaces_facts_and_summaries")
class ImportsByAdding(MemoryRepository):
    def replace_all(self, scope: Scope, drafts: Iterable[FactDraft], summaries: Summaries) -> Delta:
        present = [fact.draft().with_id(fact.id) for fact in self.snapshot(scope).facts if fact.id == "gone"]
        return super().replace_all(scope, [*drafts, *present], summaries)


@breaks("test_an_export_that_is_imported_elsewhere_says_the_same")
class ImportsWithoutUnknownKeys(MemoryRepository):
    def replace_all(self, scope: Scope, drafts: Iterable[FactDraft], summaries: Summaries) -> Delta:
        return super().replace_all(scope, [replace(draft, extra=()) for draft in drafts], summaries)


@breaks(
    "test_a_plan_is_made_anew_after_a_conflict",
    also=["test_a_plan_that_is_always_overtaken_is_given_up"],
)
class ReplaysOldPlans(MemoryRepository):
    def run(self, scope: Scope, plan: plans.Plan) -> Delta:
        return self.apply_changes(scope.user.raw, plan(self.snapshot(scope)))


@breaks("test_a_plan_that_is_always_overtaken_is_given_up")
class WritesAfterTheLastTry(MemoryRepository):
    def run(self, scope: Scope, plan: plans.Plan) -> Delta:
        try:
            return super().run(scope, plan)
        except ManifestConflict:
            return self.apply_changes(scope.user.raw, plan(self.snapshot(scope)))


@breaks("test_a_custom_agent_is_deleted_with_what_it_owns")
class LeavesTheConfiguration(MemoryRepository):
    def delete_agent(self, scope: Scope) -> Delta | None:
        path = bucket_of(self) / "agents" / scope.agent / "config.yaml"
        text = path.read_text("utf-8") if path.exists() else ""
        delta = super().delete_agent(scope)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        return delta


@breaks("test_an_agent_with_memories_alone_is_preserved")
class DeletesAnyAgent(MemoryRepository):
    def delete_agent(self, scope: Scope) -> Delta | None:
        if self.snapshot(scope).facts:
            path = bucket_of(self) / "agents" / scope.agent / "config.yaml"
            path.write_text("", "utf-8")
        return super().delete_agent(scope)


@breaks("test_an_agent_that_is_not_there_cannot_be_deleted")
class DeletesUnknownAgentsGladly(MemoryRepository):
    def delete_agent(self, scope: Scope) -> Delta | None:
        return super().delete_agent(scope) if (bucket_of(self) / "agents" / scope.agent).is_dir() else None


@breaks("test_maintenance_commits_through_the_storage")
class CommitsNothingForMaintenance(MemoryRepository):
    def commit(self, user: UserId, decide: Callable[[View], ChangeSet], *, supersedes: bool = False) -> Delta:
        def nothing(view: View) -> ChangeSet:
            changes = decide(view)
            ids = [upsert.draft.id for upsert in changes.upserts]
            first = view.manifest.revision == 0
            return ChangeSet() if first and ids == ["x"] and changes.summaries else changes

        return super().commit(user, nothing, supersedes=supersedes)
