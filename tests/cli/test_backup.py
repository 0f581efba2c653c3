"""`backup`, `backup verify` and `restore` as they are typed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.support.systems import needs_modes


@pytest.fixture
def archive(cli: CommandLine, tmp_path: Path) -> Path:
    """A backup of three memories."""
    cli.add("one", "--id", "one")
    cli.add("two", "--id", "two", "--user-id", "bob@example.com")
    cli.add("three", "--id", "three", "--no-user")
    path = tmp_path / "backup.tar.gz"
    cli.ok("backup", "--all-users", "--out", str(path))
    return path


def elsewhere(cli: CommandLine) -> CommandLine:
    return CommandLine(cli.root.parent / "elsewhere", cli.monkeypatch)


def test_a_store_comes_back_elsewhere(cli: CommandLine, archive: Path) -> None:
    other = elsewhere(cli)
    shown = cli.ok("restore", str(archive), "--storage-path", str(other.root)).lines
    assert [line.partition(":")[0] for line in shown] == ["(no user)", *sorted(_users(cli))]
    assert other.tree() == cli.tree()


def _users(cli: CommandLine) -> list[str]:
    return [path.name for path in (cli.root / "users").iterdir()]


@needs_modes
def test_an_archive_is_read_by_its_owner_alone(archive: Path) -> None:
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600


def test_a_file_that_is_there_is_replaced_only_when_that_is_said(cli: CommandLine, archive: Path) -> None:
    before = archive.read_bytes()
    refused = cli("backup", "--out", str(archive))
    assert refused.code == 2
    assert "add --force to replace it" in refused.err
    assert archive.read_bytes() == before
    assert cli.ok("backup", "--out", str(archive), "--force", "-q").out == f"{archive}\n"
    assert archive.read_bytes() != before


def test_what_fails_leaves_no_file_and_the_old_one(
    cli: CommandLine, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = archive.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("deermem.storage.filesystem.private_file.sync_data", fail)
    for options in (["--out", str(archive), "--force"], ["--out", str(archive.with_name("new"))]):
        assert cli("backup", *options).code == 1
    assert archive.read_bytes() == before
    assert {path.name for path in archive.parent.iterdir()} == {"store", archive.name}


def test_one_user_is_saved_and_the_others_are_told_of(cli: CommandLine, archive: Path) -> None:
    only = archive.with_name("only.tar.gz")
    document = cli.ok("backup", "--out", str(only), "--user-id", "bob@example.com", "--json").json
    assert [user["revision"] for user in document["users"]] == [1]
    assert document["bytes"] == os.path.getsize(only)
    refused = cli("backup", "--out", str(archive.with_name("x")), "--user-id", "nobody")
    assert refused.code == 2
    assert "users there are: (no user), " in refused.err
    assert not archive.with_name("x").exists()


def test_a_whole_archive_is_verified(cli: CommandLine, archive: Path) -> None:
    document = cli.ok("backup", "verify", str(archive), "--json").json
    assert (document["facts"], len(document["users"]), document["problems"]) == (3, 3, [])
    assert cli.ok("backup", "verify", str(archive)).lines[-1].startswith("3 users, 3 facts; deermem ")


@pytest.mark.parametrize("command", [["backup", "verify"], ["restore"]], ids=str)
def test_a_damaged_archive_is_refused(cli: CommandLine, archive: Path, command: list[str]) -> None:
    archive.write_bytes(archive.read_bytes()[:-100])
    before = cli.tree()
    refused = cli(*command, str(archive), "--json")
    assert refused.code == 5
    assert refused.json["error"]["type"] == "ArchiveError"
    assert cli.tree() == before


def test_a_fact_that_cannot_be_read_is_told_of(cli: CommandLine, archive: Path) -> None:
    cli.file_of("one").write_bytes(b"no fact")
    cli.ok("backup", "--out", str(archive), "--force")
    result = cli("backup", "verify", str(archive))
    assert result.code == 5
    assert "users/default/agents/__default__/facts/" in result.err
    other = elsewhere(cli)
    restored = cli.ok("restore", str(archive), "--storage-path", str(other.root))
    assert "cannot be read" in restored.err


def test_a_user_with_another_memory_is_a_conflict(cli: CommandLine, archive: Path) -> None:
    cli.add("late")
    before = cli.tree()
    refused = cli("restore", str(archive))
    assert refused.code == 4
    assert "another memory than the backup: default\n" in refused.err
    assert "--on-conflict" in refused.err
    assert cli.tree() == before
    skipped = cli.ok("restore", str(archive), "--on-conflict", "skip", "--json").json
    assert {user["bucket"]: user["outcome"] for user in skipped["users"]}["default"] == "skipped"
    assert cli.tree() == before
    assert cli.ok("restore", str(archive), "--on-conflict", "overwrite", "-q").out == "default\n"
    assert cli.ok("list", "-q").lines == ["one"]


def test_a_dry_run_writes_nothing(cli: CommandLine, archive: Path) -> None:
    other = elsewhere(cli)
    shown = cli.ok("restore", str(archive), "--dry-run", "--storage-path", str(other.root))
    assert "default: would be restored (2 files)" in shown.lines
    assert not other.root.exists()


def test_one_user_is_restored(cli: CommandLine, archive: Path) -> None:
    other = elsewhere(cli)
    root = ["--storage-path", str(other.root)]
    cli.ok("restore", str(archive), "--user-id", "bob@example.com", *root)
    assert cli.ok("list", "--user-id", "bob@example.com", "-q", *root).lines == ["two"]
    assert len(_users(other)) == 1
    assert cli("restore", str(archive), "--user-id", "nobody", *root).code == 2


def test_the_user_of_the_environment_does_not_narrow_a_restore(cli: CommandLine, archive: Path) -> None:
    other = elsewhere(cli)
    cli.monkeypatch.setenv("DEERMEM_USER_ID", "nobody")
    assert len(cli.ok("restore", str(archive), "--storage-path", str(other.root)).lines) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["backup"],
        ["backup", "--out", "x", "--all-users", "--no-user"],
        ["backup", "--out", "x", "--all-users"],
        ["restore"],
        ["restore", "x", "--on-conflict", "merge"],
        ["backup", "verify"],
    ],
    ids=str,
)
def test_wrong_usage_is_told(cli: CommandLine, arguments: list[str]) -> None:
    assert cli(*arguments).code == 2
    assert not cli.root.exists()


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_where_nothing_can_be_saved_there_is_no_file_and_the_old_one_stays(
    cli: CommandLine, archive: Path, force: list[str]
) -> None:
    (cli.root / "users" / "eve").symlink_to(cli.root)
    before = archive.read_bytes()
    out = archive if force else archive.with_name("new")
    refused = cli("backup", "--user-id", "eve", "--out", str(out), *force)
    assert refused.code == 5
    assert "users/eve" in refused.err
    assert archive.read_bytes() == before
    assert {path.name for path in archive.parent.iterdir()} == {"store", archive.name}


def test_facts_without_a_summary_file_are_told_of(cli: CommandLine, tmp_path: Path) -> None:
    cli.add("one")
    (cli.root / "users" / "default" / "memory.json").unlink()
    archive, other = str(tmp_path / "backup.tar.gz"), elsewhere(cli)
    told = "users/default/memory.json: is missing although there are facts"
    for arguments in (["backup", "--out", archive], ["backup", "verify", archive]):
        result = cli(*arguments)
        assert (result.code, told in result.err) == (5, True)
    restored = cli("restore", archive, "--storage-path", str(other.root))
    assert (restored.code, told in restored.err) == (0, True)


@pytest.mark.parametrize("command", [["backup", "verify"], ["restore"], ["import", "--yes"]])
def test_a_file_that_is_not_there_is_named_where_it_was_looked_for(
    cli: CommandLine, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli(*command, "absent.tar.gz")
    assert result.code == 1
    assert result.err == f"Error: No such file or directory: {tmp_path / 'absent.tar.gz'}\n"


def test_a_full_disk_is_told_of_by_the_name_of_the_file(
    cli: CommandLine, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("deermem.storage.filesystem.private_file.sync_data", fail)
    for command in (["backup", "--out"], ["export", "--out"]):
        out = archive.with_name("new")
        told = f"Error: No space left on device: {out}\nHint: make room, and run it again\n"
        assert cli(*command, str(out)).err == told


def test_a_user_who_is_not_in_the_archive_is_told_who_is(cli: CommandLine, archive: Path) -> None:
    refused = cli("restore", str(archive), "--user-id", "nobody")
    assert refused.code == 2
    assert "the user id names nobody in the archive: nobody (it has (no user), bob-" in refused.err


def test_the_variable_of_the_user_does_not_narrow_a_restore(
    cli: CommandLine, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEERMEM_USER_ID", "default")
    other = elsewhere(cli)
    cli.ok("restore", str(archive), "--storage-path", str(other.root))
    assert other.tree() == cli.tree()
