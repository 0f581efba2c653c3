"""The rules that every retrieval adapter keeps, as tests to inherit.

    class TestMyAdapter(RetrievalAdapterContract):
        def make_adapter(self) -> RetrievalAdapter:
            return MyAdapter()

Nothing is asked of ranking, so an index of words passes as well as one of meanings: a query that is a
fact's whole content finds that fact if `top_k` has room for all.
"""

# ruff: noqa: D102 - the name of a test is its claim

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from deermem.model.fact import Fact, FactDraft
from deermem.model.identity import FactId, Scope
from deermem.repository import MemoryRepository
from deermem.search.filters import matches
from deermem.search.port import SUBSTRING, AdapterHit, RetrievalAdapter
from deermem.testing.claims import allowed, require
from deermem.testing.places import temporary_root
from deermem.testing.retrieval_samples import (
    ELSEWHERE,
    HERE,
    HOSTILE_TEXTS,
    OTHER_AGENT,
    OTHER_USER,
    SCRIPTS,
    find,
    ids,
    make_fact,
    put,
    record_of,
)

WANTED_FILTERS: Final[Sequence[Mapping[str, object]]] = (
    {"category": "hobby"},
    {"topics": "rare"},
    {"topics": ["rare", "plain"]},
    {"confidence": 0.0},
    {"source": "thread-1"},
    {"id": "rare", "category": "other", "status": "active", "revision": 1},
)


