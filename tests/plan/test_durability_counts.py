"""How often each operation tells the disk to make something durable: enough, and no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import ChangeSet, Delete, MemoryRepository, Scope, Upsert
from deermem.format.layout import shard_of
from deermem.model.identity import FactId
from tests.support.stores import ALICE, CODER, draft, store_with
from tests.support.watched import WatchedFileSystem


def ids_of_one_shard(count: int) -> list[str]:
    """Returns ids whose facts lie in the shard of `x`."""
    names = (f"n{number}" for number in range(10_000))
    return [name for name in names if shard_of(FactId(name)) == shard_of(FactId("x"))][:count]


def id_of_another_shard() -> str:
    return next(name for name in ("y", "z") if shard_of(FactId(name)) != shard_of(FactId("x")))


SIBLING, SECOND = ids_of_one_shard(2)


def syncs(root: Path, change: Callable[[MemoryRepository], object]) -> int:
    disk = WatchedFileSystem(root)
    change(MemoryRepository(disk))
    return disk.syncs()


def test_a_create_in_an_existing_shard_takes_six_syncs(tmp_path: Path) -> None:
    """The fact, memory.json, the journal; the bucket at the commit point; the shard; the bucket."""
    store_with(tmp_path, "x")
    assert syncs(tmp_path, lambda store: store.upsert_fact(ALICE, draft(SIBLING))) == 6


def test_an_update_takes_six_syncs(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    assert syncs(tmp_path, lambda store: store.edit_fact(ALICE, "x", {"content": "two"})) == 6


def test_a_delete_takes_five_syncs(tmp_path: Path) -> None:
    """As an update, without an image of the fact."""
    store_with(tmp_path, "x")
    assert syncs(tmp_path, lambda store: store.delete_fact(ALICE, "x")) == 5


def test_a_change_of_summaries_takes_four_syncs(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    patch = {"user": {"topOfMind": "t"}}
    assert syncs(tmp_path, lambda store: store.update_summaries("alice", patch)) == 4


def test_a_new_shard_takes_one_sync_more_for_its_name_in_facts(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    assert syncs(tmp_path, lambda store: store.upsert_fact(ALICE, draft(id_of_another_shard()))) == 7


def test_a_shard_that_a_delete_left_empty_takes_the_sync_of_a_new_one(tmp_path: Path) -> None:
    """Whether its name is durable cannot be told from an empty shard."""
    store_with(tmp_path, "x", id_of_another_shard()).delete_fact(ALICE, "x")
    assert syncs(tmp_path, lambda store: store.upsert_fact(ALICE, draft("x"))) == 7


def test_a_new_agent_takes_four_syncs_more_for_the_names_down_to_its_shard(tmp_path: Path) -> None:
    """`facts` (the shard), the agent (`facts`), `agents` (the agent) and the bucket (`agents`)."""
    store_with(tmp_path, "x")
    assert syncs(tmp_path, lambda store: store.upsert_fact(CODER, draft("x"))) == 10


def test_a_new_user_takes_two_syncs_more_for_the_names_of_users_and_the_bucket(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    disk = WatchedFileSystem(tmp_path)
    MemoryRepository(disk).upsert_fact(Scope.of("bob"), draft("x"))
    assert disk.syncs() == 12
    assert disk.count("make_root") == 1


def test_several_facts_of_one_shard_share_the_sync_of_their_directory(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    upserts = tuple(Upsert(ALICE.agent, draft(name)) for name in (SIBLING, SECOND))
    deletes = (Delete(ALICE.agent, FactId("x")),)
    changes = ChangeSet(upserts=upserts, deletes=deletes)
    assert syncs(tmp_path, lambda store: store.apply_changes("alice", changes)) == 7


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.snapshot(ALICE),
        lambda store: store.delete_fact(ALICE, "absent"),
        lambda store: store.edit_fact(ALICE, "x", {}),
        lambda store: store.trim(ALICE, 10),
        lambda store: store.apply_changes("alice", ChangeSet()),
    ],
    ids=["read", "delete of nothing", "edit of nothing", "trim below the cap", "empty change set"],
)
def test_what_changes_nothing_syncs_nothing(
    tmp_path: Path, change: Callable[[MemoryRepository], object]
) -> None:
    store_with(tmp_path, "x")
    assert syncs(tmp_path, change) == 0
