"""Storages that each break one rule of the contract, under the name of the test that must find it out.

Each breaks as little as it can. Where one fault cannot but show in other tests too, `also` names them.
"""

# ruff: noqa: ARG002 - what a broken storage is told, it may ignore

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from deermem import (
    ANYTHING,
    AtRevision,
    ChangeSet,
    Corruption,
    Delta,
    Fact,
    FactConflict,
    FactDraft,
    FactNotFoundError,
    FactPage,
    Hit,
    InvalidInputError,
    ManifestConflict,
    MemoryRepository,
    RebuildReport,
    Scope,
    Snapshot,
    Summaries,
    SummaryPatch,
    Upsert,
)
from deermem.model import plans
from deermem.model.identity import AgentName, FactId, UserId
from deermem.model.manifest import Manifest
from deermem.model.summaries import Section
from deermem.repository import MigrationReport
from deermem.storage.transaction import Committed
from deermem.storage.view import View
from deermem.testing.storage_samples import HERE, OTHER_AGENT, bucket_of, fact_file


class Broken(NamedTuple):
    """A storage, and the rules that it breaks besides the one that it stands for."""

    storage: type[MemoryRepository]
    also: frozenset[str]


BROKEN: dict[str, Broken] = {}


def breaks(test: str, *, also: Iterable[str] = ()) -> Any:
    """Registers the storage below as one that this test refuses."""

    def register(storage: type[MemoryRepository]) -> type[MemoryRepository]:
        assert test not in BROKEN
        BROKEN[test] = Broken(storage, frozenset(also))
        return storage

    return register


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


@breaks("test_an_upsert_that_changes_nothing_commits_nothing")
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


@breaks("test_deleting_an_absent_fact_is_no_error_and_no_commit")
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
        return super().clear(HERE) if self.snapshot(OTHER_AGENT).facts else super().clear_all(user_id)


@breaks("test_the_revision_of_the_last_clear_is_told")
class ForgetsWhenItCleared(MemoryRepository):
    def cleared_at(self, scope: Scope) -> int:
        return 0


@breaks("test_what_a_clear_deleted_can_be_taken_back")
class KeepsNoSafetyCopies(MemoryRepository):
    def __init__(self, root: Path, **settings: Any) -> None:
        super().__init__(root, **{**settings, "undo_days": 0})


@breaks("test_a_trim_keeps_the_facts_that_are_surest")
class TrimsByAge(MemoryRepository):
    def trim(self, scope: Scope, max_facts: int) -> Delta:
        delta = None
        for fact in self.snapshot(scope).facts[max_facts:]:
            delta = self.delete_fact(scope, fact.id)
        assert delta
        return delta


@breaks("test_a_consolidation_replaces_facts_by_one_that_names_them")
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


@breaks("test_maintenance_commits_through_the_storage", also=["test_what_a_clear_deleted_can_be_taken_back"])
class CommitsNothingForMaintenance(MemoryRepository):
    def commit(self, user: UserId, decide: Callable[[View], ChangeSet]) -> Delta:
        return super().commit(user, lambda _: ChangeSet())


@breaks("test_a_user_about_whom_nothing_is_known_reads_as_empty")
class RefusesStrangers(MemoryRepository):
    def list_facts(self, scope: Scope, **options: Any) -> FactPage:
        if not bucket_of(self, scope.user.raw).exists() and not options:
            raise Corruption("users", "no such user")
        return super().list_facts(scope, **options)


@breaks("test_reading_writes_nothing")
class NotesEveryReading(MemoryRepository):
    def get_summaries(self, user_id: str | None) -> Summaries:
        Path(self.storage_root, "read.log").touch()
        return super().get_summaries(user_id)


@breaks("test_several_agents_are_read_at_one_revision")
class ReadsTheFirstAgentTwice(MemoryRepository):
    def snapshots(self, scopes: Sequence[Scope]) -> list[Snapshot]:
        return [super().snapshots(scopes)[0]] * len(scopes)


