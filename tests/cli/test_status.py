"""`status` shows as much as it can, and never takes what it cannot read for nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from deermem.storage.ownership import ownership_warning
from tests.cli.conftest import CommandLine


def test_status_of_a_store_that_is_not_there_makes_none(cli: CommandLine) -> None:
    document = cli.ok("status", "--json").json
    assert (document["storageRoot"], document["exists"], document["writable"]) == (
        str(cli.root), False, True,
    )  # fmt: skip
    assert document["users"] == []
    assert "deermem init" in cli.ok("status").err
    assert not cli.root.exists()


def test_status_counts_the_facts_of_every_agent(cli: CommandLine) -> None:
    cli.add("1")
    cli.add("2", "--agent", "coder")
    cli.add("3", "--agent", "coder")
    cli.add("4", "--user-id", "a@b.c")
    document = cli.ok("status", "--json").json
    (memory,) = document["memories"]
    assert memory.pop("lastUpdated").endswith("Z")
    assert memory == {
        "userId": "default",
        "directory": "users/default",
        "revision": 3,
        "facts": 3,
        "agents": [{"agentName": "__default__", "facts": 1}, {"agentName": "coder", "facts": 2}],
        "journal": "none",
    }
    assert [user.partition("-")[0] for user in document["users"]] == ["a", "default"]
    assert (document["warnings"], document["problems"]) == ([], [])


def test_status_of_all_users_has_a_line_for_each(cli: CommandLine) -> None:
    cli.add("1")
    cli.add("2", "--user-id", "a@b.c")
    cli.add("3", "--no-user")
    lines = cli.ok("status", "--all-users").lines
    cells = [line.split("\t") for line in lines if "\t" in line]
    assert [cell[0].partition("-")[0] for cell in cells] == ["(no user)", "a", "default"]
    assert {tuple(cell[1:]) for cell in cells} == {("1", "1", "1", "none", "0")}


def test_status_names_files_that_cannot_be_read(cli: CommandLine) -> None:
    cli.add("good")
    file = cli.file_of(cli.add("bad"))
    file.write_bytes(b"\xff")
    result = cli("status")
    assert result.code == 5
    assert str(file) in result.err
    document = cli("status", "--json").json
    assert document["memories"][0]["facts"] == 1
    assert [problem["type"] for problem in document["problems"]] == ["Corruption"]


def test_what_cannot_be_read_is_unknown_and_not_nothing(cli: CommandLine) -> None:
    cli.add("x")
    (cli.root / "users" / "default" / "memory.json").write_bytes(b"{")
    result = cli("status")
    assert result.code == 5
    assert "facts         unknown" in result.lines
    (memory,) = cli("status", "--json").json["memories"]
    assert not {"facts", "revision"} & set(memory)


def test_a_store_of_a_later_version_is_told_from_a_broken_one(cli: CommandLine) -> None:
    cli.add("x")
    (cli.root / "users" / "default" / "memory.json").write_text('{"version": "3.0"}', "utf-8")
    result = cli("status", "--json")
    assert (result.code, result.json["problems"][0]["type"]) == (5, "UnsupportedFormat")


def test_a_storage_root_below_a_file_is_a_problem(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = cli("status", "--storage-path", str(tmp_path / "file" / "store"), "--json")
    assert result.code == 9
    assert result.json["problems"][0]["message"] == f"{tmp_path / 'file'} is not a directory"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_store_of_another_uid_is_warned_of_with_a_way_out(cli: CommandLine) -> None:
    cli.add("x")
    os.chown(cli.root, 12345, -1)
    warnings = cli.ok("status", "--json").json["warnings"]
    assert [f"uid 12345, this process is uid {os.geteuid()}" in warning for warning in warnings] == [True]


def test_the_warning_of_another_uid_names_uid_path_and_command() -> None:
    assert ownership_warning("/data", 1000, 1000, writable=False) == ""
    assert ownership_warning("/data", 1000, 0, writable=False) == (
        "/data belongs to uid 1000, this process is uid 0 and cannot write there: "
        "run as uid 1000, or `chown -R 0 /data`"
    )


def test_a_directory_of_root_is_no_reason_to_run_as_root() -> None:
    assert ownership_warning("/my data", 0, 1000, writable=False) == (
        "/my data belongs to uid 0, this process is uid 1000 and cannot write there: "
        "as root, `chown -R 1000 '/my data'`"
    )


def test_all_users_and_one_user_exclude_each_other(cli: CommandLine) -> None:
    assert cli("status", "--all-users", "--user-id", "x").code == 2
    assert cli("status", "--all-users", "--no-user").code == 2


def test_an_interrupted_transaction_is_completed_and_told_of_once(cli: CommandLine) -> None:
    cli.add("first")
    script = textwrap.dedent(
        """
        import os
        from deermem.cli.run import run

        def stopping(real):
            def move(source, target, **where):
                real(source, target, **where)
                if str(target).endswith(".memory.journal.json"):
                    os._exit(9)
            return move

        os.rename, os.replace = stopping(os.rename), stopping(os.replace)
        run(["add", "second"])
        """
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 9
    found = cli.ok("status", "--json").json["memories"][0]
    assert (found["journal"], found["facts"], found["revision"]) == ("completed", 2, 2)
    assert cli.ok("status", "--json").json["memories"][0]["journal"] == "none"


def test_status_tells_what_the_probe_found_and_leaves_nothing_behind(cli: CommandLine) -> None:
    assert "not tried: there is no such directory yet" in cli.ok("status").out
    cli.add("x")
    before = cli.tree()
    found = cli.ok("status", "--json").json["probe"]
    assert {name: found[name] for name in ("locks", "replaces", "syncsFiles")} == dict.fromkeys(
        ("locks", "replaces", "syncsFiles"), True
    )
    assert "locks work, renames work, syncs work" in cli.ok("status").out
    assert cli.tree() == before
    assert sorted(path.name for path in cli.root.iterdir()) == ["users"]


def test_status_warns_of_locks_that_do_not_exclude(cli: CommandLine) -> None:
    cli.add("x")
    cli.monkeypatch.setattr("deermem.storage.filesystem.probe.try_lock", lambda _: True)
    result = cli.ok("status")
    assert "locks do NOT work" in result.out
    assert "Warning: " in result.err
    assert "two writers can overwrite each other" in result.err
