"""Storages that each break one rule of the contract: places, files of others, and version 1."""

# ruff: noqa: ARG002 - what a broken storage is told, it may ignore

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deermem import (
    Corruption,
    Delta,
    Fact,
    FactDraft,
    MemoryRepository,
    Scope,
    Snapshot,
    Summaries,
)
from deermem.model.identity import AgentName
from deermem.model.manifest import Manifest
from deermem.repository import MigrationReport
from deermem.testing.storage_samples import HERE, bucket_of, fact_file
from tests.testing.planted import Planted

BROKEN: Planted[type[MemoryRepository]] = Planted()
breaks = BROKEN.breaks


def _merged(scope: Scope, into: Mapping[str, str]) -> Scope:
    bucket = into.get(str(scope.user))
    return scope if bucket is None else Scope.of(bucket)


@breaks("test_users_whose_names_look_alike_are_apart")
class ReplacesCharacters(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        return super().upsert_fact(_merged(scope, {"a b c": "a-b c"}), draft, **expected)


@breaks("test_agents_of_one_user_are_apart")
class TakesDefaultForTheDefaultAgent(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        known = scope if scope.agent != "default" else replace(scope, agent=AgentName("default-agent"))
        return super().upsert_fact(known, draft, **expected)


@breaks("test_summaries_belong_to_the_user_and_not_to_an_agent")
class HidesSummariesFromAgents(MemoryRepository):
    def snapshot(self, scope: Scope) -> Snapshot:
        found = super().snapshot(scope)
        if scope.agent == HERE.agent or not found.revision:
            return found
        empty = Manifest(found.revision, found.manifest.last_updated, Summaries.of({}), ())
        return Snapshot.of(scope, empty, found.facts)


@breaks("test_agents_and_users_are_listed")
class ListsUsersAnyhow(MemoryRepository):
    def list_agents(self, user_id: str | None) -> tuple[AgentName, ...]:
        return tuple(reversed(super().list_agents(user_id)))


@breaks("test_a_file_that_cannot_be_read_is_an_error_and_stays")
class SetsDamagedFilesAside(MemoryRepository):
    def get_fact(self, scope: Scope, fact_id: str) -> Fact | None:
        try:
            return super().get_fact(scope, fact_id)
        except Corruption:
            path = fact_file(self, fact_id, scope)
            path.rename(path.with_suffix(".bad"))
            raise


@breaks("test_an_edit_by_hand_is_seen_after_a_reload")
class ReloadsFromMemory(MemoryRepository):
    def reload(self, scope: Scope, *, accept_root: bool = True) -> Snapshot:
        return self.snapshot(scope)


@breaks("test_an_edit_by_hand_is_not_overwritten")
class ForgetsWhatItRead(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        if isinstance(expected.get("expected"), Fact) and fact_file(self, str(draft.id)).exists():
            self.reload(scope)
            found = self.get_fact(scope, str(draft.id))
            if found and found.created_at == expected["expected"].created_at:
                expected["expected"] = found
        return super().upsert_fact(scope, draft, **expected)


@breaks(
    "test_an_edit_by_hand_can_be_made_a_commit",
    also=[
        "test_a_commit_that_is_refused_writes_nothing",
        "test_every_write_passes_before_a_commit_and_after_it",
    ],
)
class AdoptsWhatItKnew(MemoryRepository):
    def adopt_fact(self, scope: Scope, fact_id: str) -> Delta:
        return Delta(self.reload(scope).revision, "")


@breaks("test_a_migration_can_be_asked_for")
class LeavesMigrationsToReads(MemoryRepository):
    def migrate(self, user_id: str | None, **options: Any) -> MigrationReport:
        return MigrationReport()


@breaks("test_a_memory_of_version_1_is_read_and_its_file_kept")
class MigratesWithoutBackup(MemoryRepository):
    def snapshot(self, scope: Scope) -> Snapshot:
        found = super().snapshot(scope)
        (bucket_of(self, scope.user.raw) / "memory.json.v1.bak").unlink(missing_ok=True)
        return found
