"""`locks` says who holds or awaits a lock, and leaves everything as it is."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from deermem import Corruption, MemoryRepository
from deermem.maintenance.lock_survey import survey_locks
from deermem.model.identity import UserId
from tests.cli.conftest import CommandLine
from tests.support.processes import Peer
from tests.support.stores import tree
from tests.support.watched import WatchedFileSystem, call_of
from tests.support.work import stop_inside, write_once

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")


@linux
def test_the_holder_and_the_waiter_are_named(cli: CommandLine) -> None:
    cli.add("one", "--user-id", "alice")
    with (
        Peer(stop_inside, cli.root, "rename", "held.md") as holder,
        Peer(write_once, cli.root, "y", 60.0) as waiter,
    ):
        assert holder.hear() == "inside"
        assert waiter.hear() == "ready"
        waiter.tell()
        while not (found := cli.ok("locks", "--user-id", "alice", "--json").json["locks"][0])["waiters"]:
            os.sched_yield()
        line = cli.ok("locks", "--user-id", "alice").out
        brief = cli.ok("locks", "--all-users", "-q").lines
        holder.tell()
        assert waiter.hear() < 60
    assert found["state"] == "held"
    assert [process["pid"] for process in found["holders"]] == [holder.pid]
    assert [process["pid"] for process in found["waiters"]] == [waiter.pid]
    assert "python" in found["holders"][0]["command"].lower()
    assert 0 <= found["seconds"] < 60
    assert f"alice\theld\t{holder.pid} (" in line
    assert brief == ["alice"]


@linux
def test_a_lock_that_nobody_holds_is_free(cli: CommandLine) -> None:
    cli.add("one")
    found = cli.ok("locks", "--json").json["locks"]
    assert found == [
        {
            "userId": "default",
            "lockFile": "users/default/.memory.lock",
            "state": "free",
            "holders": [],
            "waiters": [],
        }
    ]
    assert "other hosts" in cli.ok("locks").err


def test_where_the_system_does_not_tell_the_state_is_unknown(cli: CommandLine) -> None:
    cli.add("one")
    cli.monkeypatch.setattr("deermem.maintenance.lock_survey.read_table", lambda: None)
    assert cli.ok("locks", "--json").json["locks"][0]["state"] == "unknown"


def test_no_lock_file_is_made_and_nothing_changed(cli: CommandLine) -> None:
    cli.root.mkdir()
    assert cli.ok("locks", "--json").json["locks"][0]["state"] == "absent"
    assert tree(cli.root) == {}
    cli.add("one")
    (cli.root / "users/default/.memory.lock").unlink()
    before = tree(cli.root)
    assert cli.ok("locks", "--json").json["locks"][0]["state"] == "absent"
    assert tree(cli.root) == before


def test_a_link_in_place_of_one_lock_is_reported_and_the_others_are_shown(cli: CommandLine) -> None:
    cli.add("one", "--user-id", "alice")
    cli.add("one", "--user-id", "bob")
    lock = cli.root / "users/alice/.memory.lock"
    lock.unlink()
    lock.symlink_to(cli.root / "users/bob/.memory.lock")
    result = cli("locks", "--all-users", "--json")
    assert result.code == 5
    assert [each["userId"] for each in result.json["locks"]] == ["bob"]
    assert "alice/.memory.lock" in result.json["problems"][0]["message"]


def test_what_the_system_refuses_to_show_of_one_user_is_a_problem_beside_the_others(
    cli: CommandLine,
) -> None:
    users = [UserId.parse("alice"), UserId.parse("bob")]
    for user in users:
        cli.add("one", "--user-id", str(user))
    disk = WatchedFileSystem(cli.root)
    disk.fail(call_of("child", "users/alice"), errno.EACCES)
    problems: list[Corruption | OSError] = []
    found = survey_locks(MemoryRepository(disk).engine, users, problems)
    assert [report.user for report in found] == users[1:]
    assert [type(problem) for problem in problems] == [PermissionError]
