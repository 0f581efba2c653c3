"""Storages that each break one rule of the contract: facts, change sets and summaries."""

# ruff: noqa: ARG002 - what a broken storage is told, it may ignore

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from deermem import (
    ANYTHING,
    AtRevision,
    ChangeSet,
    Delta,
    Fact,
    FactConflict,
    FactDraft,
    FactNotFoundError,
    ManifestConflict,
    MemoryRepository,
    Scope,
    Summaries,
    SummaryPatch,
    Upsert,
)
from deermem.model.identity import FactId
from deermem.model.summaries import Section
from deermem.testing.storage_samples import HERE, bucket_of
from tests.testing.planted import Planted

BROKEN: Planted[type[MemoryRepository]] = Planted()
breaks = BROKEN.breaks


@breaks("test_a_fact_is_read_back_as_it_was_written", also=["test_an_edit_keeps_what_it_does_not_name"])
class ForgetsTheSourceError(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        return super().upsert_fact(scope, replace(draft, source_error=None), **expected)


@breaks("test_a_text_is_kept_to_the_character")
class TidiesLineBreaks(MemoryRepository):
    def apply_changes(self, user_id: str | None, changes: ChangeSet) -> Delta:
        upserts = tuple(
            replace(each, draft=replace(each.draft, content=each.draft.content.replace("\r\n", "\n")))
            for each in changes.upserts
        )
        return super().apply_changes(user_id, replace(changes, upserts=upserts))


@breaks("test_a_new_fact_gets_an_id_and_revision_1")
class TakesTheTextForTheId(MemoryRepository):
    def new_fact_id(self) -> FactId:
        return FactId("fact_0")

    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        if draft.id is None and self.get_fact(scope, "fact_0"):
            expected = {"expected": self.get_fact(scope, "fact_0")}
        return super().upsert_fact(scope, draft, **expected)


@breaks("test_a_fact_that_exists_is_not_overwritten_by_accident")
class UpsertsAsDatabasesDo(MemoryRepository):
    def upsert_fact(
        self,
        scope: Scope,
        draft: FactDraft,
        *,
        expected: int | Fact | None = None,
        expected_manifest_revision: int | None = None,
    ) -> Delta:
        if draft.id and expected is None and expected_manifest_revision is None:
            expected = self.get_fact(scope, draft.id)
        return super().upsert_fact(
            scope, draft, expected=expected, expected_manifest_revision=expected_manifest_revision
        )


class MisreadsExpectations(MemoryRepository):
    """Changes what an upsert at a revision does."""

    def upsert_fact(
        self,
        scope: Scope,
        draft: FactDraft,
        *,
        expected: int | Fact | None = None,
        expected_manifest_revision: int | None = None,
    ) -> Delta:
        def write(expected: int | Fact | None = expected, draft: FactDraft = draft) -> Delta:
            return super(MisreadsExpectations, self).upsert_fact(
                scope, draft, expected=expected, expected_manifest_revision=expected_manifest_revision
            )

        if expected is None or draft.id is None:
            return write()
        return self.update(write, self.get_fact(scope, draft.id), expected, draft)

    def update(
        self, write: Callable[..., Delta], present: Fact | None, expected: int | Fact, draft: FactDraft
    ) -> Delta:
        return write()


@breaks("test_an_update_at_the_revision_that_was_read_counts_up")
class RenewsTheTimeOfCreation(MemoryRepository):
    def get_fact(self, scope: Scope, fact_id: str) -> Fact | None:
        fact = super().get_fact(scope, fact_id)
        return fact and (replace(fact, created_at=fact.updated_at) if fact.content == "changed" else fact)


@breaks("test_an_update_at_a_stale_revision_is_a_conflict_that_says_which")
class TellsNoRevisions(MisreadsExpectations):
    def update(
        self, write: Callable[..., Delta], present: Fact | None, expected: int | Fact, draft: FactDraft
    ) -> Delta:
        try:
            return write()
        except FactConflict as conflict:
            raise FactConflict(conflict.fact_id, None, None) from conflict


@breaks("test_an_update_does_not_bring_a_deleted_fact_back")
class UpdatesWhatIsGone(MisreadsExpectations):
    def update(
        self, write: Callable[..., Delta], present: Fact | None, expected: int | Fact, draft: FactDraft
    ) -> Delta:
        return write(expected=None) if present is None else write()


@breaks("test_a_fact_that_was_deleted_and_made_again_is_not_the_one_that_was_read")
class ComparesNumbersAlone(MisreadsExpectations):
    def update(
        self, write: Callable[..., Delta], present: Fact | None, expected: int | Fact, draft: FactDraft
    ) -> Delta:
        return write(expected=expected.revision if isinstance(expected, Fact) else expected)


@breaks(
    "test_an_upsert_that_changes_nothing_commits_nothing",
    also=["test_a_write_that_changes_nothing_is_not_told"],
)
class WritesAnyway(MisreadsExpectations):
    def update(
        self, write: Callable[..., Delta], present: Fact | None, expected: int | Fact, draft: FactDraft
    ) -> Delta:
        if present and present.content == draft.content:
            draft = replace(draft, confirmation_count=1)
        return write(draft=draft)


@breaks("test_an_edit_keeps_what_it_does_not_name")
class EditsByReplacing(MemoryRepository):
    def edit_fact(self, scope: Scope, fact_id: str, changes: Mapping[str, Any], **expected: Any) -> Delta:
        return super().edit_fact(scope, fact_id, {"topics": (), **changes}, **expected)


@breaks("test_an_edit_of_an_absent_fact_says_so")
class EditsNothingSilently(MemoryRepository):
    def edit_fact(self, scope: Scope, fact_id: str, changes: Mapping[str, Any], **expected: Any) -> Delta:
        try:
            return super().edit_fact(scope, fact_id, changes, **expected)
        except FactNotFoundError:
            return Delta(self.snapshot(scope).revision, "")


@breaks("test_a_deleted_fact_is_gone")
class DeletesTheFirstFactOnly(MemoryRepository):
    def delete_fact(self, scope: Scope, fact_id: str, **expected: Any) -> Delta:
        if len(self.snapshot(scope).facts) == 2 and not expected and fact_id == "x":
            return Delta(self.snapshot(scope).revision, "", deleted=((scope.agent, FactId("x")),))
        return super().delete_fact(scope, fact_id, **expected)


@breaks(
    "test_deleting_an_absent_fact_is_no_error_and_no_commit",
    also=["test_a_write_that_changes_nothing_is_not_told"],
)
class InsistsOnDeleting(MemoryRepository):
    def delete_fact(self, scope: Scope, fact_id: str, **expected: Any) -> Delta:
        if self.get_fact(scope, fact_id) is None:
            raise FactNotFoundError(fact_id)
        return super().delete_fact(scope, fact_id, **expected)


@breaks("test_a_delete_at_a_stale_revision_is_a_conflict")
class DeletesWhatever(MemoryRepository):
    def delete_fact(self, scope: Scope, fact_id: str, **expected: Any) -> Delta:
        return super().delete_fact(scope, fact_id)


@breaks("test_a_change_set_is_one_commit_and_tells_what_it_changed")
class CommitsSummariesLater(MemoryRepository):
    def apply_changes(self, user_id: str | None, changes: ChangeSet) -> Delta:
        if not (changes.summaries and changes.upserts):
            return super().apply_changes(user_id, changes)
        super().apply_changes(user_id, replace(changes, summaries=None))
        return self.update_summaries(user_id, changes.summaries)


@breaks("test_a_conflict_in_a_change_set_undoes_all_of_it")
class CommitsUntilTheConflict(MemoryRepository):
    def apply_changes(self, user_id: str | None, changes: ChangeSet) -> Delta:
        try:
            return super().apply_changes(user_id, changes)
        except FactConflict:
            super().apply_changes(user_id, replace(changes, upserts=changes.upserts[:1]))
            raise


@breaks("test_a_stale_manifest_revision_is_a_conflict_that_says_which")
class TellsTheConflictBackwards(MemoryRepository):
    def apply_changes(self, user_id: str | None, changes: ChangeSet) -> Delta:
        try:
            return super().apply_changes(user_id, changes)
        except ManifestConflict as conflict:
            raise ManifestConflict(conflict.actual, conflict.expected) from conflict


@breaks("test_a_point_operation_goes_through_on_a_newer_manifest")
class NeverRebases(MemoryRepository):
    def upsert_fact(
        self, scope: Scope, draft: FactDraft, *, expected_manifest_revision: int | None = None, **rest: Any
    ) -> Delta:
        if expected_manifest_revision is None:
            return super().upsert_fact(scope, draft, **rest)
        expect = AtRevision(rest["expected"]) if rest else ANYTHING
        upsert = Upsert(scope.agent, draft, expect)
        changes = ChangeSet(upserts=(upsert,), expected_manifest_revision=expected_manifest_revision)
        return self.apply_changes(scope.user.raw, changes)


@breaks("test_what_was_read_before_a_clear_is_not_written_after_it")
class ForgetsTheBase(MemoryRepository):
    def upsert_fact(
        self, scope: Scope, draft: FactDraft, *, expected_manifest_revision: int | None = None, **rest: Any
    ) -> Delta:
        return super().upsert_fact(scope, draft, **rest)


@breaks("test_a_new_intent_after_a_clear_is_written")
class FencesEverything(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        if not expected and self.cleared_at(scope):
            raise ManifestConflict(0, self.cleared_at(scope))
        return super().upsert_fact(scope, draft, **expected)


@breaks(
    "test_an_upsert_that_expects_nothing_writes_whatever_is_there",
    also=["test_a_reader_beside_a_writer_sees_whole_commits"],
)
class TakesAnythingForAbsent(MemoryRepository):
    def apply_changes(self, user_id: str | None, changes: ChangeSet) -> Delta:
        upserts = tuple(
            Upsert(each.agent, each.draft) if each.expect == ANYTHING else each for each in changes.upserts
        )
        return super().apply_changes(user_id, replace(changes, upserts=upserts))


@breaks("test_a_summary_that_is_patched_leaves_the_others")
class ReplacesAllSummaries(MemoryRepository):
    def update_summaries(self, user_id: str | None, patch: Any, **expected: Any) -> Delta:
        given = Summaries.of(SummaryPatch.parse(patch).sections)
        return super().update_summaries(user_id, SummaryPatch.replace_all(given), **expected)


@breaks("test_a_summary_that_is_written_says_when")
class DatesSummariesItself(MemoryRepository):
    def update_summaries(self, user_id: str | None, patch: Any, **expected: Any) -> Delta:
        sections = {
            key: Section(section.summary, "2020-01-01T00:00:00Z")
            for key, section in SummaryPatch.parse(patch).sections.items()
        }
        return super().update_summaries(user_id, SummaryPatch(sections), **expected)


@breaks("test_summaries_on_a_stale_revision_are_a_conflict")
class LetsTheLastSummaryWin(MemoryRepository):
    def update_summaries(self, user_id: str | None, patch: Any, **expected: Any) -> Delta:
        return super().update_summaries(user_id, patch)


@breaks("test_unknown_keys_of_the_summary_file_are_kept")
class WritesOnlyWhatItKnows(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        path = bucket_of(self) / "memory.json"
        if scope == HERE and path.is_file():
            document = json.loads(path.read_bytes())
            if document.pop("theirs", None):
                path.write_text(json.dumps(document), "utf-8")
        return super().upsert_fact(scope, draft, **expected)
