"""`check` on the command line: what it prints, what it returns, and what it does when asked to mend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deermem.maintenance.findings import KINDS
from tests.cli.conftest import CommandLine
from tests.cli.test_reference import section_of


@pytest.fixture
def broken(cli: CommandLine) -> Path:
    """A store of two facts, one of which cannot be read: its file."""
    cli.add("good")
    path = cli.file_of(cli.add("bad", "--id", "bad"))
    path.write_bytes(b"no fact")
    path.chmod(0o600)
    return path


def test_a_sound_store_is_told_of_in_one_line_and_returns_0(cli: CommandLine) -> None:
    cli.add("good")
    result = cli.ok("check")
    assert (result.out, result.err) == ("", "Checked 1 user, 1 fact: nothing is wrong\n")
    document = cli.ok("check", "--json").json
    assert (document["findings"], document["worst"]) == ([], None)
    assert document["users"] == [
        {"userId": "default", "directory": "users/default", "version": "2.0", "revision": 1, "facts": 1}
    ]


@pytest.mark.parametrize("name", ["check", "doctor", "fsck"])
def test_a_finding_is_one_line_of_cells_and_the_code_is_1(cli: CommandLine, broken: Path, name: str) -> None:
    result = cli(name)
    assert result.code == 1
    (cells,) = [line.split("\t") for line in result.lines]
    assert cells[:3] == ["error", "fact-corrupt", broken.relative_to(cli.root).as_posix()]
    assert "front matter" in cells[3]
    assert cells[4] == "set it aside in .quarantine"
    assert result.err == "Checked 1 user, 1 fact: 1 error\n"
    assert cli(name, "--quiet").lines == [cells[2]]


def test_a_note_returns_0(cli: CommandLine) -> None:
    path = cli.file_of(cli.add("good"))
    path.with_name("README.md").write_text("x", "utf-8")
    result = cli.ok("check", "--json")
    assert [each["kind"] for each in result.json["findings"]] == ["stray-entry"]


def test_a_terminal_gets_the_first_findings_of_a_kind_and_json_all(cli: CommandLine) -> None:
    path = cli.file_of(cli.add("good"))
    for number in range(15):
        path.with_name(f"{number}.tmp").touch(0o600)
    shown = cli("check", terminal=True)
    assert shown.out.count("warning temporary-file") == 10
    assert "5 more of temporary-file" in shown.out
    assert len(cli("check", "--json").json["findings"]) == 15


@pytest.mark.usefixtures("broken")
def test_a_repair_names_what_it_would_do_and_does_nothing_without_a_yes(cli: CommandLine) -> None:
    before = cli.tree()
    refused = cli("check", "--repair")
    assert refused.code == 2
    assert "fact-corrupt: set it aside in .quarantine" in refused.err
    assert cli("check", "--repair", terminal=True, stdin="n\n").code == 1
    assert cli.tree() == before


def test_a_repair_is_undone_by_what_it_prints(cli: CommandLine, broken: Path) -> None:
    repaired = cli.ok("check", "--repair", "--yes", "--json").json
    assert [each["kind"] for each in repaired["repaired"]] == ["fact-corrupt"]
    assert [each["kind"] for each in repaired["findings"]] == ["quarantine"]
    assert not broken.exists()
    assert len(cli.ok("list", "--quiet").lines) == 1
    (place,) = repaired["setAside"]
    undone = cli.ok("check", "--undo", Path(place).name)
    assert undone.lines == [f"Put back {broken.relative_to(cli.root).as_posix()}"]
    assert broken.read_bytes() == b"no fact"
    assert cli("check").code == 1


@pytest.mark.usefixtures("broken")
def test_a_person_may_agree_to_a_repair(cli: CommandLine) -> None:
    assert cli("check", "--repair", terminal=True, stdin="y\n").code == 0


def test_an_undo_over_a_new_fact_is_refused_with_4(cli: CommandLine, broken: Path) -> None:
    cli.ok("check", "--repair", "--yes")
    cli.add("another", "--id", "bad")
    before = cli.tree()
    refused = cli("check", "--undo")
    assert refused.code == 4
    assert str(broken) in refused.err
    assert cli.tree() == before


def test_a_repair_with_nothing_to_do_asks_nothing(cli: CommandLine) -> None:
    cli.add("good")
    before = cli.tree()
    assert cli.ok("check", "--repair", "--json").json["repaired"] == []
    assert cli.tree() == before


def test_all_users_are_checked_and_repaired(cli: CommandLine) -> None:
    for user in ("a@b.c", "other"):
        cli.file_of(cli.add("x", "--user-id", user), "--user-id", user).write_bytes(b"x")
    assert cli("check", "--all-users", "--quiet").out.count("\n") == 2
    repaired = cli.ok("check", "--all-users", "--repair", "--yes", "--json").json
    assert len(repaired["setAside"]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--all-users", "--user-id", "x"],
        ["--undo", "--repair"],
        ["--undo", "--all-users"],
        ["2026-01-01T00-00-00Z"],
        ["--undo"],
        ["--undo", "../x"],
    ],
)
def test_what_cannot_be_meant_is_2_and_changes_nothing(cli: CommandLine, arguments: list[str]) -> None:
    cli.add("good")
    before = cli.tree()
    assert cli("check", *arguments).code == 2
    assert cli.tree() == before


def test_the_reference_names_every_kind_of_finding_with_its_severity() -> None:
    rows = re.findall(r"^\| (`[a-z].*?) \| (note|warning|error) \|", section_of("check"), re.MULTILINE)
    told = {kind: severity for kinds, severity in rows for kind in re.findall(r"`([a-z-]+)`", kinds)}
    assert told == {kind: severity.name.lower() for kind, severity in KINDS.items()}


def test_a_user_who_cannot_be_mended_keeps_nobody_else_from_it(cli: CommandLine) -> None:
    files = []
    for user in ("first", "second"):
        files.append(cli.file_of(cli.add("x", "--user-id", user), "--user-id", user))
        files[-1].write_bytes(b"x")
    (cli.root / "users" / "first" / ".quarantine").symlink_to(cli.root)
    result = cli("check", "--all-users", "--repair", "--yes", "--json")
    assert result.code == 5
    assert [each["type"] for each in result.json["problems"]] == ["Corruption"]
    assert [file.exists() for file in files] == [True, False]


def test_a_path_is_one_line_whatever_is_in_it(cli: CommandLine) -> None:
    path = cli.file_of(cli.add("good"))
    path.with_name("a\nb (conflicted copy).md").write_bytes(b"x")
    path.with_name("a\nb (conflicted copy).md").chmod(0o600)
    assert len(cli("check").lines) == 1
    (named,) = cli("check", "--quiet").lines
    assert named.endswith("/a\\nb (conflicted copy).md")
    repaired = cli.ok("check", "--repair", "--yes")
    assert sum("conflicted copy" in line for line in repaired.err.splitlines()) == 1
    assert len(cli.ok("check", "--undo").lines) == 1
