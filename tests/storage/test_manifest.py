"""memory.json on disk: missing, going back, of another version, or full of surprises."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deermem import Corruption, DeerMemError, MemoryRepository, UnsupportedFormat
from deermem.model.identity import FactId
from tests.support.stores import ALICE, CODER, bucket_path, draft, manifest, store_with, tree
from tests.support.watched import WatchedFileSystem

Operation = Callable[[MemoryRepository], object]
READS: dict[str, Operation] = {
    "snapshot": lambda store: store.snapshot(ALICE),
    "get_fact": lambda store: store.get_fact(ALICE, "x"),
    "list_facts": lambda store: store.list_facts(ALICE),
    "get_manifest": lambda store: store.get_manifest("alice"),
    "snapshot of another agent": lambda store: store.snapshot(CODER),
}
WRITES: dict[str, Operation] = {
    "create": lambda store: store.upsert_fact(ALICE, draft("new")),
    "update": lambda store: store.edit_fact(ALICE, "x", {"content": "two"}),
    "delete": lambda store: store.delete_fact(ALICE, "x"),
    "summaries": lambda store: store.update_summaries("alice", {"user": {"topOfMind": "t"}}),
    "clear": lambda store: store.clear(ALICE),
    "clear_all": lambda store: store.clear_all("alice"),
}
OPERATIONS = {**READS, **WRITES}


def memory_json(root: Path) -> Path:
    return bucket_path(root) / "memory.json"


def replace(root: Path, **changes: object) -> None:
    memory_json(root).write_text(json.dumps({**manifest(root), **changes}), encoding="utf-8")


def refuse_everything(root: Path, error: type[DeerMemError], match: str) -> None:
    """Asserts that no operation works and none changes anything."""
    before = tree(root)
    for operation in OPERATIONS.values():
        disk = WatchedFileSystem(root)
        with pytest.raises(error, match=match) as refusal:
            operation(MemoryRepository(disk))
        assert getattr(refusal.value, "path", None) == "users/alice/memory.json"
    assert tree(root) == before


def test_a_missing_memory_json_is_corruption_while_facts_are_there(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    kept = memory_json(tmp_path).read_bytes()
    memory_json(tmp_path).unlink()
    refuse_everything(tmp_path, Corruption, "is missing although facts")
    memory_json(tmp_path).write_bytes(kept)
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"x"}


def test_a_missing_memory_json_without_any_fact_is_a_user_about_whom_nothing_was_stored(
    tmp_path: Path,
) -> None:
    bucket_path(tmp_path).joinpath("agents", "coder").mkdir(parents=True)
    bucket_path(tmp_path).joinpath("agents", "coder", "config.yaml").write_text("host: yes")
    store = MemoryRepository(tmp_path)
    assert store.snapshot(ALICE).revision == 0
    assert store.upsert_fact(ALICE, draft("x")).revision == 1


@pytest.mark.parametrize("seen_by", [*READS, "create"])
@pytest.mark.parametrize("refused", ["snapshot", "get_fact", "get_manifest", "update", "create", "clear"])
def test_a_memory_json_that_went_back_is_refused_until_reload(
    tmp_path: Path, seen_by: str, refused: str
) -> None:
    store_with(tmp_path, "x")
    old = memory_json(tmp_path).read_bytes()
    disk = WatchedFileSystem(tmp_path)
    store = MemoryRepository(disk)
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("y"))
    OPERATIONS[seen_by](store)
    memory_json(tmp_path).write_bytes(old)
    before = tree(tmp_path)
    with pytest.raises(Corruption, match="went back from revision"):
        OPERATIONS[refused](store)
    assert tree(tmp_path) == before
    assert 1.0 < sum(disk.waits) < 3.0  # a network client may show an old state for about a second
    assert store.reload(ALICE).revision == 1
    assert store.upsert_fact(ALICE, draft("z")).revision == 2


@pytest.mark.parametrize("gone", ["memory.json", "users/alice", "users"])
def test_a_store_that_vanished_under_a_process_is_not_taken_for_an_empty_one(
    tmp_path: Path, gone: str
) -> None:
    root = tmp_path / "store"
    store_with(root, "x")
    store = MemoryRepository(WatchedFileSystem(root))
    store.snapshot(ALICE)
    place = memory_json(root) if gone == "memory.json" else root / gone
    place.rename(tmp_path / "gone")
    before = tree(root)
    for operation in (*READS.values(), WRITES["create"], WRITES["update"], WRITES["summaries"]):
        with pytest.raises(Corruption):
            operation(store)
    assert tree(root) == before
    (tmp_path / "gone").rename(place)
    assert store.snapshot(ALICE).by_id.keys() == {"x"}


def test_a_memory_json_that_is_stale_for_a_moment_is_read_again(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    old = memory_json(tmp_path).read_bytes()
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("y"))
    new = memory_json(tmp_path).read_bytes()
    disk = WatchedFileSystem(tmp_path)
    store = MemoryRepository(disk)
    store.snapshot(ALICE)
    memory_json(tmp_path).write_bytes(old)

    def catch_up(_: object) -> None:
        if len(disk.waits) == 2:
            memory_json(tmp_path).write_bytes(new)

    disk.on_call = catch_up
    assert store.snapshot(ALICE).revision == 2
    assert len(disk.waits) == 2


@pytest.mark.parametrize("version", ["3.0", "2.1", 2.0, 2, "x" * 100_000])
def test_a_memory_json_of_a_newer_version_is_refused_and_not_downgraded(
    tmp_path: Path, version: object
) -> None:
    store_with(tmp_path, "x")
    replace(tmp_path, version=version)
    refuse_everything(tmp_path, UnsupportedFormat, "is not supported")


HOSTILE = {
    "empty": b"",
    "NUL bytes": b"\0" * 600,
    "no UTF-8": b'{"version": "2.0", "x": "\xff"}',
    "a list": b"[]",
    "cut short": b'{"version": "2.0", "revi',
    "nested 100,000 deep": b'{"version": "2.0", "x": ' + b"[" * 100_000,
    "NaN": b'{"version": "2.0", "revision": NaN}',
    "a lone surrogate": b'{"version": "2.0", "x": "\\ud800"}',
    "a huge integer": b'{"version": "2.0", "revision": ' + b"9" * 5_000 + b"}",
    "conflict markers": b'<<<<<<< HEAD\n{"version": "2.0"}\n=======\n{}\n>>>>>>> theirs\n',
    "two documents": b'{"version": "2.0"}{"version": "2.0"}',
    "too large": b" " * 50_000_001,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_any_bytes_in_memory_json_are_corruption_that_names_the_file(tmp_path: Path, name: str) -> None:
    store_with(tmp_path, "x")
    memory_json(tmp_path).write_bytes(HOSTILE[name])
    refuse_everything(tmp_path, Corruption, "users/alice/memory.json")


WRONG_VALUES: dict[str, dict[str, Any]] = {
    "revision": {"revision": 0},
    "revision: must be": {"revision": "12"},
    "revision: must be an": {"revision": True},
    "revision: must": {"revision": 2**60},
    "lastUpdated": {"lastUpdated": "yesterday"},
    "lastUpdated: must": {"lastUpdated": None},
    "user": {"user": []},
    "history": {"history": "text"},
    "user.topOfMind": {"user": {"topOfMind": "text"}},
    "history.recentMonths": {"history": {"recentMonths": {"summary": 1}}},
    "user.own": {"user": {"own": {"summary": "", "updatedAt": 5}}},
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_wrong_value_in_memory_json_is_corruption_that_names_the_key(tmp_path: Path, name: str) -> None:
    store_with(tmp_path, "x")
    replace(tmp_path, **WRONG_VALUES[name])
    refuse_everything(tmp_path, Corruption, f"users/alice/memory.json: {name}")


def test_unknown_keys_survive_every_write_at_the_top_beside_the_sections_and_inside_them(
    tmp_path: Path,
) -> None:
    store_with(tmp_path, "x")
    replace(
        tmp_path,
        tags=["a", {"b": 1.5}],
        user={"hobbies": {"summary": "tea", "updatedAt": "2026-01-01T00:00:00Z", "lang": "en"}},
        history={"recentMonths": {"summary": "r", "updatedAt": "2026-01-01T00:00:00Z", "lang": "fr"}},
        zebra=None,
    )
    store = MemoryRepository(tmp_path)
    for name in ("create", "update", "summaries", "clear"):
        WRITES[name](store)
    after = manifest(tmp_path)
    assert after["tags"] == ["a", {"b": 1.5}]
    assert after["zebra"] is None
    assert list(after)[-2:] == ["tags", "zebra"]
    assert after["user"]["hobbies"] == {"summary": "tea", "updatedAt": "2026-01-01T00:00:00Z", "lang": "en"}
    assert after["history"]["recentMonths"]["lang"] == "fr"
    assert after["user"]["topOfMind"]["summary"] == "t"


def test_a_memory_json_of_another_program_that_means_the_same_loads(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    text = json.dumps({**manifest(tmp_path), "user": {}, "history": {}}, indent=8).replace("\n", "\r\n")
    memory_json(tmp_path).write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {FactId("x")}