@breaks("test_pages_follow_one_another_in_the_order_of_ids")
class RepeatsTheLastOfAPage(MemoryRepository):
    def list_facts(self, scope: Scope, **options: Any) -> FactPage:
        page = super().list_facts(scope, **options)
        return replace(page, next_cursor=page.next_cursor and page.facts[0].id)


@breaks("test_a_list_is_filtered_before_it_is_cut")
class FiltersAfterThePage(MemoryRepository):
    def list_facts(
        self, scope: Scope, *, filters: Mapping[str, Any] | None = None, **options: Any
    ) -> FactPage:
        if not filters:
            return super().list_facts(scope, **options)
        wanted = super().list_facts(scope, filters=filters).facts
        page = super().list_facts(scope, **options)
        return replace(page, facts=tuple(fact for fact in page.facts if fact in wanted))


@breaks("test_a_limit_out_of_range_is_refused")
class BendsTheLimit(MemoryRepository):
    def list_facts(self, scope: Scope, *, limit: int = 100, **options: Any) -> FactPage:
        return super().list_facts(scope, limit=min(max(limit, 1), 1_000), **options)


@breaks("test_a_filter_that_is_unknown_is_refused")
class IgnoresUnknownFilters(MemoryRepository):
    def list_facts(
        self, scope: Scope, *, filters: Mapping[str, Any] | None = None, **options: Any
    ) -> FactPage:
        known = {name: value for name, value in (filters or {}).items() if name != "colour"}
        return super().list_facts(scope, filters=known, **options)


@breaks("test_an_id_that_names_no_fact_is_refused")
class TakesBadIdsForAbsentFacts(MemoryRepository):
    def get_fact(self, scope: Scope, fact_id: str) -> Fact | None:
        try:
            return super().get_fact(scope, fact_id)
        except InvalidInputError:
            return None


class SearchesDifferently(MemoryRepository):
    """Changes what is asked or what is answered."""

    def search_facts(self, query: str, scopes: Iterable[Scope], **options: Any) -> list[Hit]:
        return self.answer(query, list(scopes), options)

    def answer(self, query: str, scopes: list[Scope], options: dict[str, Any]) -> list[Hit]:
        return super().search_facts(query, scopes, **options)


@breaks("test_a_search_finds_parts_of_texts_in_any_case")
class SearchesByCase(SearchesDifferently):
    def answer(self, query: str, scopes: list[Scope], options: dict[str, Any]) -> list[Hit]:
        hits = super().answer(query, scopes, options)
        return [hit for hit in hits if query in (hit.fact.content, "TEA") or query.islower()]


@breaks("test_a_search_looks_only_where_it_is_told")
class TakesNowhereForEverywhere(SearchesDifferently):
    def answer(self, query: str, scopes: list[Scope], options: dict[str, Any]) -> list[Hit]:
        return super().answer(query, scopes or [HERE], options)


@breaks("test_a_search_filters_before_it_cuts")
class FiltersTheBest(SearchesDifferently):
    def answer(self, query: str, scopes: list[Scope], options: dict[str, Any]) -> list[Hit]:
        hits = super().answer(query, scopes, {**options, "filters": {}})
        filters = options.get("filters", {})
        return [hit for hit in hits if filters.get("category") in (None, hit.fact.category)]


@breaks("test_an_adapter_is_told_of_what_is_committed")
class TellsTheAdapterNothing(MemoryRepository):
    def _told(self, user: UserId, committed: Committed) -> Delta:
        return self._delta(committed)


@breaks("test_an_index_that_is_built_anew_holds_what_is_stored")
class BuildsNoIndex(MemoryRepository):
    def rebuild_index(self, scopes: Iterable[Scope]) -> RebuildReport:
        return RebuildReport(supported=True)


