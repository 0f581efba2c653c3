"""Threads, adapters that use the store themselves, and bounds on time and memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from deermem.model.changes import ChangeSet
from deermem.model.identity import Scope, UserId
from deermem.model.manifest import NO_MANIFEST
from deermem.model.snapshot import Snapshot
from deermem.search.indexer import Indexer
from deermem.search.ledger import BACKLOG, Ledgers
from deermem.testing.retrieval_samples import HERE, OTHER_AGENT, OTHER_USER
from tests.search.store import Store
from tests.search.watched import WatchedAdapter

WAIT = 30
A_MOMENT = 0.1  # how long a thread is watched that must not get on


def search(indexer: Indexer, query: str, *scopes: Scope) -> list[tuple[str, str]]:
    hits = indexer.search(query, scopes or [HERE], top_k=1_000)
    return sorted((hit.fact.id, hit.match_type) for hit in hits)


class Gate:
    """Stops a thread inside the adapter until it is opened; others pass once it was reached."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            assert self.opened.wait(WAIT)


@contextmanager
def stuck_in(adapter: WatchedAdapter, method: str, store: Store) -> Iterator[Gate]:
    """Runs the block while another thread's commit is stuck in the adapter, at the gate."""
    adapter.before[method] = gate = Gate()
    with ThreadPoolExecutor(1) as pool:
        stuck: Future[object] = pool.submit(store.put, HERE, stuck="tea")
        assert gate.reached.wait(WAIT)
        try:
            yield gate
        finally:
            gate.opened.set()
        stuck.result(WAIT)


