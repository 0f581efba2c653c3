"""One odd file of one user never makes the backup of all users useless: it is left out, and told of."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import Corruption, MemoryRepository
from deermem.format.layout import shard_of
from deermem.maintenance.backup import back_up, verify
from deermem.maintenance.saving import SavedUser
from deermem.model.identity import FactId, UserId
from tests.maintenance.backup.archives import TOOL, members_of, restored
from tests.support.stores import ALICE, BOB, CODER, bucket_path, draft, fact_path, store_with


def save_all(store: MemoryRepository) -> tuple[bytes, dict[str | None, SavedUser]]:
    stream = io.BytesIO()
    users = [UserId(bucket, bucket) for bucket in store.list_users()]
    reports = back_up(store.engine, users, stream, tool=TOOL)
    return stream.getvalue(), {report.user.bucket: report for report in reports}


@pytest.fixture
def store(tmp_path: Path) -> MemoryRepository:
    """A store of two users, one with side files."""
    store = store_with(tmp_path / "a", "a", "b")
    store.upsert_fact(CODER, draft("c"))
    store.upsert_fact(BOB, draft("d"))
    side_files(tmp_path).mkdir(mode=0o700)
    return store


def side_files(tmp_path: Path) -> Path:
    return bucket_path(tmp_path / "a") / "agents" / "coder" / ".metadata"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.parametrize(
    "name",
    [b"a\nb", b"a\\b", b"a:b", b"a.", b"a ", b"\xff\xfe", b"a\x7f"],
    ids=repr,
)
def test_a_name_that_not_every_file_system_takes_is_left_out(
    store: MemoryRepository, tmp_path: Path, name: bytes
) -> None:
    Path(os.fsdecode(os.fsencode(side_files(tmp_path)) + b"/" + name)).write_bytes(b"odd")
    side_files(tmp_path).joinpath("seen.json").write_bytes(b"{}")
    archive, reports = save_all(store)
    (problem,) = reports["alice"].problems
    assert isinstance(problem, Corruption)
    assert problem.path == f"users/alice/agents/coder/.metadata/{os.fsdecode(name)}"
    assert reports["bob"].problems == ()
    assert verify(io.BytesIO(archive)).problems == []
    restored(MemoryRepository(tmp_path / "b"), archive)
    assert MemoryRepository(tmp_path / "b").snapshot(ALICE) == store.snapshot(ALICE)
    assert [data for name, data in members_of(archive) if ".metadata" in name] == [b"{}"]


@pytest.mark.parametrize("names", [("A", "a"), ("e\u0301", "\u00e9"), ("\u017f", "s")], ids=ascii)
def test_of_names_that_are_one_on_some_file_system_the_first_is_saved(
    store: MemoryRepository, tmp_path: Path, names: tuple[str, str]
) -> None:
    for name in names:
        side_files(tmp_path).joinpath(name).write_bytes(name.encode())
    if len(list(side_files(tmp_path).iterdir())) < 2:
        pytest.skip("they are one here")
    archive, reports = save_all(store)
    (problem,) = reports["alice"].problems
    assert isinstance(problem, Corruption)
    assert problem.path.endswith(f"/.metadata/{max(names)}")
    assert problem.reason == "has a name that is another file's on some file systems, so it is in no backup"
    verify(io.BytesIO(archive))
    restored(MemoryRepository(tmp_path / "b"), archive)


def twins_of_one_shard() -> tuple[str, str]:
    """Returns two fact ids that differ only in case and have one shard; one pair in 256 does."""
    for number in range(10_000):
        lower, upper = f"x{number}", f"X{number}"
        if shard_of(FactId(lower)) == shard_of(FactId(upper)):
            return upper, lower
    raise AssertionError("there is none")


def test_facts_that_differ_only_in_case_are_saved_unless_they_lie_side_by_side(
    store: MemoryRepository, tmp_path: Path
) -> None:
    first, second = twins_of_one_shard()
    for fact_id in ("Q1", "q1", first, second):
        store.upsert_fact(ALICE, draft(fact_id))
    archive, reports = save_all(store)
    assert [Path(str(problem).partition(":")[0]).stem for problem in reports["alice"].problems] == [second]
    restored(MemoryRepository(tmp_path / "b"), archive)
    ids = {fact.id for fact in MemoryRepository(tmp_path / "b").snapshot(ALICE).facts}
    assert ids == {"a", "b", "Q1", "q1", first}


Plant = Callable[[Path], None]


def as_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def as_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("plant", [as_link, as_directory])
@pytest.mark.parametrize("name", ["fact", "memory.json", ".memory.fences.json"])
def test_what_lies_in_place_of_a_file_is_never_passed_over_in_silence(
    store: MemoryRepository, tmp_path: Path, plant: Plant, name: str
) -> None:
    store.clear(CODER)
    path = fact_path(tmp_path / "a", ALICE, "a") if name == "fact" else bucket_path(tmp_path / "a") / name
    plant(path)
    archive, reports = save_all(store)
    (problem,) = reports["alice"].problems
    assert isinstance(problem, Corruption)
    assert problem.path == path.relative_to(tmp_path / "a").as_posix()
    assert {user.user.bucket for user in verify(io.BytesIO(archive)).users} == {"alice", "bob"}


def test_a_directory_among_side_files_is_the_hosts_business(store: MemoryRepository, tmp_path: Path) -> None:
    side_files(tmp_path).joinpath("deep").mkdir()
    _, reports = save_all(store)
    assert reports["alice"].problems == ()


@pytest.mark.parametrize("data", [b"", b"{", b'{"version": "9.0"}', b"\xff"])
def test_a_summary_file_that_cannot_be_read_is_told_of_by_who_verifies_and_who_restores(
    store: MemoryRepository, tmp_path: Path, data: bytes
) -> None:
    bucket_path(tmp_path / "a").joinpath("memory.json").write_bytes(data)
    archive, _ = save_all(store)
    found = verify(io.BytesIO(archive))
    assert [str(problem).partition(":")[0] for problem in found.problems] == ["users/alice/memory.json"]
    plan = restored(MemoryRepository(tmp_path / "b"), archive)
    assert [str(each) for each in plan.problems] == [str(each) for each in found.problems]
    assert bucket_path(tmp_path / "b").joinpath("memory.json").read_bytes() == data