@breaks("test_an_adapter_is_asked_when_somebody_searches")
class SearchesBySubstring(SearchesDifferently):
    def answer(self, query: str, scopes: list[Scope], options: dict[str, Any]) -> list[Hit]:
        with MemoryRepository(self.storage_root) as store:
            return store.search_facts(query, scopes, **options)


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


@breaks("test_an_edit_by_hand_can_be_made_a_commit")
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


@breaks("test_a_storage_that_is_opened_later_sees_everything")
class ForgetsAtTheEnd(MemoryRepository):
    def close(self) -> None:
        super().close()
        if fact_file(self, "full").exists():
            shutil.rmtree(bucket_of(self))


@breaks("test_another_storage_on_the_root_sees_every_commit_at_once")
class ShowsWhatItSawFirst(MemoryRepository):
    seen: Snapshot | None = None

    def snapshot(self, scope: Scope) -> Snapshot:
        fresh = super().snapshot(scope)
        if scope == HERE and len(fresh.facts) == 3 and fresh.revision == 4:
            return self.seen or fresh
        self.seen = fresh
        return fresh


@breaks("test_the_files_are_those_of_a_plain_storage")
class ShoutsWhatItReads(MemoryRepository):
    def snapshot(self, scope: Scope) -> Snapshot:
        found = super().snapshot(scope)
        if found.revision != 2:
            return found
        louder = [replace(fact, source_error="read") if fact.id == "full" else fact for fact in found.facts]
        return Snapshot.of(scope, found.manifest, louder)


@breaks("test_what_a_plain_storage_wrote_is_read")
class ReadsOnlyItsOwn(MemoryRepository):
    wrote = False

    def _commit(self, user: UserId, decide: Any, *, supersedes: bool = False) -> Delta:
        self.wrote = True
        return super()._commit(user, decide, supersedes=supersedes)

    def snapshot(self, scope: Scope) -> Snapshot:
        found = super().snapshot(scope)
        only = found.revision == 1 and not self.wrote and found.facts and found.facts[0].id == "full"
        return Snapshot.of(scope, found.manifest, ()) if only else found


@breaks("test_what_another_program_commits_is_seen_at_once")
class KnowsOnlyItsOwnCommits(MemoryRepository):
    latest: ClassVar[dict[tuple[str, str], Snapshot]] = {}

    def snapshot(self, scope: Scope) -> Snapshot:
        key = (self.storage_root, str(scope))
        if key not in self.latest:
            found = super().snapshot(scope)
            if not found.revision:
                return found
            self.latest[key] = found
        return self.latest[key]

    def reload(self, scope: Scope, *, accept_root: bool = True) -> Snapshot:
        self.latest.pop((self.storage_root, str(scope)), None)
        return super().reload(scope, accept_root=accept_root)

    def _told(self, user: UserId, committed: Committed) -> Delta:
        for key in [key for key in self.latest if key[0] == self.storage_root]:
            self.latest.pop(key, None)
        return super()._told(user, committed)


@breaks("test_a_check_of_the_files_finds_nothing")
class CopiesFactFiles(MemoryRepository):
    def clear(self, scope: Scope) -> Delta:
        if scope == OTHER_AGENT:
            shutil.copy(fact_file(self, "x"), fact_file(self, "x").with_name("copy.md"))
        return super().clear(scope)


