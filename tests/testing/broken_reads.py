"""Storages that each break one rule of the contract: reads, lists, searches and adapters."""

# ruff: noqa: ARG002 - what a broken storage is told, it may ignore

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deermem import (
    Corruption,
    Delta,
    Fact,
    FactPage,
    Hit,
    InvalidInputError,
    MemoryRepository,
    RebuildReport,
    Scope,
    Snapshot,
    Summaries,
)
from deermem.model.identity import UserId
from deermem.storage.transaction import Committed
from deermem.testing.storage_samples import HERE, bucket_of
from tests.testing.planted import Planted

BROKEN: Planted[type[MemoryRepository]] = Planted()
breaks = BROKEN.breaks


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
    def _announce(self, user: UserId, committed: Committed) -> Delta:
        delta = self._delta(committed)
        if committed.image is not committed.base:
            self.after_commit(user, delta)
        return delta


@breaks("test_an_index_that_is_built_anew_holds_what_is_stored")
class BuildsNoIndex(MemoryRepository):
    def rebuild_index(self, scopes: Iterable[Scope]) -> RebuildReport:
        return RebuildReport(supported=True)


@breaks("test_an_adapter_is_asked_when_somebody_searches", also=["test_a_read_that_is_refused_shows_nothing"])
class SearchesBySubstring(SearchesDifferently):
    def answer(self, query: str, scopes: list[Scope], options: dict[str, Any]) -> list[Hit]:
        with MemoryRepository(self.storage_root) as store:
            return store.search_facts(query, scopes, **options)
