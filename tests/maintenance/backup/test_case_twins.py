"""Users whose ids differ only in case are two where the disk says so; elsewhere one of them is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from deermem import InvalidInputError, MemoryRepository, Scope
from deermem.maintenance.restore import Fate, OnConflict, Selection
from deermem.testing.simulated_disk import SimulatedDisk
from tests.cli.conftest import CommandLine, cli
from tests.maintenance.backup.archives import files_below, restored, saved
from tests.support.stores import BOB, draft, store_with
from tests.support.watched import WatchedFileSystem

__all__ = ["cli"]

LOWER = Scope.of("alice")
UPPER = Scope.of("Alice")


def twins(root: Path) -> MemoryRepository:
    store = store_with(root, "lower", scope=LOWER)
    store.upsert_fact(UPPER, draft("upper"))
    store.upsert_fact(BOB, draft("bob"))
    return store


def on_one_case() -> MemoryRepository:
    """Returns an empty store on a disk that takes names of another case for the same."""
    return MemoryRepository(SimulatedDisk(ignore_case=True).process())


def ids(store: MemoryRepository, scope: Scope) -> list[str]:
    return [fact.id for fact in store.snapshot(scope).facts]


def test_where_the_disk_keeps_them_apart_both_come_back(tmp_path: Path) -> None:
    archive = saved(twins(tmp_path / "a"))
    plan = restored(MemoryRepository(tmp_path / "b"), archive)
    assert plan.left_out == {}
    assert files_below(tmp_path / "b") == files_below(tmp_path / "a")
    assert {user.fate for user in restored(MemoryRepository(tmp_path / "b"), archive).users.values()} == {
        Fate.THERE
    }


@pytest.mark.parametrize("on_conflict", OnConflict)
def test_where_the_disk_takes_them_for_one_the_second_is_left_out_and_told_of(
    tmp_path: Path, on_conflict: OnConflict
) -> None:
    archive = saved(twins(tmp_path / "a"))
    store = on_one_case()
    for _ in range(2):
        plan = restored(store, archive, on_conflict)
        assert [(bucket, str(error)) for bucket, error in plan.left_out.items()] == [
            ("alice", "user_id: alice differs only in case from another user's id")
        ]
        assert plan.users["alice"].fate is Fate.LEFT_OUT
        assert (ids(store, UPPER), ids(store, BOB)) == (["upper"], ["bob"])
        assert set(store.list_users()) == {"Alice", "bob"}
        with pytest.raises(InvalidInputError):
            store.snapshot(LOWER)


def test_whose_directory_is_there_stays_and_the_other_is_left_out(tmp_path: Path) -> None:
    archive = saved(twins(tmp_path / "a"))
    store = on_one_case()
    restored(store, archive, selection=Selection({"alice"}))
    plan = restored(store, archive)
    assert set(plan.left_out) == {"Alice"}
    assert ids(store, LOWER) == ["lower"]


def test_a_user_who_is_named_and_cannot_be_here_is_an_error(tmp_path: Path) -> None:
    archive = saved(twins(tmp_path / "a"))
    store = on_one_case()
    restored(store, archive, selection=Selection({"alice"}))
    with pytest.raises(InvalidInputError, match="differs only in case"):
        restored(store, archive, selection=Selection({"Alice"}))


def test_an_erased_twin_is_left_out_as_well(tmp_path: Path) -> None:
    from deermem.maintenance.erase import erase_user

    archive = saved(twins(tmp_path / "a"))
    store = on_one_case()
    restored(store, archive, selection=Selection({"alice"}))
    erase_user(store, "alice")
    plan = restored(store, archive)
    assert set(plan.left_out) == {"alice"}
    assert ids(store, UPPER) == ["upper"]


def test_a_user_with_the_name_of_a_device_keeps_nobody_else_from_coming_back(tmp_path: Path) -> None:
    store = store_with(tmp_path / "a", "device", scope=Scope.of("con"))
    store.upsert_fact(BOB, draft("bob"))
    there = MemoryRepository(WatchedFileSystem(tmp_path / "b", windows_names=True))
    plan = restored(there, saved(store))
    assert set(plan.left_out) == {"con"}
    assert there.list_users() == ("bob",)


def test_who_was_left_out_is_named_and_the_exit_code_says_so(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twins(cli.root)
    archive = str(tmp_path / "backup.tar.gz")
    cli.ok("backup", "--all-users", "--out", archive)
    disk = SimulatedDisk(ignore_case=True)
    monkeypatch.setattr("deermem.repository.core.LocalFileSystem", lambda _: disk.process())
    planned = cli("restore", archive, "--dry-run")
    assert planned.code == 0  # nothing is there yet that would show how the disk takes names
    result = cli("restore", archive)
    assert result.code == 4
    assert "alice: left out (2 files)" in result.lines
    assert "bob: restored (2 files)" in result.lines
    assert "left out: the user id alice differs only in case from another user's id" in result.err
    assert cli("restore", archive, "--dry-run").code == 4
    document = cli("restore", archive, "--json").json
    assert {user["bucket"]: user["outcome"] for user in document["users"]} == {
        "Alice": "already there",
        "alice": "left out",
        "bob": "already there",
    }
    assert [problem["type"] for problem in document["problems"]] == ["UserLeftOut"]
