"""The methods that a storage overrides see every read, and every write before and after its commit."""

# ruff: noqa: ARG002 - of what a seam is given, a storage needs a part

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deermem import (
    ANYTHING,
    ChangeSet,
    Delete,
    Delta,
    InvalidInputError,
    MemoryRepository,
    Scope,
    Summaries,
    SummaryPatch,
    Upsert,
    UserId,
    View,
)
from deermem.maintenance.taking_back import undo
from deermem.testing.storage_read_contract import VERSION_1
from deermem.testing.storage_samples import RememberingIndex
from tests.support.stores import ALICE, CODER, bucket_path, draft

WRITES: dict[str, Callable[[MemoryRepository], object]] = {
    "upsert_fact": lambda store: store.upsert_fact(ALICE, draft("new")),
    "edit_fact": lambda store: store.edit_fact(ALICE, "x", {"content": "changed"}),
    "delete_fact": lambda store: store.delete_fact(ALICE, "x"),
    "apply_changes": lambda store: store.apply_changes(
        "alice", ChangeSet(upserts=(Upsert(ALICE.agent, draft("new")),))
    ),
    "update_summaries": lambda store: store.update_summaries("alice", {"user": {"topOfMind": "tea"}}),
    "create_fact": lambda store: store.create_fact(ALICE, draft("new")),
    "clear": lambda store: store.clear(ALICE),
    "clear_all": lambda store: store.clear_all("alice"),
    "trim": lambda store: store.trim(ALICE, 1),
    "consolidate": lambda store: store.consolidate(ALICE, ["x", "y"], draft("new")),
    "replace_all": lambda store: store.replace_all(ALICE, [draft("new")], Summaries.of({})),
    "run": lambda store: store.run(ALICE, lambda _: ChangeSet(upserts=(Upsert(ALICE.agent, draft("new")),))),
    "commit": lambda store: store.commit(
        ALICE.user, lambda _: ChangeSet(upserts=(Upsert(ALICE.agent, draft("new")),))
    ),
    "adopt_fact": lambda store: store.adopt_fact(ALICE, "x"),
    "delete_agent": lambda store: store.delete_agent(CODER),
}
# A migration has no change set to look at, and is told of all the same.
TOLD_ONLY = {"migrate"}
READS: dict[str, Callable[[MemoryRepository], object]] = {
    "agent_entries": lambda store: store.agent_entries("alice"),
    "cleared_at": lambda store: store.cleared_at(ALICE),
    "get_fact": lambda store: store.get_fact(ALICE, "x"),
    "get_manifest": lambda store: store.get_manifest("alice"),
    "get_summaries": lambda store: store.get_summaries("alice"),
    "list_agents": lambda store: store.list_agents("alice"),
    "list_facts": lambda store: store.list_facts(ALICE),
    "readable_snapshot": lambda store: store.readable_snapshot(ALICE),
    "reload": lambda store: store.reload(ALICE),
    "run": lambda store: store.run(ALICE, lambda _: ChangeSet()),
    "search_facts": lambda store: store.search_facts("text", [ALICE]),
    "snapshot": lambda store: store.snapshot(ALICE),
    "snapshots": lambda store: store.snapshots([ALICE, CODER]),
}
NEITHER = {
    "after_commit", "before_commit", "before_read", "clear_index", "close", "counters", "list_users",
    "new_fact_id", "parse_user", "plan_migration", "rebuild_index", "roll_migration_back",
    "snapshot_if_unchanged", "snapshot_since", "storage_root",
}  # fmt: skip


class Watched(MemoryRepository):
    """Counts what passes, and refuses everything when it is told to."""

    refusing = refusing_reads = False

    def __init__(self, root: Path, **settings: Any) -> None:
        super().__init__(root, **settings)
        self.seen: list[ChangeSet] = []
        self.told: list[Delta] = []
        self.readers: list[UserId] = []

    def before_read(self, user: UserId) -> None:
        self.readers.append(user)
        if self.refusing_reads:
            raise InvalidInputError("user_id", "refused")

    def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:
        self.seen.append(changes)
        if self.refusing:
            raise InvalidInputError("content", "refused")
        return changes

    def after_commit(self, user: UserId, delta: Delta) -> None:
        self.told.append(delta)


