"""Migrations while others migrate, read and write: no error, nothing lost, nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from deermem import MemoryRepository, Scope
from deermem.migration import Status
from tests.migration.runs import fact_files, facts, put_users
from tests.migration.v1 import backup_of
from tests.migration.work import migrate_when_told, read_and_write_all
from tests.support.processes import Peer
from tests.support.stores import bucket_path, manifest


def names(count: int) -> list[str]:
    return [f"user{number:04}" for number in range(count)]


def run_at_once(peers: Sequence[Peer]) -> list[object]:
    """Lets processes that are ready go on, all at once, and returns what each says at its end."""
    for peer in peers:
        assert peer.hear() == "ready"
    for peer in peers:
        peer.tell()
    return [peer.hear() for peer in peers]


def check_all_is_there(root: Path, users: Sequence[str], count: int, writers: Sequence[str]) -> None:
    """Makes sure that every user has every fact, once, with its text, and is migrated completely."""
    store = MemoryRepository(root)
    old = {fact["id"]: fact["content"] for fact in facts(count)}
    new = {f"{name}-written": f"text of {name}-written" for name in writers}
    for user in users:
        found = store.snapshot(Scope.of(user))
        assert {fact.id: fact.content for fact in found.facts} == {**old, **new}
        assert fact_files(root, user) == sorted({**old, **new})
        assert found.revision == 1 + len(writers)
        assert manifest(root, user)["version"] == "2.0"
        assert backup_of(bucket_path(root, user) / "memory.json").exists()
        assert not bucket_path(root, user).joinpath(".memory.journal.json").exists()


def migrate_while_others_work(root: Path, users: int, count: int, workers: int) -> None:
    """Migrates users while processes read and write them; with `workers` alone each access migrates."""
    all_users = names(users)
    put_users(root, *all_users, count=count)
    writers = [f"w{number}" for number in range(workers)]
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(migrate_when_told, root, all_users, 2))]
        peers += [
            stack.enter_context(Peer(read_and_write_all, root, all_users, name, count, seed))
            for seed, name in enumerate(writers)
        ]
        outcomes, *written = run_at_once(peers)
    assert isinstance(outcomes, dict)
    assert {reason for _, reason in outcomes.values()} == {""}
    assert {status for status, _ in outcomes.values()} <= {Status.MIGRATED, Status.CURRENT}
    assert written == [users] * workers
    check_all_is_there(root, all_users, count, writers)


def test_users_are_migrated_while_two_processes_read_and_write_them(tmp_path: Path) -> None:
    migrate_while_others_work(tmp_path, users=50, count=20, workers=2)


@pytest.mark.stress
def test_two_thousand_users_are_migrated_while_four_processes_read_and_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.processes.PATIENCE", 1_500.0)
    migrate_while_others_work(tmp_path, users=2_000, count=50, workers=4)


def test_of_two_runs_at_once_each_user_is_migrated_by_one_and_current_for_the_other(
    tmp_path: Path,
) -> None:
    users = names(20)
    put_users(tmp_path, *users, count=3)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(migrate_when_told, tmp_path, users, 2)) for _ in range(2)]
        runs = run_at_once(peers)
    counted: Counter[str] = Counter()
    for run in runs:
        assert isinstance(run, dict)
        counted.update(f"{user} {status}" for user, (status, _) in run.items())
    assert counted == Counter(
        f"{user} {status}" for user in users for status in (Status.MIGRATED, Status.CURRENT)
    )
    check_all_is_there(tmp_path, users, 3, [])


def test_readers_and_writers_need_nobody_to_migrate_for_them(tmp_path: Path) -> None:
    users = names(12)
    put_users(tmp_path, *users, count=5)
    writers = ("a", "b", "c")
    with ExitStack() as stack:
        peers = [
            stack.enter_context(Peer(read_and_write_all, tmp_path, users, name, 5, 0))  # all in one order
            for name in writers
        ]
        assert run_at_once(peers) == [12, 12, 12]
    check_all_is_there(tmp_path, users, 5, writers)


def test_a_run_that_is_killed_leaves_nothing_half_done_and_the_next_goes_on(tmp_path: Path) -> None:
    users = names(30)
    put_users(tmp_path, *users, count=10)
    with Peer(migrate_when_told, tmp_path, users, 2) as peer:
        assert peer.hear() == "ready"
        peer.tell()
        while not backup_of(bucket_path(tmp_path, users[3]) / "memory.json").exists():
            pass
        peer.kill()
    for user in users:
        bytes_now = bucket_path(tmp_path, user).joinpath("memory.json").read_bytes()
        assert b'"1.0"' in bytes_now or b'"2.0"' in bytes_now
    store = MemoryRepository(tmp_path)
    assert len(store.snapshot(Scope.of(users[3])).facts) == 10
    with Peer(migrate_when_told, tmp_path, users, 2) as peer:
        (outcomes,) = run_at_once([peer])
    assert isinstance(outcomes, dict)
    assert {status for status, _ in outcomes.values()} == {Status.MIGRATED, Status.CURRENT}
    check_all_is_there(tmp_path, users, 10, [])
