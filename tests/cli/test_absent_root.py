"""A storage root that is not there is a mistyped path, and no healthy store: operators are told so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

OPERATIONS = [
    ["check"],
    ["check", "--all-users"],
    ["check", "--all-users", "--repair", "--yes"],
    ["check", "--undo"],
    ["backup", "--all-users", "--out", "{out}"],
    ["backup", "--out", "{out}"],
    ["export"],
    ["export", "--out", "{out}"],
    ["migrate", "--all-users"],
    ["migrate", "--all-users", "--dry-run"],
    ["migrate", "--user-id", "alice"],
    ["migrate", "--user-id", "alice", "--rollback"],
    ["locks"],
    ["locks", "--all-users"],
    ["erase-user", "--user-id", "alice", "--yes"],
    ["erase-user", "--user-id", "alice", "--dry-run"],
]
# What looks at a store that exists and is empty is done; there is nothing to save, and nothing to put back.
REFUSED_WHEN_EMPTY = {"backup", "--undo", "--rollback"}


def given(arguments: list[str], tmp_path: Path) -> list[str]:
    return [argument.format(out=tmp_path / "out") for argument in arguments]


@pytest.mark.parametrize("arguments", OPERATIONS, ids=" ".join)
def test_an_operation_on_a_root_that_is_not_there_is_refused(
    cli: CommandLine, arguments: list[str], tmp_path: Path
) -> None:
    refused = cli(*given(arguments, tmp_path))
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        f"Error: nothing is stored at {cli.root}\n"
        "Hint: there is no such directory: --storage-path or DEERMEM_DATA_DIR names the store\n"
    )
    assert list(tmp_path.iterdir()) == []
    told = cli(*given(arguments, tmp_path), "--json")
    assert (told.code, told.json["error"]["type"]) == (2, "UsageError")


@pytest.mark.parametrize(
    "arguments",
    [each for each in OPERATIONS if not REFUSED_WHEN_EMPTY & set(each)],
    ids=" ".join,
)
def test_an_empty_store_is_fine(cli: CommandLine, arguments: list[str], tmp_path: Path) -> None:
    cli.root.mkdir()
    cli.ok(*given(arguments, tmp_path))


def test_status_shows_what_there_is_and_says_so_too_when_asked_for_all(cli: CommandLine) -> None:
    assert "does not exist yet" in cli.ok("status").out
    shown = cli("status", "--all-users")
    assert shown.code == 2
    assert "does not exist yet" in shown.out
    assert f"Error: nothing is stored at {cli.root}\n" in shown.err
    document = cli("status", "--all-users", "--json")
    assert (document.code, document.json["exists"]) == (2, False)
    assert [problem["type"] for problem in document.json["problems"]] == ["UsageError"]
    assert not cli.root.exists()


@pytest.mark.parametrize("command", [["list"], ["search", "x"], ["clear", "--all", "--yes"], ["explain"]])
def test_what_a_program_does_first_on_a_new_machine_is_no_error(cli: CommandLine, command: list[str]) -> None:
    cli.ok(*command)
    assert not cli.root.exists()