def store_of_two(root: Path, **settings: Any) -> Watched:
    """Returns a store at revision 3, of two facts and an agent."""
    store = Watched(root, **settings)
    for scope, fact_id in ((CODER, "z"), (ALICE, "x"), (ALICE, "y")):
        store.upsert_fact(scope, draft(fact_id))
    bucket_path(root).joinpath("agents", "coder", "config.yaml").write_text("", "utf-8")
    store.seen.clear()
    store.told.clear()
    store.readers.clear()
    return store


@pytest.mark.parametrize("name", WRITES)
def test_every_write_is_looked_at_before_and_told_after(tmp_path: Path, name: str) -> None:
    store = store_of_two(tmp_path)
    WRITES[name](store)
    assert store.seen
    assert [delta.revision for delta in store.told] == [4]


@pytest.mark.parametrize("name", WRITES)
def test_every_write_can_be_refused(tmp_path: Path, name: str) -> None:
    store = store_of_two(tmp_path)
    before = store.snapshots([ALICE, CODER])
    store.refusing = True
    with pytest.raises(InvalidInputError, match="refused"):
        WRITES[name](store)
    assert store.snapshots([ALICE, CODER]) == before
    assert bucket_path(tmp_path).joinpath("agents", "coder", "config.yaml").exists()
    assert store.told == []


@pytest.mark.parametrize("name", READS)
def test_every_read_passes_and_can_be_refused(tmp_path: Path, name: str) -> None:
    store = store_of_two(tmp_path)
    store.snapshot(ALICE)
    store.readers.clear()
    READS[name](store)
    assert {*store.readers} == {ALICE.user}
    store.refusing_reads = True
    with pytest.raises(InvalidInputError, match="refused"):
        READS[name](store)


def test_a_search_of_an_index_can_be_refused_like_any_read(tmp_path: Path) -> None:
    index = RememberingIndex()
    store = store_of_two(tmp_path, retrieval_adapter=index)
    assert len(store.search_facts("text", [ALICE])) == 2
    store.refusing_reads = True
    with pytest.raises(InvalidInputError, match="refused"):
        store.search_facts("text", [ALICE])


def test_a_quick_look_leaves_the_reading_to_what_passes(tmp_path: Path) -> None:
    store = store_of_two(tmp_path)
    store.snapshot(ALICE)
    assert store.snapshot_if_unchanged(ALICE) is None
    plain = MemoryRepository(tmp_path)
    assert plain.snapshot_if_unchanged(ALICE) is not plain.snapshot(ALICE)
    assert plain.snapshot_if_unchanged(ALICE) is plain.snapshot(ALICE)


def test_a_strict_storage_is_asked_about_nobody(tmp_path: Path) -> None:
    store = Watched(tmp_path, strict_user_scope=True)
    with pytest.raises(InvalidInputError, match="is required"):
        store.snapshot(Scope.of(None))
    assert store.readers == []


def test_a_first_write_that_is_refused_makes_no_user(tmp_path: Path) -> None:
    store = Watched(tmp_path)
    store.refusing = True
    with pytest.raises(InvalidInputError, match="refused"):
        store.upsert_fact(ALICE, draft("x"))
    assert [*tmp_path.iterdir()] == []


def test_taking_back_is_looked_at_and_told_like_any_write(tmp_path: Path) -> None:
    store = store_of_two(tmp_path)
    store.clear(ALICE)
    store.seen.clear()
    assert undo(store, ALICE.user)
    assert {upsert.draft.id for changes in store.seen for upsert in changes.upserts} == {"x", "y"}
    assert [delta.revision for delta in store.told] == [4, 5]