@breaks("test_several_threads_and_storages_lose_no_fact")
class WritesOverOthers(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        delta = super().upsert_fact(scope, draft, **expected)
        if str(draft.id) == "w0-7":
            delta = self.delete_fact(scope, "w0-6")
        return delta


@breaks("test_of_several_writers_at_one_revision_one_wins")
class LooksBeforeItWrites(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        try:
            return super().upsert_fact(scope, draft, **expected)
        except FactConflict:
            if not draft.content.startswith("of "):
                raise
            return Delta(0, "")


@breaks("test_a_reader_beside_a_writer_sees_whole_commits")
class ReadsFactByFact(MemoryRepository):
    def snapshot(self, scope: Scope) -> Snapshot:
        found = super().snapshot(scope)
        if [fact.id for fact in found.facts] != ["a", "b"] or not found.facts[0].content.startswith("state"):
            return found
        for _ in range(1_000):  # reads, until the writer goes on or has ended
            if super().snapshot(scope).revision != found.revision:
                break
        second = super().get_fact(scope, "b")
        assert second
        return Snapshot.of(scope, found.manifest, (found.facts[0], second))


@breaks("test_a_lock_that_is_held_too_long_is_a_time_out_that_writes_nothing")
class GivesUpSilently(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        try:
            return super().upsert_fact(scope, draft, **expected)
        except TimeoutError:
            return Delta(0, "")


@breaks("test_files_of_the_host_are_left_alone")
class ClearsTheWholeDirectory(MemoryRepository):
    def clear_all(self, user_id: str | None) -> Delta:
        shutil.rmtree(bucket_of(self, user_id) / "threads", ignore_errors=True)
        return super().clear_all(user_id)


@breaks("test_the_settings_can_name_it")
class NeedsAnArgumentOfItsOwn(MemoryRepository):
    def __init__(self, root: Path, *, key: str = "", **settings: Any) -> None:
        if settings.keys() == {
            "lock_timeout",
            "manifest_filename",
            "retrieval_adapter",
            "strict_user_scope",
            "undo_days",
        }:
            raise TypeError("missing 1 required keyword-only argument: 'key'")
        super().__init__(root, **settings)


@breaks("test_the_root_is_the_one_that_it_was_given")
class MakesItselfARoot(MemoryRepository):
    def __init__(self, root: Path, **settings: Any) -> None:
        (Path(root) / "store").mkdir(exist_ok=True)
        super().__init__(Path(root) / "store", **settings)


@breaks("test_a_user_is_required_where_the_settings_say_so")
class TakesAnybody(MemoryRepository):
    def __init__(self, root: Path, **settings: Any) -> None:
        settings.pop("strict_user_scope", None)
        super().__init__(root, **settings)


@breaks("test_the_summary_file_has_the_name_that_the_settings_say")
class NamesItsFilesItself(MemoryRepository):
    def __init__(self, root: Path, **settings: Any) -> None:
        settings.pop("manifest_filename", None)
        super().__init__(root, **settings)


@breaks("test_a_manager_works_on_it")
class KnowsNoManager(MemoryRepository):
    def snapshot_since(self, scope: Scope, revision: int) -> Snapshot:
        raise NotImplementedError("snapshot_since")


@breaks("test_a_manager_tells_what_goes_wrong_in_its_own_words")
class HasWordsOfItsOwn(MemoryRepository):
    def reload(self, scope: Scope, *, accept_root: bool = True) -> Snapshot:
        try:
            return super().reload(scope, accept_root=accept_root)
        except Corruption as error:
            raise RuntimeError("the store is broken") from error


@breaks("test_closing_closes_the_adapter", also=["test_it_closes_itself_at_the_end_of_a_with_block"])
class LeavesTheAdapterOpen(MemoryRepository):
    def close(self) -> None:
        self.engine.cache.clear()


@breaks(  # whatever closes it closes it once more at the end
    "test_closing_twice_is_no_error",
    also=[
        "test_a_manager_tells_what_goes_wrong_in_its_own_words",
        "test_a_manager_works_on_it",
        "test_a_storage_that_is_opened_later_sees_everything",
        "test_closing_closes_the_adapter",
        "test_it_closes_itself_at_the_end_of_a_with_block",
    ],
)
class ClosesOnce(MemoryRepository):
    closings = 0

    def close(self) -> None:
        self.closings += 1
        if self.closings == 2:
            raise RuntimeError("closed already")
        super().close()


@breaks("test_it_closes_itself_at_the_end_of_a_with_block")
class StaysOpen(MemoryRepository):
    def __exit__(self, *exception: object) -> None:
        pass
