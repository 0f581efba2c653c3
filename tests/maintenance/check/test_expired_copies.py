"""What is kept for an undo, and said to be kept for some days, is gone after them once a repair has run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deermem import Corruption, LockTimeout, MemoryRepository
from deermem.format.safety_json import decode_safety_copy
from deermem.maintenance.check import check_store, check_user
from deermem.maintenance.findings import CheckReport, Severity
from deermem.maintenance.repair import repair_user
from deermem.maintenance.taking_back import undo
from deermem.model.timestamps import format_timestamp
from tests.cli.conftest import CommandLine, cli
from tests.support.stores import ALICE, CODER, Clock, bucket_path, draft, interrupt, store_with, tree
from tests.support.watched import Call, WatchedFileSystem, call_of

__all__ = ["cli"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> MemoryRepository:
    """A store with three clears of alice, two days between them."""
    store = opened(tmp_path, clock)
    for number in range(3):
        store.upsert_fact(ALICE, draft(f"f{number}"))
        store.clear(ALICE)
        clock.now += timedelta(days=2)
    return store


def opened(root: Path | WatchedFileSystem, clock: Clock, days: int = 7) -> MemoryRepository:
    return MemoryRepository(root, clock=clock, undo_days=days, lock_timeout=0.2)


def copies(root: Path) -> list[str]:
    return sorted(path.name for path in bucket_path(root).joinpath(".safety").iterdir())


def expired(report: CheckReport) -> list[str]:
    assert {(each.kind, each.severity) for each in report.findings} <= {("safety-expired", Severity.NOTE)}
    return [Path(each.path).name for each in report.findings]


def repair(store: MemoryRepository) -> None:
    (report,) = check_user(store, "alice").users
    repair_user(store, report.user, report.findings)


def test_what_is_young_enough_is_no_finding(store: MemoryRepository, clock: Clock, tmp_path: Path) -> None:
    assert check_store(store).findings == ()
    clock.now += timedelta(hours=23)
    assert check_store(store).findings == ()
    disk = WatchedFileSystem(tmp_path)
    check_store(opened(disk, clock))
    assert disk.count("read", ending="-clear.json") == 1, "the oldest one tells of the others"


def test_each_copy_is_a_note_once_its_days_are_over(
    store: MemoryRepository, clock: Clock, tmp_path: Path
) -> None:
    clock.now += timedelta(days=2)
    before = tree(tmp_path)
    assert expired(check_store(store)) == ["2-clear.json"]
    clock.now += timedelta(days=2)
    report = check_store(store)
    assert sorted(expired(report)) == ["2-clear.json", "4-clear.json"]
    assert report.worst is Severity.NOTE
    assert "2026-07-19" in report.findings[0].message
    assert {each.repair for each in report.findings} == {"remove it for good"}
    assert tree(tmp_path) == before


def test_a_repair_removes_them_for_good_and_nothing_else(
    store: MemoryRepository, clock: Clock, tmp_path: Path
) -> None:
    store.upsert_fact(CODER, draft("stays"))
    clock.now += timedelta(days=4)
    before = store.get_manifest("alice")
    repair(store)
    assert copies(tmp_path) == ["6-clear.json"]
    assert check_store(store).findings == ()
    assert store.get_manifest("alice") == before
    assert not bucket_path(tmp_path).joinpath(".quarantine").exists()
    undo(store, ALICE.user)
    assert [fact.id for fact in store.snapshot(ALICE).facts] == ["f2"]


def test_a_copy_that_an_undo_left_goes_as_well(tmp_path: Path, clock: Clock) -> None:
    store = store_with(tmp_path, "a")
    store = opened(tmp_path, clock)
    bucket_path(tmp_path).joinpath("agents/__default__/facts/00").mkdir()
    store.clear(ALICE)
    name = copies(tmp_path)[0]
    folder = bucket_path(tmp_path) / ".safety"
    folder.joinpath(name).rename(folder / name.replace(".json", "-undone.json"))
    clock.now += timedelta(days=8)
    repair(store)
    assert copies(tmp_path) == []


@pytest.mark.usefixtures("store")
def test_with_no_days_every_copy_has_expired(clock: Clock, tmp_path: Path) -> None:
    clock.now -= timedelta(days=100)  # a clock that was put back
    careless = opened(tmp_path, clock, days=0)
    assert len(expired(check_store(careless))) == 3
    repair(careless)
    assert copies(tmp_path) == []


def test_the_lock_is_held_and_where_it_is_not_to_be_had_nothing_goes(
    store: MemoryRepository, clock: Clock, tmp_path: Path
) -> None:
    clock.now += timedelta(days=30)
    with opened(tmp_path, clock).engine.maintenance(ALICE.user), pytest.raises(LockTimeout):
        repair(store)
    assert len(copies(tmp_path)) == 3
    disk = WatchedFileSystem(tmp_path)
    refused: list[Call] = []

    def look(call: Call) -> None:
        if call.kind == "unlink":
            with pytest.raises(LockTimeout):
                store.upsert_fact(ALICE, draft("x"))
            refused.append(call)

    disk.on_call = look
    repair(opened(disk, clock))
    assert len(refused) == 3
    assert disk.count("sync", ending=".safety") == 1


def test_a_crash_between_two_of_them_leaves_the_others_for_the_next_repair(
    store: MemoryRepository, clock: Clock, tmp_path: Path
) -> None:
    clock.now += timedelta(days=30)

    def repair_at_that_time(other: MemoryRepository) -> None:
        other.engine.stamps = store.engine.stamps
        repair(other)

    interrupt(tmp_path, repair_at_that_time, call_of("unlink", ".safety/4-clear.json"))
    assert len(copies(tmp_path)) == 2
    repair(store)
    assert copies(tmp_path) == []


def test_a_copy_that_goes_with_a_clear_meanwhile_is_no_finding(
    store: MemoryRepository, clock: Clock, tmp_path: Path
) -> None:
    clock.now += timedelta(days=30)
    disk = WatchedFileSystem(tmp_path)

    def clear(call: Call) -> None:
        if call.kind == "read" and ".safety" in call.path:
            disk.on_call = lambda _: None
            store.clear(CODER)

    disk.on_call = clear
    assert check_store(opened(disk, clock)).findings == ()


Damage = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[:-20],
        lambda data: data.replace(b'"format":1', b'"format":9'),
        lambda data: data.replace(b"2026-07-", b"2026-77-"),
    ],
    ids=["empty", "cut short", "later format", "no time"],
)
def test_a_copy_that_cannot_be_read_is_a_warning_and_hides_no_other(
    store: MemoryRepository, clock: Clock, tmp_path: Path, damage: Damage
) -> None:
    path = bucket_path(tmp_path) / ".safety" / "2-clear.json"
    path.write_bytes(damage(path.read_bytes()))
    clock.now += timedelta(days=4)
    found = check_store(store).findings
    assert [(each.kind, Path(each.path).name, each.repair) for each in found] == [
        ("safety-unreadable", "2-clear.json", ""),
        ("safety-expired", "4-clear.json", "remove it for good"),
    ]
    repair(store)
    assert copies(tmp_path) == ["2-clear.json", "6-clear.json"]
    store.clear(CODER)  # such a file is in nobody's way


@pytest.mark.usefixtures("store")
def test_a_time_that_is_none_is_damage(tmp_path: Path) -> None:
    data = bucket_path(tmp_path).joinpath(".safety", "2-clear.json").read_bytes()
    assert decode_safety_copy(data, "x").revision == 2
    with pytest.raises(Corruption):
        decode_safety_copy(data.replace(b"2026-07-", b"2026-77-"), "x")


def age(cli: CommandLine, user: str) -> Path:
    """Makes a copy of a user's clear a hundred days old."""
    cli.add("one", "--user-id", user)
    cli.ok("clear", "--all", "--yes", "--user-id", user)
    (path,) = cli.root.glob(f"users/{user}/.safety/*.json")
    document = json.loads(path.read_bytes())
    document["time"] = format_timestamp(datetime.now(UTC) - timedelta(days=100))
    path.write_text(json.dumps(document), "utf-8")
    return path