def test_the_deletion_of_an_agent_is_told(tmp_path: Path) -> None:
    store = store_of_two(tmp_path)
    store.delete_agent(CODER)
    assert [(delta.deleted, delta.cleared) for delta in store.told] == [
        (((CODER.agent, "z"),), (CODER.agent,))
    ]


@pytest.mark.parametrize("by", ["a read", "a call"])
def test_a_migration_is_told(tmp_path: Path, by: str) -> None:
    bucket_path(tmp_path).mkdir(parents=True)
    bucket_path(tmp_path).joinpath("memory.json").write_text(json.dumps(VERSION_1), "utf-8")
    store = Watched(tmp_path)
    if by == "a read":
        store.snapshot(ALICE)
    else:
        store.migrate("alice")
    assert [[fact.id for fact in delta.written] for delta in store.told] == [["fact_old"]]


def test_each_public_method_is_known_to_read_or_to_write_or_not() -> None:
    public = {name for name in dir(MemoryRepository) if not name.startswith("_")}
    assert {*WRITES} | TOLD_ONLY | {*READS} | NEITHER == public
    assert NEITHER.isdisjoint({*WRITES, *READS, *TOLD_ONLY})


class Rewriting(MemoryRepository):
    """Commits what a function makes of a change set."""

    def __init__(self, root: Path, rewrite: Callable[[ChangeSet], Any]) -> None:
        super().__init__(root)
        self.rewrite = rewrite

    def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:
        passed: ChangeSet = self.rewrite(changes)
        return passed


def shouted(changes: ChangeSet) -> ChangeSet:
    louder = tuple(
        replace(each, draft=replace(each.draft, content=each.draft.content.upper()))
        for each in changes.upserts
    )
    summaries = changes.summaries
    if summaries is not None:
        summaries = SummaryPatch(
            {key: replace(each, summary=each.summary.upper()) for key, each in summaries.sections.items()}
        )
    return replace(changes, upserts=louder, summaries=summaries)


def test_facts_and_summaries_can_be_made_to_say_something_else(tmp_path: Path) -> None:
    store = Rewriting(tmp_path, shouted)
    delta, fact_id = store.create_fact(ALICE, draft("x", "tea"))
    store.update_summaries("alice", {"user": {"topOfMind": "coffee"}})
    found = store.snapshot(ALICE)
    assert [(fact.id, fact.content) for fact in found.facts] == [(fact_id, "TEA")]
    assert delta.written == found.facts
    assert found.summaries["user", "topOfMind"].summary == "COFFEE"


