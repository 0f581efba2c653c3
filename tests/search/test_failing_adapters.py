"""Whatever an adapter does, commits stand and searches show what is stored."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from deermem.errors import Corruption, InvalidInputError
from deermem.model.identity import FactId, Scope
from deermem.model.snapshot import Snapshot
from deermem.search.indexer import Indexer
from deermem.search.port import MAX_TOP_K, AdapterHit
from deermem.testing.retrieval_samples import HERE, OTHER_AGENT, OTHER_USER
from tests.search.store import Store, clearing
from tests.search.watched import WatchedAdapter


def fail() -> None:
    raise ConnectionError("no route to the index")


def search(indexer: Indexer, query: str, *scopes: Scope, **options: Any) -> list[tuple[str, str]]:
    return [(hit.fact.id, hit.match_type) for hit in indexer.search(query, scopes or [HERE], **options)]


def hit(fact_id: str, scope: Scope = HERE, score: Any = 1.0) -> AdapterHit:
    return AdapterHit(FactId(fact_id), scope, score)


def unhashable_scope() -> Scope:
    scope = Scope(HERE.user)
    object.__setattr__(scope, "agent", [])
    return scope


@pytest.mark.parametrize("method", ["upsert", "remove", "clear"])
def test_an_adapter_that_fails_at_a_commit_is_rebuilt_before_the_next_search(
    store: Store, adapter: WatchedAdapter, indexer: Indexer, method: str
) -> None:
    store.put(HERE, a="tea", b="tea")
    search(indexer, "tea")
    adapter.before[method] = fail
    if method == "clear":
        store.apply(HERE.user, clearing())
    else:
        store.put(HERE, c="tea")
        store.delete(HERE, "a")
    del adapter.before[method]
    adapter.calls.clear()
    found = search(indexer, "tea")
    assert found == ([] if method == "clear" else [("b", "adapter"), ("c", "adapter")])
    assert [call[0] for call in adapter.calls] == ["rebuild", "search"]


def test_a_scope_that_failed_at_a_commit_stays_stale_although_later_commits_succeed(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    search(indexer, "tea")
    adapter.before["upsert"] = fail
    store.put(HERE, b="tea")
    del adapter.before["upsert"]
    store.put(HERE, c="tea")
    assert search(indexer, "tea") == [("a", "adapter"), ("b", "adapter"), ("c", "adapter")]


def test_a_failure_in_one_scope_leaves_the_other_scopes_current(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    store.put(OTHER_AGENT, b="tea")
    search(indexer, "tea", HERE, OTHER_AGENT)
    adapter.before["upsert"] = fail
    store.put(OTHER_AGENT, c="tea")
    adapter.calls.clear()
    assert search(indexer, "tea", HERE) == [("a", "adapter")]
    assert adapter.told("rebuild") == []


def test_a_search_that_fails_is_answered_by_substring_and_followed_by_a_rebuild(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    search(indexer, "tea")
    adapter.before["search"] = fail
    assert search(indexer, "tea") == [("a", "substring")]
    del adapter.before["search"]
    adapter.calls.clear()
    assert search(indexer, "tea") == [("a", "adapter")]
    assert [call[0] for call in adapter.calls] == ["rebuild", "search"]


def test_a_rebuild_that_fails_leaves_the_scope_stale_and_the_answer_to_the_substring_search(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put_elsewhere(HERE, a="tea")
    adapter.before["rebuild"] = fail
    assert search(indexer, "tea") == [("a", "substring")]
    assert adapter.told("search") == []
    del adapter.before["rebuild"]
    assert search(indexer, "tea") == [("a", "adapter")]


@pytest.mark.parametrize(
    "garbage",
    [
        7,
        "tea",
        [None],
        [("a", HERE, 1.0)],
        [hit("a"), {"fact_id": "a"}],
        [hit("a", score=float("nan"))],
        [hit("a", score=float("inf"))],
        [hit("a", score="1.0")],
        [hit("a", score=None)],
        [AdapterHit(FactId("a"), HERE, 1.0, match_type=None)],  # type: ignore[arg-type]
        [AdapterHit(["a"], HERE, 1.0)],  # type: ignore[arg-type]
        [AdapterHit(FactId("a"), "alice", 1.0)],  # type: ignore[arg-type]
        [AdapterHit(FactId("a"), unhashable_scope(), 1.0)],
    ],
)
def test_an_answer_that_is_no_list_of_hits_counts_as_a_failure(
    store: Store, adapter: WatchedAdapter, indexer: Indexer, garbage: Any
) -> None:
    store.put(HERE, a="tea")
    adapter.answer = garbage
    assert search(indexer, "tea") == [("a", "substring")]


def test_an_answer_without_an_end_is_cut_off(store: Store, adapter: WatchedAdapter, indexer: Indexer) -> None:
    store.put(HERE, a="tea")
    taken = []

    def endless() -> Any:
        while True:
            taken.append(1)
            yield hit("a")

    adapter.answer = endless()
    assert search(indexer, "tea") == [("a", "adapter")]
    assert len(taken) == MAX_TOP_K


def test_a_hit_outside_the_requested_scopes_is_dropped(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    for scope in (OTHER_AGENT, OTHER_USER):
        store.put(scope, a="secret", b="secret")
    adapter.answer = [hit("b", OTHER_USER), hit("b", OTHER_AGENT), hit("a", OTHER_USER), hit("a")]
    (found,) = indexer.search("tea", [HERE])
    assert (found.fact.content, found.fact.scope) == ("tea", HERE)


def test_a_hit_on_a_fact_that_is_gone_is_dropped_and_the_scope_rebuilt(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea", b="tea")
    search(indexer, "tea")
    adapter.answer = [hit("gone"), hit("a")]
    assert search(indexer, "tea") == [("a", "adapter")]
    adapter.answer = None
    adapter.calls.clear()
    search(indexer, "tea")
    assert [call[0] for call in adapter.calls] == ["rebuild", "search"]


def test_an_index_that_lags_behind_never_shows_an_old_text(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="green tea")
    search(indexer, "tea")
    adapter.answer = [hit("a")]
    store.put(HERE, a="black coffee")
    assert [found.fact.content for found in indexer.search("tea", [HERE])] == ["black coffee"]


def test_a_hit_that_does_not_match_the_filters_is_dropped(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea", b="tea")
    adapter.answer = [hit("a"), hit("b")]
    assert search(indexer, "tea", filters={"id": "b"}) == [("b", "adapter")]


def test_an_adapter_cannot_loosen_the_filters(
    store: Store, adapter: WatchedAdapter, indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loosen(_query: str, /, *, filters: dict[str, object], **_asked: object) -> list[AdapterHit]:
        filters.clear()
        return [hit("a"), hit("b")]

    monkeypatch.setattr(adapter, "search", loosen)
    store.put(HERE, a="tea", b="tea")
    assert search(indexer, "tea", filters={"id": "b"}) == [("b", "substring")]


def test_dropped_hits_and_doubles_do_not_count_for_top_k(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea", b="tea", c="tea")
    adapter.answer = [hit("x"), hit("a"), hit("a"), hit("b", OTHER_USER), hit("c"), hit("b")]
    assert search(indexer, "tea", top_k=2) == [("a", "adapter"), ("c", "adapter")]


def test_the_order_of_the_adapter_is_kept(store: Store, adapter: WatchedAdapter, indexer: Indexer) -> None:
    store.put(HERE, a="tea", b="tea", c="tea")
    adapter.answer = [hit("b", score=0.1), hit("c", score=-5), hit("a", score=0.9)]
    found = indexer.search("tea", [HERE])
    assert [(each.fact.id, each.score) for each in found] == [("b", 0.1), ("c", -5.0), ("a", 0.9)]


def test_the_adapter_is_asked_for_what_the_caller_wants(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    indexer.search(" tea ", [HERE, OTHER_USER], top_k=3, mode="meaning", filters={"category": "goal"})
    assert adapter.told("search") == [("tea", (HERE, OTHER_USER), 3, "meaning", {"category": "goal"})]


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("query", {"query": " "}),
        ("top_k", {"top_k": 0}),
        ("mode", {"mode": ""}),
        ("filters.colour", {"filters": {"colour": "green"}}),
    ],
)
def test_bad_input_is_refused_before_anything_is_read_or_asked(
    store: Store, adapter: WatchedAdapter, indexer: Indexer, field: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        indexer.search(**{"query": "tea", "scopes": [HERE], **options})
    assert caught.value.field == field
    assert (store.loads, adapter.calls) == (0, [])


def test_a_search_in_no_scope_finds_nothing_and_asks_nobody(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    adapter.calls.clear()
    assert indexer.search("tea", []) == []
    assert adapter.calls == []


@pytest.mark.parametrize("current", [True, False])
def test_what_reading_raises_a_search_raises_and_the_next_search_works(
    store: Store, adapter: WatchedAdapter, current: bool
) -> None:
    store.put(HERE, a="tea")
    broken: list[Exception] = []

    def load(scope: Scope) -> Snapshot:
        if broken:
            raise broken[0]
        return store.load(scope)

    indexer = Indexer(adapter, load)
    if current:
        search(indexer, "tea")
    broken.append(Corruption("memory.json", "is no JSON"))
    with pytest.raises(Corruption):
        indexer.search("tea", [HERE])
    with pytest.raises(Corruption):
        indexer.rebuild([HERE])
    broken.clear()
    assert search(indexer, "tea") == [("a", "adapter")]


@pytest.mark.parametrize("method", ["upsert", "rebuild", "search"])
def test_an_interrupt_inside_the_adapter_goes_through_and_leaves_the_indexer_usable(
    store: Store, adapter: WatchedAdapter, indexer: Indexer, method: str
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    store.put(HERE, a="tea")
    if method != "rebuild":
        search(indexer, "tea")
    adapter.before[method] = interrupt
    actions: dict[str, Callable[[], object]] = {
        "upsert": lambda: store.put(HERE, b="tea"),
        "rebuild": lambda: search(indexer, "tea"),
        "search": lambda: search(indexer, "tea"),
    }
    with pytest.raises(KeyboardInterrupt):
        actions[method]()
    adapter.before.clear()
    store.put(HERE, c="tea")
    assert search(indexer, "tea") == [
        (fact_id, "adapter") for fact_id in ("a", "b", "c") if fact_id != "b" or method == "upsert"
    ]


def test_a_rebuild_on_demand_reports_how_many_facts_were_indexed(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put_elsewhere(HERE, a="tea", b="tea")
    store.put_elsewhere(OTHER_USER, c="tea")
    report = indexer.rebuild([HERE, OTHER_AGENT, OTHER_USER])
    assert (report.supported, report.indexed, report.failed, report.reason) == (True, 3, 0, "")
    assert sorted(fact_id for _, fact_id in adapter.facts) == ["a", "b", "c"]


def test_a_rebuild_on_demand_replaces_also_what_is_current(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    search(indexer, "tea")
    adapter.facts.clear()
    assert indexer.rebuild([HERE]).indexed == 1
    assert search(indexer, "tea") == [("a", "adapter")]


def test_a_rebuild_on_demand_that_fails_says_what_was_raised_and_not_its_message(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put_elsewhere(HERE, a="tea", b="tea")
    adapter.before["rebuild"] = fail
    report = indexer.rebuild([HERE])
    assert (report.supported, report.indexed, report.failed) == (True, 0, 2)
    assert report.reason == "ConnectionError"


def test_a_current_scope_is_stale_after_a_rebuild_on_demand_that_failed(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    search(indexer, "tea")
    adapter.before["rebuild"] = fail
    indexer.rebuild([HERE])
    adapter.before.clear()
    adapter.calls.clear()
    search(indexer, "tea")
    assert [call[0] for call in adapter.calls] == ["rebuild", "search"]


def test_a_search_that_fails_while_a_commit_is_told_makes_the_scope_stale(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    search(indexer, "tea")

    def write_and_fail() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.put, HERE, b="tea").result(30)
        raise ConnectionError

    adapter.before["search"] = write_and_fail
    search(indexer, "tea")
    adapter.before.clear()
    adapter.calls.clear()
    search(indexer, "tea")
    assert [call[0] for call in adapter.calls] == ["rebuild", "search"]


def test_a_rebuild_without_an_adapter_is_not_supported(store: Store) -> None:
    report = Indexer(None, store.load).rebuild([HERE])
    assert (report.supported, report.indexed, report.failed) == (False, 0, 0)
    assert report.reason == "no retrieval adapter is configured"


def test_the_adapter_is_closed_once_and_its_error_stays_inside(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    adapter.before["close"] = fail
    indexer.close()
    indexer.close()
    assert len(adapter.told("close")) == 1


def test_after_close_commits_are_taken_and_searches_go_on_by_substring(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    indexer.close()
    adapter.calls.clear()
    store.put(HERE, b="tea")
    assert search(indexer, "tea") == [("a", "substring"), ("b", "substring")]
    assert indexer.rebuild([HERE]).reason == "the retrieval adapter is closed or is the caller"
    assert adapter.calls == []


def test_edits_that_were_no_commits_are_seen_after_the_user_is_marked_stale(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    store.put(OTHER_USER, a="tea")
    search(indexer, "tea", HERE, OTHER_USER)
    edited = store.put_elsewhere(Scope.of("scratch"), a="coffee").written[0]
    manifest, _ = store.states[HERE.user]
    store.states[HERE.user] = manifest, {(HERE.agent, FactId("a")): edited}
    adapter.calls.clear()
    indexer.mark_stale(HERE.user)
    assert search(indexer, "coffee", HERE) == [("a", "adapter")]
    search(indexer, "tea", OTHER_USER)
    assert [call[1] for call in adapter.told("rebuild")] == [(HERE,)]
    indexer.mark_stale()
    search(indexer, "tea", OTHER_USER)
    assert [call[1] for call in adapter.told("rebuild")] == [(HERE,), (OTHER_USER,)]
