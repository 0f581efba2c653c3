"""Small traps of typing: each is told in words that help, or is none any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


def test_a_backup_to_standard_output_is_refused_and_makes_no_file_called_dash(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.add("x")
    cli.monkeypatch.chdir(tmp_path)
    refused = cli("backup", "--out", "-")
    assert (refused.code, refused.out) == (2, "")
    assert "a backup is not written to standard output" in refused.err
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("command", ["backup", "export"])
def test_a_file_in_a_directory_that_is_missing_is_told_by_that_directory(
    cli: CommandLine, tmp_path: Path, command: str
) -> None:
    cli.add("x")
    refused = cli(command, "--out", str(tmp_path / "nodir" / "x.tgz"))
    assert refused.code == 2
    assert refused.err == (
        f"Error: there is no directory {tmp_path / 'nodir'}\nHint: make it first, or name another file\n"
    )


def test_one_of_something_is_not_told_as_many(cli: CommandLine, tmp_path: Path) -> None:
    cli.add("x")
    archive = str(tmp_path / "x.tar.gz")
    cli.ok("backup", "--out", archive)
    assert cli.ok("backup", "verify", archive).lines[-1].startswith("1 user, 1 fact; ")


def test_check_of_a_user_of_whom_nothing_is_stored_says_so_and_who_there_is(cli: CommandLine) -> None:
    cli.add("x", "--user-id", "alice")
    result = cli.ok("check", "--user-id", "alcie")
    assert f"Hint: nothing is stored of the user alcie in {cli.root}; users there are: alice" in result.err
    assert "Hint" not in cli.ok("check", "--user-id", "alice").err


def test_a_topic_that_is_given_twice_is_stored_once(cli: CommandLine) -> None:
    topics = ("--topic", "a", "--topic", "b", "--topic", "a")
    fact_id = cli.add("x", *topics)
    assert cli.ok("get", fact_id, "--json").json["topics"] == ["a", "b"]
    cli.ok("update", fact_id, "--topic", "c", "--topic", "c")
    assert cli.ok("get", fact_id, "--json").json["topics"] == ["c"]


@pytest.mark.parametrize("shell", ["tcsh"])
def test_a_shell_that_is_unknown_is_told_without_the_words_of_a_library(cli: CommandLine, shell: str) -> None:
    refused = cli("completion", shell)
    assert refused.code == 2
    assert "Value error" not in refused.err
    assert "tcsh" in refused.err
