"""An adapter is told of commits: after the locks are released, of the addressed facts only."""

from __future__ import annotations

import logging

import pytest

from deermem.model.changes import ChangeSet, Delta
from deermem.model.identity import DEFAULT_AGENT, Scope
from deermem.model.summaries import Section, SummaryPatch
from deermem.search.indexer import Indexer
from deermem.testing.retrieval_samples import HERE, OTHER_AGENT, OTHER_USER, ids
from tests.search.store import Store, clearing, writing
from tests.search.watched import WatchedAdapter

pytestmark = pytest.mark.usefixtures("indexer")


def contents(indexer: Indexer, query: str, *scopes: Scope) -> list[str]:
    return sorted(hit.fact.content for hit in indexer.search(query, scopes or [HERE], top_k=1_000))


def test_a_commit_tells_of_addressed_facts_only(store: Store, adapter: WatchedAdapter) -> None:
    store.put(HERE, a="tea", b="tea", c="tea")
    adapter.calls.clear()
    store.put(HERE, b="coffee", d="tea")
    store.delete(HERE, "a")
    assert [call[:2] for call in adapter.calls] == [("upsert", "b"), ("upsert", "d"), ("remove", "a")]


def test_an_upsert_that_changes_nothing_is_not_told(store: Store, adapter: WatchedAdapter) -> None:
    store.put(HERE, a="tea")
    adapter.calls.clear()
    store.put(HERE, a="tea")
    assert adapter.calls == []


def test_the_adapter_is_called_after_the_locks_are_released(store: Store, adapter: WatchedAdapter) -> None:
    held = []
    for method in ("upsert", "remove", "clear"):
        adapter.before[method] = lambda: held.append(store.lock.locked())
    store.put(HERE, a="tea", b="tea")
    store.delete(HERE, "a")
    store.apply(HERE.user, clearing())
    assert held == [False] * 4


def test_a_fact_is_told_with_its_scope_and_its_path_below_the_storage_root(
    store: Store, adapter: WatchedAdapter
) -> None:
    store.put(OTHER_AGENT, fact_1="tea")
    assert adapter.told("upsert") == [
        ("fact_1", OTHER_AGENT, "users/alice/agents/research-agent/facts/c8/fact_1.md")
    ]


def test_without_users_the_path_starts_in_the_storage_root(store: Store, adapter: WatchedAdapter) -> None:
    store.put(Scope.of(None), fact_1="tea")
    assert adapter.told("upsert")[0][2] == "agents/__default__/facts/c8/fact_1.md"


