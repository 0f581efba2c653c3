"""The stores that benchmarks build are what the repository itself would have left."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.floors import DurableRemovals, read_files
from benchmarks.rows.point_writes import PointWrites, replacements
from benchmarks.samples import build_scope, content_of, draft_of, fact_id, fact_of, unused_ids
from deermem import MemoryRepository, Scope
from deermem.format.fact_canonical import read_canonical
from deermem.format.fact_markdown import encode_fact
from deermem.format.layout import bucket_parts, facts_parts, shard_of

SCOPE = Scope.of("alice", "assistant")


def facts_folder(root: Path) -> Path:
    return root.joinpath(*bucket_parts(SCOPE.user), *facts_parts(SCOPE.agent))


def test_contents_have_300_to_600_bytes_of_ascii_and_differ() -> None:
    contents = [content_of(number) for number in range(2_000)]
    assert all(300 <= len(content) <= 600 and content.isascii() for content in contents)
    assert len(set(contents)) == len(contents)


def test_a_fact_made_without_checks_is_the_one_that_its_draft_makes(tmp_path: Path) -> None:
    with MemoryRepository(tmp_path) as repository:
        for number in range(30):
            made = fact_of(number, fact_id(number), SCOPE)
            written = repository.upsert_fact(SCOPE, draft_of(number, fact_id(number))).written[0]
            assert written.same_meaning(made)


def test_the_repository_reads_a_built_scope_and_writes_on(tmp_path: Path) -> None:
    ids = build_scope(tmp_path, SCOPE, 50)
    with MemoryRepository(tmp_path) as repository:
        assert [fact.id for fact in repository.snapshot(SCOPE).facts] == sorted(ids)
        assert repository.upsert_fact(SCOPE, draft_of(50)).revision == 2


def test_built_facts_are_in_the_canonical_form() -> None:
    for number in range(30):
        fact = fact_of(number, fact_id(number), SCOPE)
        assert read_canonical(encode_fact(fact).decode(), SCOPE, fact.id) == fact


def test_unused_ids_are_those_of_no_built_fact_and_keep_to_the_shards() -> None:
    unused = unused_ids(100, {"0a", "ff"})
    assert {shard_of(one) for one in unused} == {"0a", "ff"}
    assert not {fact_id(number) for number in range(100)}.intersection(unused)


def test_the_floor_of_removals_leaves_no_fact(tmp_path: Path) -> None:
    build_scope(tmp_path, SCOPE, 20)
    DurableRemovals(facts_folder(tmp_path))()
    assert list(facts_folder(tmp_path).glob("*/*.md")) == []


def test_the_floor_of_writes_leaves_three_whole_files(tmp_path: Path) -> None:
    replace_all = replacements(tmp_path / "floor")
    replace_all()
    replace_all.close()
    files = {path.name: path.stat().st_size for path in (tmp_path / "floor").rglob("*") if path.is_file()}
    assert files.keys() == {"journal", "memory.json", "fact_0.md"}
    assert files["journal"] > files["memory.json"] + files["fact_0.md"]


def test_the_floor_of_reads_opens_every_fact(tmp_path: Path) -> None:
    build_scope(tmp_path, SCOPE, 20)
    facts = facts_folder(tmp_path)
    read_files(str(facts))
    for path in facts.glob("*/*.md"):
        path.rename(path.with_suffix(".aside"))
        path.symlink_to("absent")
        with pytest.raises(FileNotFoundError, match=path.name):
            read_files(str(facts))
        path.unlink()
        path.with_suffix(".aside").rename(path)


def test_point_writes_leave_the_scope_as_large_as_it_was(tmp_path: Path) -> None:
    writes = PointWrites(tmp_path, 30)
    for choose in (writes.choose_any_shard, writes.choose_used_shard):
        choose()
        writes.create()
    for side in writes.sides(""):
        side.prepare()
        side.run()
    writes.choose_any_shard()
    with MemoryRepository(tmp_path) as repository:
        assert len(repository.snapshot(SCOPE).facts) == 30
