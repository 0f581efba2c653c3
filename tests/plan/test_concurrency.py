"""Plan section 8: one writer at a time, and what becomes of operations that another writer overtook."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import (
    AtRevision,
    ChangeSet,
    Delete,
    DuplicateFact,
    FactConflict,
    FactDraft,
    FactNotFoundError,
    LockTimeout,
    ManifestConflict,
    MemoryRepository,
    Snapshot,
    SummaryPatch,
    Unchanged,
    Upsert,
)
from deermem.model.identity import FactId
from deermem.model.summaries import EMPTY_SUMMARIES, Section, Summaries
from tests.support.stores import ALICE, BOB, CODER, bucket_path, draft, store_with
from tests.support.threads import in_thread
from tests.support.watched import Call, WatchedFileSystem, call_of

X = FactId("x")


def stopped_at_commit(root: Path, work: Callable[[], object]) -> None:
    """Runs `work` while another writer of alice stands still in the middle of its transaction."""
    disk = WatchedFileSystem(root)
    reached, go_on = threading.Event(), threading.Event()

    def stop(call: Call) -> None:
        if call_of("rename", "slow.md")(call):
            reached.set()
            assert go_on.wait(30)

    disk.on_call = stop
    with in_thread(lambda: MemoryRepository(disk).upsert_fact(ALICE, draft("slow"))):
        assert reached.wait(30)
        try:
            work()
        finally:
            go_on.set()


def test_every_transaction_holds_a_lock_that_keeps_other_stores_out(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    other = MemoryRepository(tmp_path, lock_timeout=0.05)
    writes: list[Callable[[], object]] = [
        lambda: other.upsert_fact(ALICE, draft("y")),
        lambda: other.delete_fact(ALICE, "x"),
        lambda: other.update_summaries("alice", {"user": {"topOfMind": "x"}}),
        lambda: other.create_fact(ALICE, FactDraft("new"), max_facts=1),
        lambda: other.clear(ALICE),
        lambda: other.clear_all("alice"),
        lambda: other.upsert_fact(CODER, draft("y")),
    ]

    def all_wait_in_vain() -> None:
        for write in writes:
            with pytest.raises(LockTimeout) as timeout:
                write()
            assert timeout.value.lock_file == str(bucket_path(tmp_path) / ".memory.lock")

    stopped_at_commit(tmp_path, all_wait_in_vain)
    assert other.snapshot(ALICE).by_id.keys() == {"x", "slow"}
    assert other.snapshot(ALICE).revision == 2


def test_every_transaction_holds_a_lock_that_keeps_other_threads_of_one_store_out(tmp_path: Path) -> None:
    disk = WatchedFileSystem(tmp_path)
    store = MemoryRepository(disk, lock_timeout=0.05)
    refusals: list[LockTimeout] = []

    def write_too() -> None:
        with pytest.raises(LockTimeout) as timeout:
            store.upsert_fact(ALICE, draft("y"))
        refusals.append(timeout.value)

    def meet(call: Call) -> None:
        if call_of("rename", "x.md")(call):
            with in_thread(write_too):
                pass

    disk.on_call = meet
    store.upsert_fact(ALICE, draft("x"))
    assert [timeout.holder for timeout in refusals] == ["another thread of this process"]


def test_writers_of_different_users_do_not_wait_for_each_other(tmp_path: Path) -> None:
    other = MemoryRepository(tmp_path, lock_timeout=0.05)
    stopped_at_commit(tmp_path, lambda: other.upsert_fact(BOB, draft("y")))
    assert other.get_fact(BOB, "y") is not None


def test_a_reader_that_meets_a_running_transaction_waits_for_its_end(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    seen: list[Snapshot] = []
    readers: list[in_thread] = []

    def read() -> None:
        readers.append(in_thread(lambda: seen.append(store.snapshot(ALICE))))
        readers[0].__enter__()

    stopped_at_commit(tmp_path, read)
    readers[0].__exit__(None, None, None)
    assert [(snapshot.revision, set(snapshot.by_id)) for snapshot in seen] == [(2, {"x", "slow"})]


def test_a_point_operation_rebases_when_every_fact_precondition_still_holds(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x", "y")
    assert store.upsert_fact(ALICE, draft("x", "2"), expected=1, expected_manifest_revision=1).revision == 3
    assert store.upsert_fact(ALICE, draft("new"), expected_manifest_revision=1).revision == 4
    assert store.delete_fact(ALICE, "y", expected=1, expected_manifest_revision=2).revision == 5


def test_a_point_operation_does_not_rebase_over_a_change_of_its_own_fact(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.edit_fact(ALICE, "x", {"content": "theirs"})
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("x", "mine"), expected=1, expected_manifest_revision=1)
    with pytest.raises(FactConflict):
        store.delete_fact(ALICE, "x", expected=1, expected_manifest_revision=1)
    with pytest.raises(FactConflict):
        store.upsert_fact(ALICE, draft("x", "mine"), expected_manifest_revision=1)


def test_an_operation_rebases_only_when_it_says_so(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x", "y")
    upserts = (Upsert(ALICE.agent, draft("x", "2"), AtRevision(1)),)
    stale = ChangeSet(upserts=upserts, expected_manifest_revision=1)
    with pytest.raises(ManifestConflict):
        store.apply_changes("alice", stale)
    rebased = ChangeSet(upserts=upserts, expected_manifest_revision=1, may_rebase=True)
    assert store.apply_changes("alice", rebased).revision == 3


def test_what_names_no_fact_precondition_never_rebases(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x", "y")
    summaries = SummaryPatch.parse({"user": {"topOfMind": "t"}})
    fact = Upsert(ALICE.agent, draft("x", "2"), AtRevision(1))
    stale = [
        ChangeSet(deletes=(Delete(ALICE.agent, X),)),
        ChangeSet(upserts=(fact,), deletes=(Delete(ALICE.agent, FactId("y")),)),
        ChangeSet(summaries=summaries),
        ChangeSet(upserts=(fact,), summaries=summaries),
        ChangeSet(upserts=(fact,), clears=frozenset([CODER.agent])),
        ChangeSet(clears=frozenset([ALICE.agent])),
        ChangeSet(clear_all=True),
    ]
    for changes in stale:
        base = ChangeSet(
            changes.upserts,
            changes.deletes,
            changes.summaries,
            changes.clears,
            changes.clear_all,
            expected_manifest_revision=1,
            may_rebase=True,
        )
        with pytest.raises(ManifestConflict):
            store.apply_changes("alice", base)
    with pytest.raises(ManifestConflict):
        store.delete_fact(ALICE, "x", expected_manifest_revision=1)
    assert store.snapshot(ALICE).revision == 2


def meddling(store: MemoryRepository, times: int) -> tuple[list[Snapshot], Callable[[Snapshot], ChangeSet]]:
    """Returns a plan that deletes all facts, while another writer adds one during its first runs."""
    seen: list[Snapshot] = []

    def plan(snapshot: Snapshot) -> ChangeSet:
        seen.append(snapshot)
        if len(seen) <= times:
            store.upsert_fact(ALICE, draft(f"late{len(seen)}"))
        deletes = tuple(Delete(ALICE.agent, fact.id, Unchanged(fact)) for fact in snapshot.facts)
        return ChangeSet(deletes=deletes, may_rebase=True)

    return seen, plan


def test_a_plan_reloads_and_recomputes_the_complete_operation_after_a_conflict(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    seen, plan = meddling(MemoryRepository(tmp_path), times=2)
    delta = store.run(ALICE, plan)
    assert [set(snapshot.by_id) for snapshot in seen] == [{"x"}, {"x", "late1"}, {"x", "late1", "late2"}]
    assert {fact_id for _, fact_id in delta.deleted} == {"x", "late1", "late2"}
    assert store.snapshot(ALICE).facts == ()


def test_a_plan_never_replays_an_old_delete_set_on_a_newer_manifest(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    seen, plan = meddling(MemoryRepository(tmp_path), times=3)
    with pytest.raises(ManifestConflict) as conflict:
        store.run(ALICE, plan)
    assert len(seen) == 3  # tried at most three times
    assert (conflict.value.expected, conflict.value.actual) == (3, 4)
    assert store.snapshot(ALICE).by_id.keys() == {"x", "late1", "late2", "late3"}


def test_a_plan_without_contention_runs_once(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    seen, plan = meddling(store, times=0)
    store.run(ALICE, plan)
    assert len(seen) == 1


def test_a_clear_takes_with_it_what_another_writer_committed_before(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    assert store.snapshot(ALICE).by_id.keys() == {"x"}
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("late"))
    assert {fact_id for _, fact_id in store.clear(ALICE).deleted} == {"x", "late"}
    assert MemoryRepository(tmp_path).snapshot(ALICE).facts == ()


def test_clear_all_takes_all_agents_and_summaries_at_one_revision(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    MemoryRepository(tmp_path).upsert_fact(CODER, draft("late"))
    store.update_summaries("alice", {"user": {"topOfMind": "t"}, "history": {"recentMonths": "r"}})
    delta = store.clear_all("alice")
    assert delta.revision == 4
    assert store.get_summaries("alice") == EMPTY_SUMMARIES
    assert [store.snapshot(scope).facts for scope in (ALICE, CODER)] == [(), ()]


def test_a_scoped_clear_leaves_other_agents_and_the_summaries(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.upsert_fact(CODER, draft("y"))
    store.update_summaries("alice", {"user": {"topOfMind": "t"}})
    store.clear(ALICE)
    assert store.snapshot(CODER).by_id.keys() == {"y"}
    assert store.get_summaries("alice")["user", "topOfMind"].summary == "t"


def test_creating_at_the_cap_counts_the_facts_of_other_writers(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    assert len(store.snapshot(ALICE).facts) == 1
    other = MemoryRepository(tmp_path)
    other.upsert_fact(ALICE, draft("low", confidence=0.1))
    delta, fact_id = store.create_fact(ALICE, FactDraft("new", confidence=0.9), max_facts=2)
    assert delta.deleted == ((ALICE.agent, "low"),)
    assert store.snapshot(ALICE).by_id.keys() == {"x", fact_id}


def test_creating_at_the_cap_reports_that_the_new_fact_itself_was_evicted(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x", "y")
    delta, fact_id = store.create_fact(ALICE, FactDraft("new", confidence=0.1), max_facts=2)
    assert (fact_id, delta.written, delta.deleted, delta.revision) == (None, (), (), 2)


def test_creating_a_text_that_another_writer_stored_is_refused(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    assert len(store.snapshot(ALICE).facts) == 1
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("late", "Straße  "))
    with pytest.raises(DuplicateFact) as duplicate:
        store.create_fact(ALICE, FactDraft("  STRASSE"))
    assert duplicate.value.fact_id == "late"
    assert duplicate.value.args[0] == "Duplicate fact"


def test_trim_keeps_the_highest_confidence_and_among_equals_the_earlier_id(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    for fact_id, confidence in (("b", 0.5), ("a", 0.5), ("z", 0.9), ("c", 0.4)):
        store.upsert_fact(ALICE, draft(fact_id, confidence=confidence))
    assert {fact_id for _, fact_id in store.trim(ALICE, 2).deleted} == {"b", "c"}


def test_consolidation_replaces_facts_by_one_that_names_them(tmp_path: Path) -> None:
    store = store_with(tmp_path, "a", "b", "c")
    delta = store.consolidate(ALICE, ["a", "b"], draft("ab", "both"))
    merged = delta.written[0]
    assert merged.consolidated_from == ("a", "b")
    assert str(merged.source) == "consolidation"
    assert merged.consolidated_at == delta.last_updated
    assert store.snapshot(ALICE).by_id.keys() == {"ab", "c"}


def test_consolidation_of_a_fact_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    store = store_with(tmp_path, "a", "b")
    MemoryRepository(tmp_path).delete_fact(ALICE, "b")
    with pytest.raises(FactNotFoundError) as missing:
        store.consolidate(ALICE, ["a", "b"], draft("ab"))
    assert missing.value.fact_id == "b"
    assert store.snapshot(ALICE).by_id.keys() == {"a"}


def test_an_import_replaces_the_facts_of_the_agent_and_all_six_summaries(tmp_path: Path) -> None:
    store = store_with(tmp_path, "gone", "known")
    store.upsert_fact(CODER, draft("other"))
    store.update_summaries("alice", {"user": {"topOfMind": "old"}, "history": {"recentMonths": "old"}})
    known = store.snapshot(ALICE).by_id[FactId("known")]
    summaries = Summaries.of({("user", "topOfMind"): Section("new", "2026-07-19T00:00:00Z")})
    store.replace_all(ALICE, [draft("known", "changed"), draft("fresh")], summaries)
    after = store.snapshot(ALICE)
    assert {fact.id: fact.revision for fact in after.facts} == {"fresh": 1, "known": 2}
    assert after.by_id[FactId("known")].created_at == known.created_at
    assert after.summaries == summaries
    assert store.snapshot(CODER).by_id.keys() == {"other"}


def test_a_summary_patch_leaves_omitted_siblings_as_they_are(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    first = {"user": {"workContext": "w", "topOfMind": "t"}, "history": {"recentMonths": "r"}}
    store.update_summaries("alice", first)
    before = store.get_summaries("alice")
    store.update_summaries("alice", {"user": {"topOfMind": "changed"}})
    after = store.get_summaries("alice")
    changed = {key for key in after.sections if after[key] != before[key]}
    assert changed == {("user", "topOfMind")}
    assert after["user", "topOfMind"].summary == "changed"


def test_patches_of_different_summaries_by_two_writers_are_both_kept(tmp_path: Path) -> None:
    first, second = MemoryRepository(tmp_path), MemoryRepository(tmp_path)
    first.update_summaries("alice", {"user": {"workContext": "first's"}})
    second.update_summaries("alice", {"user": {"topOfMind": "second's"}})
    summaries = first.get_summaries("alice")
    assert summaries["user", "workContext"].summary == "first's"
    assert summaries["user", "topOfMind"].summary == "second's"
