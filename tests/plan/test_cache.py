"""Plan section 9: what validates a cached state, and what a read costs."""

from __future__ import annotations

import dataclasses
import gc
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deermem import ChangeSet, FactDraft, MemoryRepository, Upsert
from deermem.model.identity import FactId
from deermem.model.summaries import EMPTY_SUMMARIES
from deermem.storage.bucket import ABSENT_MANIFEST, ManifestImage
from deermem.storage.cache import ScopeEntry, Token
from deermem.storage.port import FileIdentity
from tests.support.stores import (
    ALICE,
    BOB,
    CODER,
    Clock,
    bucket_path,
    draft,
    edit,
    fact_path,
    settle,
    store_with,
)
from tests.support.watched import WatchedFileSystem

X = FactId("x")

MUTATIONS: dict[str, Callable[[MemoryRepository], object]] = {
    "create": lambda store: store.upsert_fact(ALICE, draft("new")),
    "update": lambda store: store.upsert_fact(ALICE, draft("x", "two"), expected=1),
    "edit": lambda store: store.edit_fact(ALICE, "x", {"confidence": 1}),
    "adopt": lambda store: store.adopt_fact(ALICE, "x"),
    "delete": lambda store: store.delete_fact(ALICE, "x"),
    "create below a cap": lambda store: store.create_fact(ALICE, FactDraft("n", confidence=1), max_facts=1),
    "clear": lambda store: store.clear(ALICE),
    "clear_all": lambda store: store.clear_all("alice"),
    "trim": lambda store: store.trim(ALICE, 1),
    "consolidate": lambda store: store.consolidate(ALICE, ["x", "y"], draft("xy")),
    "import": lambda store: store.replace_all(ALICE, [draft("new")], EMPTY_SUMMARIES),
    "change set": lambda store: store.apply_changes(
        "alice", ChangeSet(upserts=(Upsert(CODER.agent, draft("c")), Upsert(ALICE.agent, draft("d"))))
    ),
    "summaries": lambda store: store.update_summaries("alice", {"user": {"topOfMind": "t"}}),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a store of two facts in which every file is old, to copy."""
    root = tmp_path_factory.mktemp("base")
    store_with(root, "x", "y")
    settle(root)
    return root


@pytest.fixture
def root(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base, tmp_path / "store"))


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_every_mutation_advances_memory_json_once_and_replaces_it_atomically(
    root: Path, mutation: str
) -> None:
    disk = WatchedFileSystem(root)
    store = MemoryRepository(disk)
    path = bucket_path(root) / "memory.json"
    inode = path.stat().st_ino
    MUTATIONS[mutation](store)
    assert store.get_manifest("alice").revision == 3
    assert disk.count("rename", ending="alice/memory.json") == 1
    assert disk.count("create", "unlink", ending="memory.json") == 0
    assert path.stat().st_ino != inode


def image(mtime_ns: int, size: int, revision: int, data: bytes = b"same") -> ManifestImage:
    manifest = dataclasses.replace(ABSENT_MANIFEST.manifest, revision=revision)
    return ManifestImage(manifest, data, FileIdentity(7, size, mtime_ns))


@pytest.mark.parametrize(
    "other", [image(2, 10, 5), image(1, 11, 5), image(1, 10, 6), image(1, 10, 5, b"else")]
)
def test_a_cached_state_is_valid_for_one_time_stamp_size_revision_and_text_of_memory_json(
    other: ManifestImage,
) -> None:
    assert Token._fields == ("mtime_ns", "size", "revision")
    entry = ScopeEntry(ALICE, image(1, 10, 5), {}, 0)
    assert entry.is_valid_for(image(1, 10, 5))
    assert not entry.is_valid_for(other)


def test_the_persisted_revision_prevents_a_stale_hit_when_time_and_size_are_the_same(root: Path) -> None:
    clock = Clock()
    writer = MemoryRepository(root, clock=clock)
    writer.edit_fact(ALICE, "x", {"content": "one"})
    reader = MemoryRepository(root)
    assert reader.snapshot(ALICE).by_id[X].content == "one"
    paths = [bucket_path(root) / "memory.json", fact_path(root, ALICE, "x")]
    before = [path.stat() for path in paths]
    writer.edit_fact(ALICE, "x", {"content": "two"})
    for path, status in zip(paths, before, strict=True):
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert reader.snapshot(ALICE).by_id[X].content == "two"


@pytest.mark.parametrize("resolution_ns", [1_000_000_000, 2_000_000_000])
def test_time_stamps_of_whole_seconds_never_hide_a_commit(root: Path, resolution_ns: int) -> None:
    writer, reader = MemoryRepository(root, clock=Clock()), MemoryRepository(root)
    for number in range(6):
        writer.edit_fact(ALICE, "x", {"content": f"text {number}"})
        for path in (bucket_path(root) / "memory.json", fact_path(root, ALICE, "x")):
            coarse = path.stat().st_mtime_ns // resolution_ns * resolution_ns
            os.utime(path, ns=(coarse, coarse))
        assert reader.snapshot(ALICE).by_id[X].content == f"text {number}"


def test_a_fact_that_is_as_young_as_the_manifest_is_read_again_though_its_identity_is_the_same(
    tmp_path: Path,
) -> None:
    """A later version may get the same inode within one tick of the clock."""
    writer, reader = store_with(tmp_path, "x"), MemoryRepository(tmp_path)
    path, now = fact_path(tmp_path, ALICE, "x"), time.time_ns()
    for young in (path, bucket_path(tmp_path) / "memory.json"):
        os.utime(young, ns=(now, now))
    assert reader.snapshot(ALICE).by_id[X].content == "text of x"
    inode = path.stat().st_ino
    text = path.read_text().replace("text of x", "TEXT OF X").replace("revision: 1", "revision: 2")
    path.write_text(text)
    os.utime(path, ns=(now, now))
    assert path.stat().st_ino == inode
    writer.update_summaries("alice", {"user": {"topOfMind": "t"}})
    assert reader.snapshot(ALICE).by_id[X].content == "TEXT OF X"


@pytest.mark.parametrize("facts", [1, 12])
def test_a_cached_read_opens_memory_json_and_no_other_file_however_many_facts_there_are(
    tmp_path: Path, facts: int
) -> None:
    upserts = tuple(Upsert(ALICE.agent, draft(f"f{number}")) for number in range(facts))
    MemoryRepository(tmp_path).apply_changes("alice", ChangeSet(upserts=upserts))
    disk = WatchedFileSystem(tmp_path)
    store = MemoryRepository(disk)
    store.snapshot(ALICE)
    reads: list[Callable[[], object]] = [
        lambda: store.snapshot(ALICE),
        lambda: store.get_fact(ALICE, "f0"),
        lambda: store.get_fact(ALICE, "absent"),
        lambda: store.list_facts(ALICE),
        lambda: store.search_facts("text", [ALICE]),
    ]
    for read in reads:
        disk.calls.clear()
        read()
        assert [call.path for call in disk.calls if call.kind == "read"] == ["users/alice/memory.json"]
        assert disk.count("names", "identities", "identify", "is_empty", "lock_file") == 0
        assert len(disk.calls) == 4  # the root, users, alice, memory.json


def test_the_shared_revision_is_read_on_every_check(root: Path) -> None:
    disk = WatchedFileSystem(root)
    store = MemoryRepository(disk)
    store.snapshot(ALICE)
    disk.calls.clear()
    for _ in range(3):
        store.snapshot(ALICE)
    assert disk.count("read", ending="memory.json") == 3


def test_an_edit_by_hand_is_seen_after_reload_or_restart_and_not_before(root: Path) -> None:
    store = MemoryRepository(root)
    store.snapshot(ALICE)
    edit(fact_path(root, ALICE, "x"), "\n\ntext of x\n", "\n\nby hand\n")
    for read in (store.get_fact(ALICE, "x"), store.snapshot(ALICE).by_id[X]):
        assert read is not None
        assert read.content == "text of x"
    assert MemoryRepository(root).snapshot(ALICE).by_id[X].content == "by hand"
    assert store.reload(ALICE).by_id[X].content == "by hand"
    assert store.snapshot(ALICE).by_id[X].content == "by hand"


def test_a_commit_of_another_process_does_not_make_an_edit_by_hand_half_visible(root: Path) -> None:
    store = MemoryRepository(root)
    store.snapshot(ALICE)
    edit(fact_path(root, ALICE, "x"), "\n\ntext of x\n", "\n\nby hand\n")
    MemoryRepository(root).upsert_fact(ALICE, draft("z"))
    fact = store.get_fact(ALICE, "x")
    assert fact is not None
    assert store.snapshot(ALICE).by_id[X].content == fact.content


def test_an_unchanged_snapshot_is_handed_out_as_the_same_object(root: Path) -> None:
    store = MemoryRepository(root)
    first = store.snapshot(ALICE)
    assert store.snapshot(ALICE) is first
    assert store.list_facts(ALICE).facts[0] is first.facts[0]
    store.upsert_fact(CODER, draft("c"))
    after = store.snapshot(ALICE)
    assert after is not first
    assert after.facts[0] is first.facts[0]


def test_a_snapshot_cannot_be_changed_and_does_not_change(root: Path) -> None:
    store = MemoryRepository(root)
    snapshot: Any = store.snapshot(ALICE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.facts = ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.facts[0].content = "mine"
    with pytest.raises(TypeError):
        snapshot.by_id["x"] = None
    with pytest.raises(TypeError):
        snapshot.summaries.sections["user", "topOfMind"] = None
    contents = [fact.content for fact in snapshot.facts]
    store.edit_fact(ALICE, "x", {"content": "two"})
    store.clear(ALICE)
    assert [fact.content for fact in snapshot.facts] == contents
    assert snapshot.revision == 2


@pytest.mark.parametrize("mutation", [name for name in MUTATIONS if name != "adopt"])
def test_own_commits_patch_the_cache_and_nothing_but_memory_json_is_read_again(
    root: Path, mutation: str
) -> None:
    disk = WatchedFileSystem(root)
    store = MemoryRepository(disk)
    store.snapshot(ALICE)
    store.snapshot(CODER)
    MUTATIONS[mutation](store)
    disk.calls.clear()
    patched = [store.snapshot(scope) for scope in (ALICE, CODER)]
    assert {call.path for call in disk.calls if call.kind == "read"} == {"users/alice/memory.json"}
    assert disk.count("names", "identities") == 0
    fresh = MemoryRepository(root)
    assert patched == [fresh.snapshot(scope) for scope in (ALICE, CODER)]


@pytest.mark.parametrize("others", [0, 12])
def test_after_a_commit_of_another_process_only_the_changed_fact_is_read(tmp_path: Path, others: int) -> None:
    upserts = tuple(Upsert(ALICE.agent, draft(f"f{number}")) for number in range(others))
    writer = MemoryRepository(tmp_path)
    writer.apply_changes("alice", ChangeSet(upserts=(Upsert(ALICE.agent, draft("x")), *upserts)))
    settle(tmp_path)
    disk = WatchedFileSystem(tmp_path)
    reader = MemoryRepository(disk)
    reader.snapshot(ALICE)
    # A manifest as old as the facts proves nothing about them; this one is newer.
    writer.update_summaries("alice", {"user": {"topOfMind": "t"}})
    reader.snapshot(ALICE)
    writer.edit_fact(ALICE, "x", {"content": "two"})
    disk.calls.clear()
    assert reader.snapshot(ALICE).by_id[X].content == "two"
    assert [Path(call.path).name for call in disk.calls if call.kind == "read"] == [
        "memory.json",
        "x.md",
        "memory.json",
    ]


def test_a_commit_of_another_process_in_another_agent_makes_no_fact_be_read(root: Path) -> None:
    disk = WatchedFileSystem(root)
    writer, reader = MemoryRepository(root), MemoryRepository(disk)
    writer.update_summaries("alice", {"user": {"topOfMind": "t"}})
    reader.snapshot(ALICE)
    writer.upsert_fact(CODER, draft("c"))
    disk.calls.clear()
    assert reader.snapshot(ALICE).revision == 4
    assert disk.count("read", ending=".md") == 0


def test_a_point_read_opens_one_fact_file_however_many_there_are(tmp_path: Path) -> None:
    upserts = tuple(Upsert(ALICE.agent, draft(f"f{number}")) for number in range(12))
    MemoryRepository(tmp_path).apply_changes("alice", ChangeSet(upserts=upserts))
    disk = WatchedFileSystem(tmp_path)
    MemoryRepository(disk).get_fact(ALICE, "f7")
    assert disk.count("read", ending=".md") == 1
    assert disk.count("names", "identities") == 0


@pytest.mark.parametrize("mutation", ["update", "edit", "delete"])
def test_a_point_operation_reads_one_fact_file_and_lists_no_shard(tmp_path: Path, mutation: str) -> None:
    upserts = tuple(Upsert(ALICE.agent, draft(name)) for name in ("x", *map(str, range(12))))
    MemoryRepository(tmp_path).apply_changes("alice", ChangeSet(upserts=upserts))
    disk = WatchedFileSystem(tmp_path)
    MUTATIONS[mutation](MemoryRepository(disk))
    assert {call.path for call in disk.calls if call.kind == "read" and call.path.endswith(".md")} == {
        fact_path(tmp_path, ALICE, "x").relative_to(tmp_path).as_posix()
    }
    listed = {call.path for call in disk.calls if call.kind == "names"}
    assert listed == {"users/alice", "users/alice/.recovery"}
    assert disk.count("identities") == 0


def test_locks_that_nobody_uses_are_forgotten(root: Path) -> None:
    store = MemoryRepository(root)
    for mutation in ("create", "update", "summaries"):
        MUTATIONS[mutation](store)
    store.upsert_fact(BOB, draft("b"))
    gc.collect()
    assert len(store.engine.locks) == 0