def test_a_commit_does_not_wait_for_a_thread_that_is_stuck_in_the_adapter(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    with stuck_in(adapter, "upsert", store):
        store.put(HERE, b="tea")
        assert [call[0] for call in adapter.told("upsert")] == ["stuck"]
    assert [call[0] for call in adapter.told("upsert")] == ["stuck", "b"]
    assert search(indexer, "tea") == [("b", "adapter"), ("stuck", "adapter")]


def test_a_search_that_waits_too_long_goes_by_substring(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    with stuck_in(adapter, "upsert", store):
        assert search(indexer, "tea") == [("stuck", "substring")]


def test_a_rebuild_on_demand_that_waits_too_long_says_so(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    with stuck_in(adapter, "upsert", store):
        report = indexer.rebuild([HERE])
    assert (report.indexed, report.failed, report.reason) == (0, 1, "the index is busy")


def test_one_users_slow_index_does_not_hold_up_another_user(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    with stuck_in(adapter, "upsert", store):
        store.put(OTHER_USER, b="tea")
        assert search(indexer, "tea", OTHER_USER) == [("b", "adapter")]


def test_a_search_waits_for_the_commit_that_is_being_told(store: Store, adapter: WatchedAdapter) -> None:
    indexer = Indexer(adapter, store.load, patience=WAIT)
    store.tell = indexer.committed
    store.put(HERE, a="tea")
    search(indexer, "tea")
    adapter.calls.clear()
    with ThreadPoolExecutor(1) as pool, stuck_in(adapter, "upsert", store) as gate:
        found = pool.submit(search, indexer, "tea")
        with pytest.raises(TimeoutError):
            found.result(A_MOMENT)
        gate.opened.set()
        assert found.result(WAIT) == [("a", "adapter"), ("stuck", "adapter")]
    assert adapter.told("rebuild") == []


def test_commits_beyond_the_backlog_are_given_up_and_the_scope_is_rebuilt(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    with stuck_in(adapter, "upsert", store):
        for n in range(BACKLOG + 3):
            store.put(HERE, **{f"n{n}": "tea"})
    assert len(adapter.told("upsert")) < BACKLOG
    assert len(search(indexer, "tea")) == BACKLOG + 4
    assert len(adapter.told("rebuild")) == 1


def test_an_adapter_that_writes_at_every_commit_does_not_hold_its_caller_for_ever(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    adapter.before["upsert"] = lambda: store.put(HERE, **{f"n{len(adapter.calls)}": "tea"})
    store.put(HERE, a="tea")
    adapter.before.clear()
    assert len(search(indexer, "tea")) == len(store.load(HERE).facts)


def test_commits_made_while_a_scope_is_rebuilt_are_not_lost(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put_elsewhere(HERE, a="tea", gone="tea")

    def meanwhile() -> None:
        adapter.before.clear()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.put, HERE, a="coffee", b="tea").result(WAIT)
            pool.submit(store.delete, HERE, "gone").result(WAIT)

    adapter.before["rebuild"] = meanwhile
    search(indexer, "tea")
    adapter.calls.clear()
    assert search(indexer, "tea") == [("b", "adapter")]
    assert adapter.told("rebuild") == []


def test_a_scope_marked_stale_while_it_is_rebuilt_is_rebuilt_again(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put_elsewhere(HERE, a="tea")
    adapter.before["rebuild"] = lambda: indexer.mark_stale(HERE.user)
    search(indexer, "tea")
    adapter.before.clear()
    adapter.calls.clear()
    search(indexer, "tea")
    assert len(adapter.told("rebuild")) == 1


class HookedReads:
    """Reads a store, and runs a hook after the reading that a search does once it has the turn."""

    def __init__(self, store: Store, adapter: WatchedAdapter) -> None:
        self.hooks: list[Callable[[], object]] = []
        self.store = store
        self.indexer = Indexer(adapter, self.load, patience=0.05)
        store.tell = self.indexer.committed

    def after_the_reading_in_turn(self, hook: Callable[[], object]) -> None:
        self.hooks = [lambda: None, hook]

    def load(self, scope: Scope) -> Snapshot:
        snapshot = self.store.load(scope)
        if self.hooks:
            self.hooks.pop(0)()
        return snapshot


def test_a_commit_made_between_reading_and_rebuilding_follows_the_rebuild(
    store: Store, adapter: WatchedAdapter
) -> None:
    reads = HookedReads(store, adapter)
    store.put_elsewhere(HERE, a="tea")
    reads.after_the_reading_in_turn(lambda: store.put(HERE, a="coffee", b="tea"))
    assert search(reads.indexer, "tea") == [("b", "adapter")]
    adapter.calls.clear()
    assert search(reads.indexer, "tea") == [("b", "adapter")]
    assert [call[0] for call in adapter.calls] == ["search"]


def test_a_search_that_a_commit_overtakes_shows_the_state_after_it(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    search(indexer, "tea")

    def write() -> None:
        adapter.before.clear()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.put, HERE, a="coffee", b="tea").result(WAIT)

    adapter.before["search"] = write
    adapter.calls.clear()
    assert search(indexer, "tea") == [("b", "adapter")]
    assert adapter.told("rebuild") == []


def test_a_search_that_fails_while_a_commit_is_being_told_makes_the_scope_stale(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    search(indexer, "tea")
    gate = adapter.before["upsert"] = Gate()
    with ThreadPoolExecutor(1) as pool:
        commits = []

        def fail_meanwhile() -> None:
            commits.append(pool.submit(store.put, HERE, b="tea"))
            assert gate.reached.wait(WAIT)
            raise ConnectionError

        adapter.before["search"] = fail_meanwhile
        assert search(indexer, "tea") == [("a", "substring")]
        del adapter.before["search"]
        gate.opened.set()
        commits[0].result(WAIT)
    adapter.calls.clear()
    search(indexer, "tea")
    assert [call[0] for call in adapter.calls] == ["rebuild", "search"]


def test_a_search_that_commits_overtake_again_and_again_comes_to_an_end(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    adapter.before["search"] = lambda: store.put(HERE, **{f"n{store.loads}": "tea"})
    assert ("a", "adapter") in search(indexer, "tea")


def test_a_commit_that_is_told_while_a_search_reads_needs_no_rebuild(
    store: Store, adapter: WatchedAdapter
) -> None:
    reads = HookedReads(store, adapter)
    store.put(HERE, a="tea")
    search(reads.indexer, "tea")
    late = store.put_elsewhere(HERE, b="tea")
    adapter.calls.clear()
    reads.after_the_reading_in_turn(lambda: reads.indexer.committed(HERE.user, late))
    assert search(reads.indexer, "tea") == [("a", "adapter"), ("b", "adapter")]
    assert [call[0] for call in adapter.calls] == ["upsert", "search"]


def test_a_scope_marked_stale_after_it_was_read_is_rebuilt_again(
    store: Store, adapter: WatchedAdapter
) -> None:
    reads = HookedReads(store, adapter)
    store.put_elsewhere(HERE, a="tea")
    reads.after_the_reading_in_turn(lambda: reads.indexer.mark_stale(HERE.user))
    search(reads.indexer, "tea")
    assert [call[0] for call in adapter.calls] == ["rebuild", "search"] * 2


def test_a_slow_search_does_not_keep_the_turn(store: Store, adapter: WatchedAdapter) -> None:
    indexer = Indexer(adapter, store.load, patience=WAIT)
    store.put_elsewhere(HERE, a="tea")
    rebuilding = adapter.before["rebuild"] = Gate()
    searching = adapter.before["search"] = Gate()
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(search, indexer, "tea")
        assert rebuilding.reached.wait(WAIT)
        waiting = pool.submit(search, indexer, "tea")
        with pytest.raises(TimeoutError):
            waiting.result(A_MOMENT)
        rebuilding.opened.set()
        try:
            assert waiting.result(WAIT / 2) == [("a", "adapter")]
        finally:
            searching.opened.set()
        assert slow.result(WAIT) == [("a", "adapter")]


def test_an_adapter_may_read_the_store_and_search_it_from_inside_any_call(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    seen = []
    for method in ("upsert", "remove", "clear", "rebuild", "search"):
        adapter.before[method] = lambda: seen.append((store.load(HERE).revision, search(indexer, "tea")))
    store.put(HERE, a="tea")
    store.delete(HERE, "a")
    store.apply(HERE.user, ChangeSet(clears=frozenset([HERE.agent])))
    store.put(HERE, b="tea")
    assert search(indexer, "tea") == [("b", "adapter")]
    assert seen[0] == (1, [("a", "substring")])
    assert indexer.rebuild([HERE]).indexed == 1
    assert {call[0] for call in adapter.calls} == {"upsert", "remove", "clear", "rebuild", "search"}


def test_an_adapter_may_search_from_a_thread_of_its_own_inside_a_call(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    seen = []

    def in_a_thread() -> None:
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(search, indexer, "tea").result(WAIT))

    adapter.before["upsert"] = in_a_thread
    store.put(HERE, a="tea")
    assert seen == [[("a", "substring")]]


@pytest.mark.parametrize("own_thread", [True, False])
def test_an_adapter_may_write_from_inside_any_call(
    store: Store, adapter: WatchedAdapter, indexer: Indexer, own_thread: bool
) -> None:
    def write(name: str) -> None:
        del adapter.before[name]
        if not own_thread:
            store.put(HERE, **{f"in_{name}": "tea"})
            return
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.put, HERE, **{f"in_{name}": "tea"}).result(WAIT)

    for method in ("upsert", "rebuild", "search"):
        adapter.before[method] = partial(write, method)
    store.put(HERE, a="tea")
    search(indexer, "tea")
    assert sorted(fact_id for _, fact_id in adapter.facts) == ["a", "in_rebuild", "in_search", "in_upsert"]
    adapter.calls.clear()
    assert len(search(indexer, "tea")) == 4
    assert [call[0] for call in adapter.calls] == ["search"]


def test_a_rebuild_from_inside_a_call_is_refused(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    reports = []
    adapter.before["upsert"] = lambda: reports.append(indexer.rebuild([HERE]))
    store.put(HERE, a="tea")
    assert [report.reason for report in reports] == ["the retrieval adapter is closed or is the caller"]


def test_close_from_inside_a_call_does_not_wait_for_that_call(store: Store, adapter: WatchedAdapter) -> None:
    indexer = Indexer(adapter, store.load, patience=WAIT * 10)
    store.tell = indexer.committed
    adapter.before["upsert"] = indexer.close
    store.put(HERE, a="tea")
    assert len(adapter.told("close")) == 1


def test_close_waits_for_the_calls_that_are_under_way(store: Store, adapter: WatchedAdapter) -> None:
    indexer = Indexer(adapter, store.load, patience=WAIT)
    store.tell = indexer.committed
    with ThreadPoolExecutor(1) as pool, stuck_in(adapter, "upsert", store) as gate:
        closing = pool.submit(indexer.close)
        with pytest.raises(TimeoutError):
            closing.result(A_MOMENT)
        assert adapter.told("close") == []
        gate.opened.set()
        closing.result(WAIT)
    assert [call[0] for call in adapter.calls] == ["upsert", "close"]


def test_many_threads_keep_the_index_equal_to_the_store(store: Store, adapter: WatchedAdapter) -> None:
    indexer = Indexer(adapter, store.load, patience=WAIT)
    store.tell = indexer.committed
    scopes = [HERE, OTHER_AGENT, OTHER_USER]
    start = threading.Barrier(6)

    def work(number: int) -> None:
        scope = scopes[number % 3]
        start.wait(WAIT)
        for n in range(40):
            store.put(scope, **{f"w{number}n{n}": "tea"})
            found = dict(search(indexer, "tea", scope))
            assert f"w{number}n{n}" in found, "a search after the commit does not show it"
            if n % 3:
                store.delete(scope, f"w{number}n{n}")
            elif n % 7 == 0:
                store.put_elsewhere(scope, **{f"w{number}e{n}": "tea"})

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert adapter.clashes == 0
    for scope in scopes:
        stored = [(fact.id, "adapter") for fact in store.load(scope).facts]
        assert search(indexer, "tea", scope) == sorted(stored)


def test_facts_of_one_user_are_found_as_of_one_revision(store: Store, adapter: WatchedAdapter) -> None:
    store.put(HERE, a="tea one")
    store.put(OTHER_AGENT, b="tea one")
    interruptions = iter([True])

    def load(scope: Scope) -> Snapshot:
        snapshot = store.load(scope)
        if next(interruptions, False):
            store.put_elsewhere(HERE, a="tea two")
        return snapshot

    for indexer in (Indexer(None, load), Indexer(adapter, load)):
        interruptions = iter([True])
        contents = {hit.fact.content for hit in indexer.search("tea", [HERE, OTHER_AGENT])}
        assert contents == {"tea two", "tea one"}
        store.put_elsewhere(HERE, a="tea one")


def test_a_store_that_never_stands_still_is_searched_by_substring(adapter: WatchedAdapter) -> None:
    store = Store()

    def load(scope: Scope) -> Snapshot:
        store.put_elsewhere(HERE, **{f"n{store.loads}": "tea"})
        return store.load(scope)

    hits = Indexer(adapter, load).search("tea", [HERE, OTHER_AGENT])
    assert {hit.match_type for hit in hits} == {"substring"}


def test_a_store_that_reads_several_scopes_at_once_is_asked_to(adapter: WatchedAdapter) -> None:
    store = Store()
    store.put(HERE, a="tea")
    store.put(OTHER_AGENT, b="tea")
    store.put(OTHER_USER, c="tea")
    groups: list[list[Scope]] = []

    def load_all(scopes: Sequence[Scope]) -> list[Snapshot]:
        groups.append(list(scopes))
        return [store.load(scope) for scope in scopes]

    def load(scope: Scope) -> Snapshot:
        raise AssertionError(f"{scope} is read alone")

    for chosen in (None, adapter):
        hits = Indexer(chosen, load, load_all=load_all).search("tea", [HERE, OTHER_USER, OTHER_AGENT])
        assert sorted(hit.fact.id for hit in hits) == ["a", "b", "c"]
    assert [HERE, OTHER_AGENT] in groups
    assert {len({scope.user for scope in group}) for group in groups} == {1}


def test_a_store_that_goes_back_to_an_older_revision_is_indexed_anew(store: Store, indexer: Indexer) -> None:
    store.put(HERE, a="tea")
    store.put(HERE, b="tea")
    search(indexer, "tea")
    store.states[HERE.user] = (NO_MANIFEST, {})
    store.put_elsewhere(HERE, c="tea")
    assert search(indexer, "tea") == [("c", "adapter")]


def test_of_few_users_it_is_remembered_what_the_index_shows(store: Store, adapter: WatchedAdapter) -> None:
    indexer = Indexer(adapter, store.load, max_users=2)
    store.tell = indexer.committed
    scopes = [Scope.of(f"user-{n}") for n in range(5)]
    for _ in range(2):
        for scope in scopes:
            store.put(scope, **{f"n{store.loads}": "tea"})
            assert len(search(indexer, "tea", scope)) == len(store.load(scope).facts)
    assert len(adapter.told("rebuild")) == 2 * len(scopes)


def test_ledgers_are_bounded_and_the_least_recently_used_idle_one_goes() -> None:
    ledgers = Ledgers(3)
    users = [UserId.parse(name) for name in "abcdef"]
    busy = ledgers.of(users[0])
    busy.busy = True
    kept = ledgers.of(users[1])
    for user in users[2:4]:
        ledgers.of(user)
        assert ledgers.of(users[1]) is kept
    for user in users[4:]:
        ledgers.of(user)
    assert len(ledgers) == 3
    assert ledgers.of(users[0]) is busy
    assert ledgers.of(users[1]) is not kept
