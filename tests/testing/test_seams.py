"""The two methods that a storage overrides see every write: one before the commit, one after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deermem import ChangeSet, Delta, InvalidInputError, MemoryRepository, Scope, Summaries, Upsert
from deermem.maintenance.taking_back import undo
from deermem.model.identity import UserId
from deermem.testing.storage_read_contract import VERSION_1
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
}
# These have no change set of facts to look at, and are told of all the same.
TOLD_ONLY = {"delete_agent", "migrate"}
NO_COMMIT = {
    "agent_entries", "cleared_at", "clear_index", "close", "counters", "get_fact", "get_manifest",
    "get_summaries", "list_agents", "list_facts", "list_users", "new_fact_id", "parse_user",
    "plan_migration", "readable_snapshot", "rebuild_index", "reload", "roll_migration_back",
    "search_facts", "snapshot", "snapshot_since", "snapshots", "storage_root",
}  # fmt: skip


class Watched(MemoryRepository):
    """Counts what passes, and refuses everything when it is told to."""

    refusing = False

    def __init__(self, root: Path, **settings: Any) -> None:
        super().__init__(root, **settings)
        self.seen: list[ChangeSet] = []
        self.told: list[Delta] = []

    def _commit(self, user: UserId, decide: Callable[[Any], ChangeSet], *, supersedes: bool = False) -> Delta:
        def looked_at(view: Any) -> ChangeSet:
            changes = decide(view)
            self.seen.append(changes)
            if self.refusing:
                raise InvalidInputError("content", "refused")
            return changes

        return super()._commit(user, looked_at, supersedes=supersedes)

    def _told(self, user: UserId, committed: Any) -> Delta:
        delta = super()._told(user, committed)
        if committed.image is not committed.base:
            self.told.append(delta)
        return delta


def store_of_two(root: Path) -> Watched:
    store = Watched(root)
    for fact_id in ("x", "y"):
        store.upsert_fact(ALICE, draft(fact_id))
    store.seen.clear()
    store.told.clear()
    return store


@pytest.mark.parametrize("name", WRITES)
def test_every_write_is_looked_at_before_and_told_after(tmp_path: Path, name: str) -> None:
    store = store_of_two(tmp_path)
    WRITES[name](store)
    assert store.seen
    assert [delta.revision for delta in store.told] == [3]


@pytest.mark.parametrize("name", WRITES)
def test_every_write_can_be_refused(tmp_path: Path, name: str) -> None:
    store = store_of_two(tmp_path)
    before = store.snapshot(ALICE)
    store.refusing = True
    with pytest.raises(InvalidInputError, match="refused"):
        WRITES[name](store)
    assert store.snapshot(ALICE) == before
    assert store.told == []


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
    assert [delta.revision for delta in store.told] == [3, 4]


def test_the_deletion_of_an_agent_is_told(tmp_path: Path) -> None:
    store = Watched(tmp_path)
    store.upsert_fact(CODER, draft("x"))
    bucket_path(tmp_path).joinpath("agents", "coder", "config.yaml").write_text("", "utf-8")
    store.delete_agent(CODER)
    assert [delta.deleted for delta in store.told] == [(), ((CODER.agent, "x"),)]


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


def test_each_public_method_is_known_to_write_or_not() -> None:
    public = {name for name in dir(MemoryRepository) if not name.startswith("_")}
    assert {*WRITES} | TOLD_ONLY | NO_COMMIT == public


def test_a_scope_without_a_user_is_no_special_case(tmp_path: Path) -> None:
    store = Watched(tmp_path)
    store.upsert_fact(Scope.of(None), draft("x"))
    assert len(store.told) == 1
