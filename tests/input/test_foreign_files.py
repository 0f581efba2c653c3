"""Files that others lay down, and files of ours that somebody broke: an error that names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import Corruption, MemoryRepository, UnsupportedFormat
from tests.support.stores import ALICE, CODER, bucket_path, draft, fact_path, store_with, tree
from tests.support.watched import WatchedFileSystem

STRAY = {
    "README.md": b"# About these facts\n",
    "x 2.md": b"---\nid: x\n---\n",
    "x (conflicted copy).md": b"---\nid: x\n---\n",
    "x.sync-conflict-20260719-000000-ABCDEFG.md": b"---\nid: x\n---\n",
    ".#x.md": b"",
    "#x.md#": b"",
    "x.md~": b"",
    ".x.md.swp": b"\0",
    "x.md.tmp": b"",
    "x.txt": b"",
    ".DS_Store": b"\0\0",
    "Thumbs.db": b"\0",
    "x.MD": b"",
    "résumé.md": b"",
}


@pytest.mark.parametrize("name", STRAY)
def test_a_stray_copy_does_not_make_a_scope_unreadable_and_is_never_touched(
    tmp_path: Path, name: str
) -> None:
    store = store_with(tmp_path, "x")
    shard = fact_path(tmp_path, ALICE, "x").parent
    places = [shard / name, shard.parent / name, shard.parent.parent / name, bucket_path(tmp_path) / name]
    for place in places:
        place.write_bytes(STRAY[name])
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"x"}
    store.edit_fact(ALICE, "x", {"content": "two"})
    store.clear(ALICE)
    store.clear_all("alice")
    assert [place.read_bytes() for place in places] == [STRAY[name]] * len(places)


@pytest.mark.parametrize("name", ["README", "Readme", "readme"])
def test_a_readme_is_no_fact_even_in_the_shard_of_its_name(tmp_path: Path, name: str) -> None:
    store = store_with(tmp_path, "x")
    path = fact_path(tmp_path, ALICE, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text("About these files.\n")
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"x"}
    store.clear(ALICE)
    assert path.exists()


def test_directories_that_are_no_shards_are_not_looked_at(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    facts = fact_path(tmp_path, ALICE, "x").parent.parent
    for name in ("zz", "0", "abc", "AB", ".obsidian", "templates"):
        facts.joinpath(name).mkdir()
        facts.joinpath(name, "y.md").write_text("---\nid: y\n---\n")
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"x"}


def test_a_fact_in_the_wrong_shard_is_corruption_that_says_where_it_lies(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    right = fact_path(tmp_path, ALICE, "x")
    wrong = right.parent.with_name("00") / "x.md"
    wrong.parent.mkdir()
    right.rename(wrong)
    with pytest.raises(Corruption, match="wrong shard") as corruption:
        MemoryRepository(tmp_path).snapshot(ALICE)
    assert corruption.value.path == wrong.relative_to(tmp_path).as_posix()


def test_a_note_in_the_wrong_shard_that_is_no_fact_is_left_out_and_left_alone(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    note = fact_path(tmp_path, ALICE, "x").parent.with_name("00") / "notes.md"
    note.parent.mkdir()
    note.write_text("Buy milk.\n")
    assert MemoryRepository(tmp_path).snapshot(ALICE).by_id.keys() == {"x"}
    store.clear(ALICE)
    assert note.read_text() == "Buy milk.\n"


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "NUL bytes": b"\0" * 300,
    "no UTF-8": b"---\nid: x\n---\n\xff\n",
    "no front matter": b"# x\n\ntext\n",
    "no end of the front matter": b"---\nid: x\n",
    "duplicate keys": b"---\nid: x\nid: x\n---\ntext\n",
    "an application tag": b"---\nid: !!python/object/apply:os.system [x]\n---\ntext\n",
    "an alias bomb": b"---\na: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n---\ntext\n",
    "great depth": b"---\nid: x\nk: " + b"[" * 100_000 + b"\n---\ntext\n",
    "git conflict markers": b"---\nid: x\n<<<<<<< HEAD\n=======\n>>>>>>> theirs\n---\ntext\n",
    "too large": b"---\nid: x\n---\n" + b"a" * 2_000_001,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_fact_is_corruption_that_names_the_file_and_nothing_is_changed(
    tmp_path: Path, name: str
) -> None:
    store_with(tmp_path, "x", "y")
    path = fact_path(tmp_path, ALICE, "x")
    path.write_bytes(BROKEN[name])
    before = tree(tmp_path)
    store = MemoryRepository(tmp_path)
    calls: list[Callable[[], object]] = [
        lambda: store.get_fact(ALICE, "x"),
        lambda: store.snapshot(ALICE),
        lambda: store.list_facts(ALICE),
        lambda: store.search_facts("text", [ALICE]),
        lambda: store.upsert_fact(ALICE, draft("x", "new")),
        lambda: store.upsert_fact(ALICE, draft("x", "new"), expected=1),
        lambda: store.edit_fact(ALICE, "x", {"content": "new"}),
        lambda: store.adopt_fact(ALICE, "x"),
        lambda: store.delete_fact(ALICE, "x"),
        lambda: store.create_fact(ALICE, draft("z"), max_facts=10),
        lambda: store.trim(ALICE, 1),
        lambda: store.run(ALICE, lambda _: pytest.fail("planned")),
    ]
    for call in calls:
        with pytest.raises(Corruption) as corruption:
            call()
        assert corruption.value.path == path.relative_to(tmp_path).as_posix()
    assert tree(tmp_path) == before


def test_a_broken_fact_does_not_hinder_what_does_not_need_it(tmp_path: Path) -> None:
    store_with(tmp_path, "x", "y")
    fact_path(tmp_path, ALICE, "x").write_bytes(b"")
    store = MemoryRepository(tmp_path)
    assert store.get_fact(ALICE, "y") is not None
    store.edit_fact(ALICE, "y", {"content": "two"})
    store.upsert_fact(ALICE, draft("z"))
    store.update_summaries("alice", {"user": {"topOfMind": "t"}})
    store.upsert_fact(CODER, draft("c"))
    assert {fact.id for fact in store.list_facts(ALICE, skip_corrupt=True).facts} == {"y", "z"}
    assert {fact_id for _, fact_id in store.clear(ALICE).deleted} == {"x", "y", "z"}
    assert store.snapshot(ALICE).facts == ()


def test_a_fact_of_a_newer_schema_is_not_called_corrupt(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    path = fact_path(tmp_path, ALICE, "x")
    path.write_bytes(path.read_bytes().replace(b"schemaVersion: 2", b"schemaVersion: 9"))
    with pytest.raises(UnsupportedFormat):
        MemoryRepository(tmp_path).snapshot(ALICE)
    page = MemoryRepository(tmp_path).list_facts(ALICE, skip_corrupt=True)
    assert [type(problem) for problem in page.problems] == [UnsupportedFormat]


def test_a_file_that_an_editor_is_just_writing_is_read_again_before_it_is_called_corrupt(
    tmp_path: Path,
) -> None:
    store_with(tmp_path, "x")
    path = fact_path(tmp_path, ALICE, "x")
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    disk = WatchedFileSystem(tmp_path)

    def finish(_: object) -> None:
        if disk.waits:
            path.write_bytes(whole)

    disk.on_call = finish
    assert MemoryRepository(disk).get_fact(ALICE, "x") is not None
    assert len(disk.waits) == 1