OTHER = ChangeSet(upserts=(Upsert(ALICE.agent, draft("other")),))
WRONG: dict[str, tuple[str, Callable[[ChangeSet], Any]]] = {
    "nothing": ("returned NoneType", lambda _: None),
    "something else": ("returned str", lambda _: "as it was"),
    "no fact": ("changed more", lambda changes: replace(changes, upserts=())),
    "another fact": ("changed more", lambda changes: replace(changes, upserts=OTHER.upserts)),
    "one more": ("changed more", lambda changes: replace(changes, upserts=changes.upserts + OTHER.upserts)),
    "no condition": (
        "changed more",
        lambda changes: replace(changes, upserts=tuple(replace(e, expect=ANYTHING) for e in changes.upserts)),
    ),
    "a deletion": (
        "changed more",
        lambda changes: replace(changes, deletes=(Delete(ALICE.agent, "y"),)),
    ),
    "no summaries": ("changed more", lambda changes: replace(changes, summaries=None)),
    "other summaries": (
        "changed more",
        lambda changes: replace(changes, summaries=SummaryPatch.parse({"user": {"workContext": "x"}})),
    ),
    "any manifest": ("changed more", lambda changes: replace(changes, expected_manifest_revision=None)),
    "a new set": ("changed more", lambda changes: ChangeSet(upserts=changes.upserts)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_callers_rely_on_cannot_be_changed(tmp_path: Path, name: str) -> None:
    message, rewrite = WRONG[name]
    store = Rewriting(tmp_path, rewrite)
    changes = ChangeSet(
        upserts=(Upsert(ALICE.agent, draft("x")),),
        summaries=SummaryPatch.parse({"user": {"topOfMind": "tea"}}),
        expected_manifest_revision=0,
    )
    with pytest.raises(TypeError, match=f"Rewriting.before_commit {message}"):
        store.apply_changes("alice", changes)
    assert [*tmp_path.iterdir()] == []


def test_summaries_that_nobody_asked_for_cannot_be_added(tmp_path: Path) -> None:
    added = SummaryPatch.replace_all(Summaries.of({}))
    store = Rewriting(tmp_path, lambda changes: replace(changes, summaries=added))
    with pytest.raises(TypeError, match="changed more"):
        store.upsert_fact(ALICE, draft("x"))


class TakesTwo(MemoryRepository):
    """Refuses a third fact of an agent."""

    def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:
        for agent in changes.agents():
            there = {fact.id for fact in view.snapshot(Scope(user, agent)).facts}
            if len(there | {each.draft.id for each in changes.upserts if each.agent == agent}) > 2:
                raise InvalidInputError("facts", "are too many")
        return changes


def test_the_view_shows_what_is_there_before_the_commit(tmp_path: Path) -> None:
    store = TakesTwo(tmp_path)
    for fact_id in ("x", "y"):
        store.upsert_fact(ALICE, draft(fact_id))
    store.edit_fact(ALICE, "x", {"content": "changed"})
    with pytest.raises(InvalidInputError, match="too many"):
        store.upsert_fact(ALICE, draft("z"))
    store.clear(ALICE)
    store.upsert_fact(ALICE, draft("z"))
    assert [fact.id for fact in store.snapshot(ALICE).facts] == ["z"]


@pytest.mark.parametrize("by", ["clear_all", "delete_agent"])
def test_the_view_can_be_read_where_facts_are_of_version_1(tmp_path: Path, by: str) -> None:
    agent = bucket_path(tmp_path) / "agents" / "coder"
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("x"))
    agent.mkdir(parents=True)
    agent.joinpath("config.yaml").write_text("", "utf-8")
    agent.joinpath("memory.json").write_text(json.dumps(VERSION_1), "utf-8")
    seen: list[list[str]] = []

    class Looks(MemoryRepository):
        def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:
            seen.append([fact.id for fact in view.snapshot(CODER).facts])
            return changes

    store = Looks(tmp_path)
    WRITES[by](store)
    assert seen == [["fact_old"]]
    assert store.snapshot(CODER).facts == ()


def test_a_storage_that_fails_after_a_commit_fails_no_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(MemoryRepository):
        def after_commit(self, user: UserId, delta: Delta) -> None:
            raise ConnectionError(f"cannot send {delta.written[0].content}")

    store = Fails(tmp_path)
    delta = store.upsert_fact(ALICE, draft("x", "secret"))
    assert store.snapshot(ALICE).facts == delta.written
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "deermem.repository.core",
            "ERROR",
            "Fails.after_commit failed after revision 1 of alice: ConnectionError",
        )
    ]
    assert "secret" not in caplog.text


def test_a_storage_may_use_itself_after_a_commit(tmp_path: Path) -> None:
    class Notes(MemoryRepository):
        def after_commit(self, user: UserId, delta: Delta) -> None:
            if delta.written and delta.written[0].id != "note":
                count = len(self.snapshot(ALICE).facts)
                self.upsert_fact(ALICE, draft("note", f"There are {count}."))

    store = Notes(tmp_path)
    store.upsert_fact(ALICE, draft("x"))
    assert [fact.content for fact in store.snapshot(ALICE).facts] == ["There are 1.", "text of x"]


def test_a_scope_without_a_user_is_no_special_case(tmp_path: Path) -> None:
    store = Watched(tmp_path)
    store.upsert_fact(Scope.of(None), draft("x"))
    assert len(store.told) == 1
