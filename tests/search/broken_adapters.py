"""Adapters that each break one rule of the contract, under the name of the test that must find it out."""

# ruff: noqa: ARG002 - what a broken adapter is told, it may ignore

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from deermem.model.fact import Fact
from deermem.model.identity import FactId, Scope
from deermem.search.port import AdapterHit, IndexRecord
from tests.search.adapters import DictAdapter

BROKEN: dict[str, type[DictAdapter]] = {}


def breaks(test: str) -> Any:
    """Registers the adapter below as one that this test refuses."""

    def register(adapter: type[DictAdapter]) -> type[DictAdapter]:
        BROKEN[test] = adapter
        return adapter

    return register


class BadSearch(DictAdapter):
    """Changes what is asked or what is answered."""

    def search(
        self,
        query: str,
        /,
        *,
        scopes: Sequence[Scope],
        top_k: int,
        mode: str,
        filters: Mapping[str, object],
    ) -> Iterable[AdapterHit]:
        asked = {"scopes": scopes, "top_k": top_k, "mode": mode, "filters": filters}
        return self.answer(query, asked)

    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return super().search(query, **asked)

    def everywhere(self) -> list[Scope]:
        return [scope for scope, _ in self.facts]


@breaks("test_a_query_equal_to_the_content_finds_the_fact")
class FindsNothing(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return []


@breaks("test_a_hit_names_fact_and_scope_and_has_a_finite_score")
class ScoresNotANumber(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return [AdapterHit(hit.fact_id, hit.scope, float("nan")) for hit in super().answer(query, asked)]


@breaks("test_hits_come_only_from_the_requested_scopes")
class SearchesAllUsers(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return super().answer(query, {**asked, "scopes": self.everywhere()})


@breaks("test_several_scopes_are_searched_together")
class SearchesTheFirstScope(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return super().answer(query, {**asked, "scopes": asked["scopes"][:1]})


@breaks("test_no_scopes_means_no_hits")
class TakesNoScopesForAll(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return super().answer(query, {**asked, "scopes": asked["scopes"] or self.everywhere()})


@breaks("test_there_are_at_most_top_k_hits")
class IgnoresTheLimit(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return super().answer(query, {**asked, "top_k": 1_000})


@breaks("test_filters_apply_before_top_k")
class FiltersAfterTheLimit(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        kept = [(hit.scope, hit.fact_id) for hit in super().answer(query, {**asked, "top_k": 1_000})]
        cut = super().answer(query, {**asked, "filters": {}})
        return [hit for hit in cut if (hit.scope, hit.fact_id) in kept]


@breaks("test_every_hit_matches_the_filters")
class KnowsOnlyTheStoredCategory(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        wanted = asked["filters"].get("category")
        hits = super().answer(query, asked)
        return [hit for hit in hits if wanted in (None, self.facts[hit.scope, hit.fact_id].category)]


@breaks("test_text_in_any_script_is_found")
class FindsAsciiOnly(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return super().answer(query, asked) if query.isascii() else []


@breaks("test_hostile_queries_never_raise")
class TakesTheQueryForAPattern(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        re.compile(query)
        return super().answer(query, asked)


@breaks("test_a_repository_searches_with_it")
class CallsItsMatchesSubstring(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return [replace(hit, match_type="substring") for hit in super().answer(query, asked)]


@breaks("test_an_unknown_mode_is_no_error")
class RefusesUnknownModes(BadSearch):
    def answer(self, query: str, asked: dict[str, Any]) -> Iterable[AdapterHit]:
        return super().answer(query, asked) if asked["mode"] == "auto" else []


@breaks("test_hostile_content_is_taken")
class ChokesOnNul(DictAdapter):
    def upsert(self, fact: Fact, /, *, scope: Scope, path: str) -> None:
        if "\0" in fact.content:
            raise ValueError("embedded null character")
        super().upsert(fact, scope=scope, path=path)


@breaks("test_the_scope_argument_decides_where_a_fact_lies")
class IndexesByTheFactsScope(DictAdapter):
    def upsert(self, fact: Fact, /, *, scope: Scope, path: str) -> None:
        super().upsert(fact, scope=fact.scope, path=path)


@breaks("test_an_upsert_replaces_the_fact")
class KeepsTheFirstVersion(DictAdapter):
    def upsert(self, fact: Fact, /, *, scope: Scope, path: str) -> None:
        if (scope, fact.id) not in self.facts:
            super().upsert(fact, scope=scope, path=path)


@breaks("test_the_same_id_in_two_scopes_is_two_facts")
class RemovesTheIdEverywhere(DictAdapter):
    def remove(self, fact_id: FactId, /, *, scope: Scope) -> None:
        for key in [key for key in self.facts if key[1] == fact_id]:
            del self.facts[key]


@breaks("test_a_removed_fact_is_not_found")
class RemovesNothing(DictAdapter):
    def remove(self, fact_id: FactId, /, *, scope: Scope) -> None:
        pass


@breaks("test_removing_an_absent_fact_is_no_error")
class RemovesOnlyWhatIsThere(DictAdapter):
    def remove(self, fact_id: FactId, /, *, scope: Scope) -> None:
        del self.facts[scope, fact_id]


@breaks("test_clear_empties_the_given_scopes_and_no_other")
class ClearsTheWholeUser(DictAdapter):
    def clear(self, *, scopes: Sequence[Scope]) -> None:
        users = {scope.user for scope in scopes}
        super().clear(scopes=[scope for scope, _ in self.facts if scope.user in users])


@breaks("test_clearing_nothing_changes_nothing")
class TakesClearNothingForClearAll(DictAdapter):
    def clear(self, *, scopes: Sequence[Scope]) -> None:
        super().clear(scopes=scopes or [scope for scope, _ in self.facts])


@breaks("test_a_rebuild_replaces_the_whole_scope")
class RebuildsByAdding(DictAdapter):
    def rebuild(self, records: Iterable[IndexRecord], /, *, scopes: Sequence[Scope]) -> None:
        super().rebuild(records, scopes=[])


@breaks("test_a_rebuild_without_records_empties_the_scope")
class ClearsOnlyScopesWithRecords(DictAdapter):
    def rebuild(self, records: Iterable[IndexRecord], /, *, scopes: Sequence[Scope]) -> None:
        given = list(records)
        super().rebuild(given, scopes=[record.scope for record in given])


@breaks("test_a_rebuild_leaves_other_scopes")
class RebuildsTheWholeIndex(DictAdapter):
    def rebuild(self, records: Iterable[IndexRecord], /, *, scopes: Sequence[Scope]) -> None:
        super().rebuild(records, scopes=[scope for scope, _ in self.facts])


@breaks("test_several_scopes_are_rebuilt_together")
class ReadsTheRecordsOncePerScope(DictAdapter):
    def rebuild(self, records: Iterable[IndexRecord], /, *, scopes: Sequence[Scope]) -> None:
        for scope in scopes:
            super().rebuild((record for record in records if record.scope == scope), scopes=[scope])


@breaks("test_it_works_from_several_threads")
class BelongsToOneThread(DictAdapter):
    def __init__(self) -> None:
        super().__init__()
        self.owner = threading.get_ident()

    def remove(self, fact_id: FactId, /, *, scope: Scope) -> None:
        if threading.get_ident() != self.owner:
            raise RuntimeError("used in another thread than it was made in")
        super().remove(fact_id, scope=scope)


@breaks("test_closing_twice_is_no_error")
class ClosesOnce(DictAdapter):
    def close(self) -> None:
        super().close()
        if self.closed > 1:
            raise RuntimeError("closed already")
