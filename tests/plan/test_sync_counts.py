"""What each public operation makes durable, and why: enough syncs for its promise, and no more.

`test_durability_counts.py` counts those of a single fact. Here are the operations that change more.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from deermem import ChangeSet, Delete, FactDraft, MemoryRepository, Upsert
from deermem.format.layout import shard_of
from deermem.model.identity import FactId
from deermem.model.summaries import EMPTY_SUMMARIES
from tests.migration.v1 import FACT, OTHER, document, put
from tests.support.stores import ALICE, CODER, bucket_path, draft, fact_path, store_with
from tests.support.watched import WatchedFileSystem


def ids_by_shard() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number in range(4_000):
        found.setdefault(shard_of(FactId(f"n{number}")), []).append(f"n{number}")
    return found


SHARDS = list(ids_by_shard().values())
A, B, C = SHARDS[0][:3]  # in one shard
ELSEWHERE = SHARDS[1][0]

# The shape of every commit; what an operation adds to it stands beside the operation.
COMMIT = {
    "the image of memory.json": 1,
    "the journal, before it gets its name": 1,
    "the bucket, for the journal's name: the commit point": 1,
    "the bucket, for memory.json's new name, before the journal goes": 1,
}
FENCES = {
    "the image of the fences": 1,
    "the bucket, for the fences, before a fact goes that they stand for": 1,
}
SAFETY = {
    "the image of what can be taken back": 1,
    "the folder of what can be taken back, before it is the only copy": 1,
}


class Case(NamedTuple):
    prepare: Callable[[Path], object]
    change: Callable[[MemoryRepository], object]
    beside_the_commit: dict[str, int]


def two_facts(root: Path) -> None:
    store_with(root, A, B)


def facts_in_two_shards(root: Path) -> None:
    store_with(root, A, ELSEWHERE)


def edited_fact(root: Path) -> None:
    store_with(root, A)
    path = fact_path(root, ALICE, A)
    path.write_text(path.read_text().replace(f"text of {A}", "another text"))


def custom_agent(root: Path) -> None:
    store_with(root, A, scope=CODER)
    (bucket_path(root) / "agents" / "coder" / "config.yaml").write_text("model: any\n")


def version_1(root: Path) -> None:
    put(root, document(FACT, OTHER))


def migrated(root: Path) -> None:
    version_1(root)
    MemoryRepository(root).migrate("alice")


def create_at_the_cap(store: MemoryRepository) -> object:
    return store.create_fact(ALICE, draft(B, confidence=1.0), max_facts=1)


def change_set(store: MemoryRepository) -> object:
    upserts = tuple(Upsert(ALICE.agent, draft(name)) for name in SHARDS[0][3:8])
    return store.apply_changes("alice", ChangeSet(upserts=upserts, deletes=(Delete(ALICE.agent, FactId(A)),)))


def change_set_of_two_shards(store: MemoryRepository) -> object:
    upserts = tuple(Upsert(ALICE.agent, draft(names[3])) for names in SHARDS[:2])
    return store.apply_changes("alice", ChangeSet(upserts=upserts))


def import_one(store: MemoryRepository) -> object:
    return store.replace_all(ALICE, [draft(C)], EMPTY_SUMMARIES)


CASES: dict[str, Case] = {
    "create at the cap, which evicts a fact of the same shard": Case(
        lambda root: store_with(root, A),
        create_at_the_cap,
        {"the image of the new fact": 1, "the shard of both": 1},
    ),
    "trim of a fact": Case(
        two_facts, lambda store: store.trim(ALICE, 1), {"the shard of the fact that went": 1}
    ),
    "trim of facts of two shards": Case(
        lambda root: store_with(root, A, ELSEWHERE, C).edit_fact(ALICE, C, {"confidence": 1.0}),
        lambda store: store.trim(ALICE, 1),
        {"each shard that a fact went from": 2},
    ),
    "consolidation within a shard": Case(
        two_facts,
        lambda store: store.consolidate(ALICE, [A, B], draft(C)),
        {"the image of the one fact": 1, "the shard of all three": 1},
    ),
    "adoption of an edit by hand": Case(
        edited_fact,
        lambda store: store.adopt_fact(ALICE, A),
        {"the image of the fact, which is a new one": 1, "its shard": 1},
    ),
    "change set of five new facts and a deletion in one shard": Case(
        two_facts, change_set, {"the image of each new fact": 5, "the shard, once for all six": 1}
    ),
    "change set of two shards": Case(
        facts_in_two_shards,
        change_set_of_two_shards,
        {"the image of each new fact": 2, "each of the shards": 2},
    ),
    "import over a fact": Case(
        lambda root: store_with(root, A),
        import_one,
        {"the image of the imported fact": 1, "the shard": 1, **SAFETY},
    ),
    "clear of an agent": Case(
        two_facts, lambda store: store.clear(ALICE), {"the shard": 1, **FENCES, **SAFETY}
    ),
    "clear of everything": Case(
        two_facts, lambda store: store.clear_all("alice"), {"the shard": 1, **FENCES, **SAFETY}
    ),
    "clear of facts in two shards": Case(
        facts_in_two_shards, lambda store: store.clear(ALICE), {"each of the shards": 2, **FENCES, **SAFETY}
    ),
    "deletion of a custom agent": Case(
        custom_agent,
        lambda store: store.delete_agent(CODER),
        {
            "the agent's directory, without config.yaml": 1,
            "the shard": 1,
            "the directory of agents, without this one": 1,
            **FENCES,
        },
    ),
    "migration of two facts": Case(
        version_1,
        lambda store: store.migrate("alice"),
        {
            "the names of the new directories: in the bucket, in agents, in the agent, in facts": 4,
            "the backup of the version-1 file, and its name": 2,
            "the image of each fact": 2,
            "each of their shards": 2,
            **FENCES,
        },
    ),
    "a migration taken back": Case(
        migrated,
        lambda store: store.roll_migration_back("alice"),
        {"each shard that a fact went from": 2, **FENCES},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operation_syncs_what_its_promise_needs_and_no_more(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    case.prepare(tmp_path)
    disk = WatchedFileSystem(tmp_path)
    case.change(MemoryRepository(disk))
    assert disk.syncs() == sum((COMMIT | case.beside_the_commit).values())


def test_a_clear_that_nothing_is_kept_of_needs_no_sync_for_a_copy(tmp_path: Path) -> None:
    two_facts(tmp_path)
    disk = WatchedFileSystem(tmp_path)
    MemoryRepository(disk, undo_days=0).clear(ALICE)
    assert disk.syncs() == sum((COMMIT | FENCES).values()) + 1  # the shard


@pytest.mark.parametrize("facts", [1, 5, 20])
def test_a_change_set_syncs_once_for_each_fact_and_once_for_each_shard(tmp_path: Path, facts: int) -> None:
    names = [shard[number] for shard in SHARDS[:4] for number in range(5)][:facts]
    store_with(tmp_path, *(shard[6] for shard in SHARDS[:4]))
    disk = WatchedFileSystem(tmp_path)
    upserts = tuple(Upsert(ALICE.agent, draft(name)) for name in names)
    MemoryRepository(disk).apply_changes("alice", ChangeSet(upserts=upserts))
    shards = len({shard_of(FactId(name)) for name in names})
    assert disk.syncs() == sum(COMMIT.values()) + facts + shards


def test_images_are_synced_before_the_journal_has_its_name_and_names_after_it(tmp_path: Path) -> None:
    """The counts would be the same in another order, which a loss of power would not forgive."""
    store_with(tmp_path, A)
    disk = WatchedFileSystem(tmp_path)
    MemoryRepository(disk).upsert_fact(ALICE, draft(B))
    kinds = [call.kind for call in disk.calls if call.kind in ("create", "sync", "rename", "unlink")]
    assert kinds == ["create"] * 3 + ["rename", "sync"] * 3 + ["unlink"]


def test_a_first_agent_of_a_user_needs_no_more_than_the_names_of_its_directories(tmp_path: Path) -> None:
    store_with(tmp_path, A)
    disk = WatchedFileSystem(tmp_path)
    MemoryRepository(disk).create_fact(CODER, FactDraft("text", id=FactId(A)))
    # The fact and its shard; then the names of the shard, of facts, of the agent, and of agents.
    assert disk.syncs() == sum(COMMIT.values()) + 2 + 4
