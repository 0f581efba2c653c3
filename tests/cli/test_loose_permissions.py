"""A store that another program made is open to others in every file: that is one warning, and no flood."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


@pytest.fixture
def loose(cli: CommandLine) -> CommandLine:
    """A store of two users, all of it readable for everybody."""
    cli.add("one", "--user-id", "alice")
    cli.add("two", "--user-id", "bob")
    loosen(cli.root)
    return cli


def loosen(root: Path) -> list[str]:
    paths = sorted(path for path in root.rglob("*") if path.name not in (".memory.lock", ".recovery"))
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return [path.relative_to(root).as_posix() for path in paths]


def test_in_a_pipe_there_is_one_line_with_the_number_and_the_command_that_mends_it(
    loose: CommandLine,
) -> None:
    result = loose("check", "--all-users")
    (line,) = result.lines
    severity, kind, path, message, repair = line.split("\t")
    assert (severity, kind, path) == ("warning", "permissions", "users")
    count = len(loosen(loose.root))
    assert message.startswith(f"{count} files and directories here are open to others than their owner")
    assert repair == "take the permissions of others away"
    assert result.code == 1
    assert f"Checked 2 users, 2 facts: {count} warnings\n" in result.err
    assert "Hint: `deermem check --all-users --repair --only permissions` takes" in result.err


def test_of_one_user_it_names_the_directory_that_all_of_them_lie_in(loose: CommandLine) -> None:
    result = loose("check", "--user-id", "alice")
    (line,) = result.lines
    assert line.split("\t")[2] == "users"  # which is open itself
    (loose.root / "users").chmod(0o700)
    (loose.root / "users" / "alice").chmod(0o700)
    (line,) = loose("check", "--user-id", "alice").lines
    cells = line.split("\t")
    assert cells[2] == "users/alice"
    assert cells[3].startswith("6 files and directories here are open to others")
    assert "`deermem check --repair --only permissions --user-id alice` takes" in result.err


def test_each_path_is_there_for_who_asks(loose: CommandLine) -> None:
    paths = loosen(loose.root)
    assert sorted(loose("check", "--all-users", "--quiet").lines) == paths
    document = loose("check", "--all-users", "--json").json
    assert sorted(each["path"] for each in document["findings"]) == paths
    assert {each["kind"] for each in document["findings"]} == {"permissions"}


def test_a_single_one_is_named_as_ever(cli: CommandLine) -> None:
    path = cli.file_of(cli.add("one"))
    path.chmod(0o644)
    result = cli("check")
    (line,) = result.lines
    assert line.split("\t")[2] == path.relative_to(cli.root).as_posix()
    assert "mode bits 044" in line
    assert "Hint: `deermem check --repair --only permissions` takes" in result.err


def test_other_findings_keep_their_lines(loose: CommandLine) -> None:
    path = next((loose.root / "users" / "bob").rglob("*.md"))
    path.write_bytes(b"no fact")
    kinds = [line.split("\t")[1] for line in loose("check", "--all-users").lines]
    assert sorted(kinds) == ["fact-corrupt", "permissions"]


def test_a_repair_names_them_in_one_line_and_mends_all(loose: CommandLine) -> None:
    result = loose.ok("check", "--all-users", "--repair", "--only", "permissions", "--yes")
    (told,) = [line for line in result.err.splitlines() if "permissions" in line]
    assert told.startswith("users: permissions: take the permissions of others away: 15 files and ")
    modes = {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in loose.root.rglob("*")}
    assert modes == {0}
    assert loose.ok("check", "--all-users").lines == []


def test_the_memory_without_a_user_lies_in_the_root_itself(cli: CommandLine) -> None:
    cli.add("one", "--no-user")
    loosen(cli.root)
    (line,) = cli("check", "--no-user").lines
    assert line.split("\t")[2] == "."