def test_a_nightly_job_removes_those_of_all_users_and_mends_nothing_else(cli: CommandLine) -> None:
    paths = [age(cli, "alice"), age(cli, "bob")]
    cli.add("broken", "--id", "broken", "--user-id", "bob")
    cli.file_of("broken", "--user-id", "bob").write_bytes(b"no fact")
    (cli.root / "users").chmod(0o755)
    job = ("check", "--all-users", "--repair", "--only", "safety-expired", "--yes")
    result = cli(*job)
    assert result.code == 1  # of what is left
    assert [path.exists() for path in paths] == [False, False]
    assert result.err.count("safety-expired: remove it for good") == 2
    assert [line.split("\t")[1] for line in result.lines] == ["permissions", "fact-corrupt"]
    assert cli.file_of("broken", "--user-id", "bob").read_bytes() == b"no fact"
    document = cli(*job, "--json").json
    assert (document["repaired"], document["setAside"]) == ([], [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "safety-expired"], "--only goes with --repair"),
        (["--repair", "--only", "safety"], "no kind of finding is called 'safety'"),
        (["--undo", "--only", "safety-expired"], "--only goes with --repair"),
    ],
    ids=str,
)
def test_wrong_use_of_only_is_told(cli: CommandLine, arguments: list[str], message: str) -> None:
    cli.root.mkdir()
    refused = cli("check", *arguments)
    assert refused.code == 2
    assert message in refused.err


def test_the_setting_says_how_long_they_are_kept(cli: CommandLine) -> None:
    age(cli, "alice")
    report = cli.ok("check", "--user-id", "alice", "--json").json
    assert [(each["kind"], each["severity"]) for each in report["findings"]] == [("safety-expired", "note")]
    cli.monkeypatch.setenv("DEERMEM_UNDO_DAYS", "101")
    assert cli.ok("check", "--user-id", "alice", "--json").json["findings"] == []