def test_an_adapter_knows_a_user_by_the_bucket(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    raw = Scope.of("a@b.c")
    encoded = Scope.of(raw.user.bucket)
    store.put(raw, x="tea")
    (hit,) = indexer.search("tea", [raw])
    assert adapter.told("upsert")[0][1] == adapter.told("search")[0][1][0] == encoded
    assert hit.fact.scope == raw


def test_two_names_of_one_user_are_searched_once(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    raw = Scope.of("a@b.c")
    store.put(raw, x="tea")
    indexer.search("tea", [raw, Scope.of(raw.user.bucket), raw])
    assert len(adapter.told("search")[0][1]) == 1


def test_a_clear_is_told_as_one_and_its_facts_are_not_removed_one_by_one(
    store: Store, adapter: WatchedAdapter
) -> None:
    store.put(HERE, a="tea", b="tea")
    store.put(OTHER_AGENT, c="tea")
    adapter.calls.clear()
    store.apply(HERE.user, ChangeSet(clear_all=True))
    assert adapter.calls == [("clear", (HERE, OTHER_AGENT))]


def test_a_commit_of_one_user_is_not_told_for_another(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    store.put(OTHER_USER, b="tea")
    store.apply(HERE.user, clearing())
    assert ids(list(adapter.search("tea", scopes=[OTHER_USER], top_k=9, mode="x", filters={}))) == ["b"]
    assert contents(indexer, "tea", OTHER_USER) == ["tea"]


def test_own_commits_need_no_rebuild(store: Store, adapter: WatchedAdapter, indexer: Indexer) -> None:
    store.put(HERE, a="tea one")
    contents(indexer, "tea")
    adapter.calls.clear()
    store.put(HERE, b="tea two")
    assert contents(indexer, "tea") == ["tea one", "tea two"]
    store.delete(HERE, "a")
    assert contents(indexer, "tea") == ["tea two"]
    store.apply(HERE.user, clearing())
    assert contents(indexer, "tea") == []
    assert adapter.told("rebuild") == []


def test_a_commit_to_one_agent_leaves_the_others_current(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea one")
    store.put(OTHER_AGENT, b="tea two")
    contents(indexer, "tea", HERE, OTHER_AGENT)
    adapter.calls.clear()
    store.put(OTHER_AGENT, c="tea three")
    assert contents(indexer, "tea", HERE) == ["tea one"]
    assert adapter.told("rebuild") == []


def test_a_commit_of_summaries_alone_leaves_scopes_current(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    contents(indexer, "tea")
    adapter.calls.clear()
    patch = SummaryPatch({("user", "workContext"): Section("rows")})
    store.apply(HERE.user, ChangeSet(summaries=patch))
    assert contents(indexer, "tea") == ["tea"]
    assert [call[0] for call in adapter.calls] == ["search"]


def test_a_cleared_scope_is_current_without_a_rebuild(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea")
    store.apply(HERE.user, clearing())
    assert contents(indexer, "tea") == []
    assert adapter.told("rebuild") == []


def test_a_scope_that_was_never_indexed_is_rebuilt_before_its_first_search(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put_elsewhere(HERE, a="tea")
    assert contents(indexer, "tea") == ["tea"]
    assert [call[0] for call in adapter.calls] == ["rebuild", "search"]


def test_a_rebuild_hands_over_facts_with_scope_and_path(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put_elsewhere(OTHER_AGENT, fact_1="tea")
    contents(indexer, "tea", OTHER_AGENT)
    record = ("fact_1", OTHER_AGENT, "users/alice/agents/research-agent/facts/c8/fact_1.md")
    assert adapter.told("rebuild") == [((record,), (OTHER_AGENT,))]


def test_a_commit_of_another_process_is_seen_by_the_next_search(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    store.put(HERE, a="tea one")
    contents(indexer, "tea")
    store.put_elsewhere(HERE, b="tea two")
    assert contents(indexer, "tea") == ["tea one", "tea two"]
    store.put_elsewhere(HERE, c="tea three")
    store.put(HERE, d="tea four")
    assert contents(indexer, "tea") == ["tea four", "tea one", "tea three", "tea two"]
    assert len(adapter.told("rebuild")) == 3


def test_commits_that_are_told_in_the_wrong_order_are_all_seen(store: Store, indexer: Indexer) -> None:
    store.put(HERE, a="tea one", gone="tea")
    contents(indexer, "tea")
    first = store.put_elsewhere(HERE, a="tea two", b="tea three")
    store.tell = None
    second = store.delete(HERE, "gone")
    indexer.committed(HERE.user, second)
    indexer.committed(HERE.user, first)
    assert contents(indexer, "tea") == ["tea three", "tea two"]


def test_a_commit_told_late_does_not_bring_an_old_text_back(
    store: Store, adapter: WatchedAdapter, indexer: Indexer
) -> None:
    late = store.put_elsewhere(HERE, a="old tea")
    store.put_elsewhere(HERE, a="new tea")
    assert contents(indexer, "tea") == ["new tea"]
    adapter.calls.clear()
    indexer.committed(HERE.user, late)
    assert contents(indexer, "new tea") == ["new tea"]
    assert [call[0] for call in adapter.calls] == ["search"]


def test_a_delta_of_a_cleared_agent_that_also_writes_ends_with_what_is_written(
    store: Store, indexer: Indexer, adapter: WatchedAdapter
) -> None:
    gone = store.put(HERE, a="tea")
    kept = store.put_elsewhere(HERE, b="tea two")
    both = Delta(kept.revision, kept.last_updated, kept.written, (), (), (DEFAULT_AGENT,))
    indexer.committed(HERE.user, both)
    assert gone.written[0].id not in [fact_id for _, fact_id in adapter.facts]
    assert [fact_id for _, fact_id in adapter.facts] == ["b"]


def test_the_log_names_scopes_and_never_what_is_stored(
    store: Store, adapter: WatchedAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("cannot index 'drinks tea'")

    adapter.before["upsert"] = fail
    with caplog.at_level(logging.DEBUG):
        store.put(Scope.of("alice\nforged line", "coder"), fact_1="drinks tea")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    text = caplog.text.rstrip("\n")
    assert "alice-forged-line" in text
    assert "/coder: ValueError" in text
    assert "tea" not in text
    assert "\n" not in text


def test_an_indexer_without_adapter_takes_commits_and_searches_by_substring(store: Store) -> None:
    indexer = Indexer(None, store.load)
    store.tell = indexer.committed
    store.put(HERE, a="drinks Tea")
    assert store.loads == 0
    (hit,) = indexer.search("tEA", [HERE])
    assert (hit.fact.id, hit.match_type) == ("a", "substring")


def test_many_facts_of_one_commit_stop_at_the_first_failure_of_their_scope(
    store: Store, adapter: WatchedAdapter
) -> None:
    def fail() -> None:
        raise ConnectionError

    adapter.before["upsert"] = fail
    store.apply(HERE.user, writing(HERE, a="tea", b="tea", c="tea"))
    assert len(adapter.told("upsert")) == 1


def test_a_fact_is_told_as_it_was_committed(store: Store, adapter: WatchedAdapter) -> None:
    store.put(HERE, a="tea")
    store.put(HERE, a="green tea")
    (fact,) = adapter.facts.values()
    assert (fact.revision, fact.content, fact.scope) == (2, "green tea", HERE)
