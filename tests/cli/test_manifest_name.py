"""A store whose summary file has another name, which the environment tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from deermem import FactDraft, MemoryRepository, Scope
from tests.cli.conftest import CommandLine

NAME = "summary.json"


@pytest.fixture
def other(cli: CommandLine) -> CommandLine:
    """The command line on such a store, not told of the name."""
    with MemoryRepository(cli.root, manifest_filename=NAME) as repository:
        repository.create_fact(Scope.of("default"), FactDraft("one", id="fact_one"))
    return cli


@pytest.fixture
def told(other: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line that is told of the name."""
    monkeypatch.setenv("DEERMEM_MANIFEST_FILENAME", NAME)
    return other


def test_every_command_takes_the_name_from_the_environment(told: CommandLine) -> None:
    assert told.ok("list", "--quiet").out == "fact_one\n"
    told.ok("status", "--all-users")
    told.ok("check", "--all-users")
    told.ok("migrate", "--all-users")
    assert f"manifest      users/default/{NAME}" in told.ok("explain").lines
    told.add("two", "--user-id", "bob")
    assert {name for name in told.tree() if name.endswith(".json")} == {
        f"users/default/{NAME}",
        f"users/bob/{NAME}",
    }


def test_a_backup_of_such_a_store_comes_back_whole(told: CommandLine, tmp_path: Path) -> None:
    archive = str(tmp_path / "backup.tar.gz")
    assert told.ok("backup", "--out", archive, "--json").json["users"][0]["revision"] == 1
    elsewhere = CommandLine(tmp_path / "elsewhere", told.monkeypatch)
    told.ok("restore", archive, "--storage-path", str(elsewhere.root))
    assert elsewhere.tree() == told.tree()


def test_a_name_that_is_no_plain_json_name_is_wrong_usage(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEERMEM_MANIFEST_FILENAME", "../memory.json")
    refused = cli("list")
    assert refused.code == 2
    assert "DEERMEM_MANIFEST_FILENAME must be a plain file name" in refused.err


def test_a_repair_that_is_not_told_of_the_name_begins_no_second_memory(other: CommandLine) -> None:
    before = other.tree()
    assert f"{NAME} looks like it: set manifest_filename" in other("check").out
    assert other("check", "--repair", "--yes").code == 1
    assert other.tree() == before