class RetrievalAdapterContract(ABC):
    """Tests an adapter; inherit from it in a class whose name starts with `Test`.

    Each test builds its adapter with `make_adapter` and closes it. A fixture that the subclass marks
    `autouse` may prepare a directory and keep it on `self`.
    """

    @abstractmethod
    def make_adapter(self) -> RetrievalAdapter:
        """Returns a new adapter with an empty index that no other test uses."""

    @contextmanager
    def _opened(self, *facts: Fact) -> Iterator[RetrievalAdapter]:
        adapter = self.make_adapter()
        try:
            for fact in facts:
                put(adapter, fact)
            yield adapter
        finally:
            adapter.close()

    def test_a_query_equal_to_the_content_finds_the_fact(self) -> None:
        with self._opened(make_fact("tea", "drinks green tea"), make_fact("bus", "takes the bus")) as adapter:
            require("tea" in ids(find(adapter, "drinks green tea")), "the fact is not found by its own text")

    def test_a_hit_names_fact_and_scope_and_has_a_finite_score(self) -> None:
        with self._opened(make_fact("tea", "drinks green tea")) as adapter:
            hits = find(adapter, "drinks green tea")
        require(bool(hits), "nothing is found")
        for hit in hits:
            require(isinstance(hit, AdapterHit), f"{type(hit).__name__} is no AdapterHit")
            require((hit.fact_id, hit.scope) == ("tea", HERE), f"{hit} is not where the fact lies")
            require(math.isfinite(hit.score), f"the score {hit.score} is not finite")

    def test_hits_come_only_from_the_requested_scopes(self) -> None:
        facts = [make_fact(f"tea{n}", "drinks tea", scope) for n, scope in enumerate((HERE, *ELSEWHERE))]
        with self._opened(*facts) as adapter:
            for fact in facts:
                found = {(hit.fact_id, hit.scope) for hit in find(adapter, "drinks tea", [fact.scope])}
                require(found == {(fact.id, fact.scope)}, f"in {fact.scope} it finds {found}")

    def test_several_scopes_are_searched_together(self) -> None:
        facts = [make_fact(f"tea{n}", "drinks tea", scope) for n, scope in enumerate((HERE, *ELSEWHERE))]
        with self._opened(*facts) as adapter:
            found = ids(find(adapter, "drinks tea", [HERE, OTHER_USER]))
        require(sorted(found) == ["tea0", "tea2"], f"in two scopes of three it finds {found}")

    def test_no_scopes_means_no_hits(self) -> None:
        with self._opened(make_fact("tea", "drinks tea")) as adapter:
            require(not find(adapter, "drinks tea", []), "a search in no scope finds something")

    def test_the_same_id_in_two_scopes_is_two_facts(self) -> None:
        with self._opened(make_fact("same", "drinks tea"), make_fact("same", "rows", OTHER_AGENT)) as adapter:
            adapter.remove(FactId("same"), scope=OTHER_AGENT)
            require(ids(find(adapter, "drinks tea")) == ["same"], "the fact of another scope is lost")

    def test_the_scope_argument_decides_where_a_fact_lies(self) -> None:
        with self._opened() as adapter:
            put(adapter, make_fact("tea", "drinks tea", Scope.of("a@b.c")), HERE)
            found = [(hit.fact_id, hit.scope) for hit in find(adapter, "drinks tea")]
        require(found == [("tea", HERE)], f"a fact told for {HERE} is found as {found}")

    def test_an_upsert_replaces_the_fact(self) -> None:
        with self._opened(make_fact("x", "drinks tea", category="goal"), make_fact("x", "rows")) as adapter:
            require(ids(find(adapter, "rows")) == ["x"], "the new text does not find the fact just once")
            old = find(adapter, "drinks tea", filters={"category": "goal"})
            require(not old, "the old version is still found")

    def test_a_removed_fact_is_not_found(self) -> None:
        with self._opened(make_fact("tea", "drinks tea"), make_fact("bus", "takes the bus")) as adapter:
            adapter.remove(FactId("tea"), scope=HERE)
            require("tea" not in ids(find(adapter, "drinks tea")), "it is found although removed")
            require("bus" in ids(find(adapter, "takes the bus")), "another fact went with it")

    def test_removing_an_absent_fact_is_no_error(self) -> None:
        with self._opened(make_fact("tea", "drinks tea")) as adapter:
            for scope in (HERE, HERE, OTHER_USER):
                adapter.remove(FactId("tea"), scope=scope)
            adapter.remove(FactId("never-there"), scope=HERE)

    def test_clear_empties_the_given_scopes_and_no_other(self) -> None:
        facts = [make_fact(f"tea{n}", "drinks tea", scope) for n, scope in enumerate((HERE, *ELSEWHERE))]
        with self._opened(*facts) as adapter:
            adapter.clear(scopes=[HERE, OTHER_USER])
            found = ids(find(adapter, "drinks tea", [HERE, *ELSEWHERE]))
        require(found == ["tea1"], f"after a clear of two scopes of three it finds {found}")

    def test_clearing_nothing_changes_nothing(self) -> None:
        with self._opened(make_fact("tea", "drinks tea")) as adapter:
            adapter.clear(scopes=[])
            adapter.clear(scopes=[OTHER_USER])
            require(ids(find(adapter, "drinks tea")) == ["tea"], "the fact went with an empty clear")

    def test_a_rebuild_replaces_the_whole_scope(self) -> None:
        with self._opened(make_fact("gone", "drinks tea"), make_fact("kept", "drinks tea")) as adapter:
            new = [make_fact("kept", "takes the bus"), make_fact("new", "drinks tea")]
            adapter.rebuild(map(record_of, new), scopes=[HERE])
            found = ids(find(adapter, "drinks tea")) + ids(find(adapter, "takes the bus"))
        require({"kept", "new"} <= set(found), f"after a rebuild it finds only {found}")
        require("gone" not in found, "a fact outlives a rebuild that does not name it")

    def test_a_rebuild_without_records_empties_the_scope(self) -> None:
        with self._opened(make_fact("tea", "drinks tea")) as adapter:
            adapter.rebuild([], scopes=[HERE])
            require(not find(adapter, "drinks tea"), "a fact outlives an empty rebuild")

    def test_a_rebuild_leaves_other_scopes(self) -> None:
        with self._opened(*(make_fact("tea", "drinks tea", scope) for scope in ELSEWHERE)) as adapter:
            adapter.rebuild([record_of(make_fact("new", "drinks tea"))], scopes=[HERE])
            found = [hit.scope for hit in find(adapter, "drinks tea", ELSEWHERE)]
        require(set(found) == set(ELSEWHERE), f"the rebuild of another scope leaves {found}")

    def test_several_scopes_are_rebuilt_together(self) -> None:
        scopes = [HERE, OTHER_USER]
        with self._opened(make_fact("old", "drinks tea", OTHER_USER)) as adapter:
            adapter.rebuild(
                (record_of(make_fact("t", "drinks tea", scope)) for scope in scopes), scopes=scopes
            )
            found = {(hit.fact_id, hit.scope) for hit in find(adapter, "drinks tea", scopes)}
        require(found == {("t", scope) for scope in scopes}, f"it finds {found}")

    def test_there_are_at_most_top_k_hits(self) -> None:
        with self._opened(*(make_fact(f"tea{n}", "drinks tea") for n in range(6))) as adapter:
            for limit in (1, 5, 1_000):
                found = ids(find(adapter, "drinks tea", top_k=limit))
                require(len(found) == min(limit, 6), f"{len(found)} hits for top_k={limit} of 6 facts")
                require(len(set(found)) == len(found), "a fact is found twice in one search")

    def test_filters_apply_before_top_k(self) -> None:
        facts = [make_fact(f"tea{n}", "drinks tea", confidence=1.0, topics=("x",)) for n in range(20)]
        rare = make_fact(
            "rare",
            "drinks tea",
            category="hobby",
            topics=["plain", "rare"],
            confidence=0.0,
            source="thread-1",
        )
        with self._opened(*facts, rare) as adapter:
            for filters in WANTED_FILTERS:
                found = ids(find(adapter, "drinks tea", top_k=1, filters=filters))
                require(found == ["rare"], f"{filters} with top_k=1 finds {found}")

    def test_every_hit_matches_the_filters(self) -> None:
        facts = {name: make_fact(name, "drinks tea", category=name) for name in ("goal", "hobby", "other")}
        with self._opened(*facts.values()) as adapter:
            for name in facts:
                filters = {"category": name, "status": "active"}
                wanted = sorted(key for key, fact in facts.items() if matches(fact, filters))
                found = sorted(ids(find(adapter, "drinks tea", filters=filters)))
                require(found == wanted, f"{filters} finds {found}, not {wanted}")

    def test_text_in_any_script_is_found(self) -> None:
        with self._opened(*(make_fact(f"f{n}", text) for n, text in enumerate(SCRIPTS))) as adapter:
            for n, text in enumerate(SCRIPTS):
                require(f"f{n}" in ids(find(adapter, text)), f"{text!r} is not found by itself")

    def test_hostile_queries_never_raise(self) -> None:
        with self._opened(make_fact("tea", "drinks tea")) as adapter:
            for query in HOSTILE_TEXTS:
                with allowed(f"the query {query[:40]!r}"):
                    find(adapter, query)
            require(ids(find(adapter, "drinks tea")) == ["tea"], "afterwards the fact is not found")

    def test_hostile_content_is_taken(self) -> None:
        with self._opened() as adapter:
            for n, text in enumerate(HOSTILE_TEXTS):
                with allowed(f"the content {text[:40]!r}"):
                    put(adapter, make_fact(f"f{n}", f"tea {text}", topics=[text[:99]]))
            adapter.remove(FactId("f3"), scope=HERE)
            require("f3" not in ids(find(adapter, "tea")), "the fact with SQL in it stays")

    def test_an_unknown_mode_is_no_error(self) -> None:
        with self._opened(make_fact("tea", "drinks tea")) as adapter:
            found = ids(find(adapter, "drinks tea", mode="a mode of tomorrow"))
        require(found == ["tea"], "an unknown mode finds nothing")

    def test_it_works_from_several_threads(self) -> None:
        scopes = [Scope.of(f"user-{n}") for n in range(4)]
        start = threading.Barrier(len(scopes))

        def work(adapter: RetrievalAdapter, scope: Scope) -> list[FactId]:
            start.wait(timeout=10)
            for n in range(25):
                put(adapter, make_fact(f"tea{n}", "drinks tea", scope))
                find(adapter, "drinks tea", scopes)
                if n % 5:
                    adapter.remove(FactId(f"tea{n}"), scope=scope)
            return ids(find(adapter, "drinks tea", [scope]))

        with self._opened() as adapter, ThreadPoolExecutor(len(scopes)) as pool:
            for found in pool.map(work, [adapter] * len(scopes), scopes):
                require(
                    sorted(found) == ["tea0", "tea10", "tea15", "tea20", "tea5"], f"a thread finds {found}"
                )

    def test_a_repository_searches_with_it(self) -> None:
        with (
            temporary_root() as root,
            self._opened() as adapter,
            MemoryRepository(root, retrieval_adapter=adapter) as repository,
        ):
            for n, text in enumerate(("drinks green tea", "takes the bus")):
                repository.upsert_fact(HERE, FactDraft(text, id=f"f{n}"))
            found = repository.search_facts("drinks green tea", [HERE])
            repository.delete_fact(HERE, "f0")
            left = [hit.fact.id for hit in repository.search_facts("takes the bus", [HERE])]
        require("f0" in [hit.fact.id for hit in found], f"a search through a repository finds {found}")
        kinds = {hit.match_type for hit in found}
        require(
            SUBSTRING not in kinds, f"the kinds of match are {kinds}: the adapter was not asked, or hides it"
        )
        require("f1" in left, f"after the deletion of the other fact it finds {left}")

    def test_closing_twice_is_no_error(self) -> None:
        with self._opened(make_fact("tea", "drinks tea")) as adapter:
            adapter.close()
