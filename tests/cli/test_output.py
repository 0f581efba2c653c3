"""What is written: plain in pipes, drawn on terminals, and nothing that a terminal obeys."""

from __future__ import annotations

import re

import pytest

from deermem.cli.output import json_text, one_line, visible
from tests.cli.conftest import CommandLine

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(
    "command",
    [
        "list", "list --all-agents", "get fact_1", "search tea", "summaries show", "demo",
        "status", "status --all-users",
    ],
)  # fmt: skip
def test_a_terminal_gets_colours_and_a_pipe_gets_none(cli: CommandLine, command: str) -> None:
    cli.add("Likes tea 😀.", "--id", "fact_1")
    cli.ok("summaries", "set", "topOfMind", "tea")
    assert not ANSI.search(cli.ok(*command.split()).out)
    drawn = cli(*command.split(), terminal=True)
    assert drawn.code == 0
    assert ANSI.search(drawn.out)


def test_who_wants_no_colour_gets_the_table_without_it(cli: CommandLine) -> None:
    cli.add("Likes tea.", "--id", "fact_1")
    coloured = cli("list", terminal=True).out
    cli.monkeypatch.setenv("NO_COLOR", "1")
    drawn = cli("list", terminal=True).out
    assert "Category" in drawn
    assert not ANSI.search(drawn)
    assert drawn == ANSI.sub("", coloured)


@pytest.mark.parametrize("command", ["list", "get fact_1", "status --all-users", "summaries show"])
def test_a_dumb_terminal_gets_the_lines_of_a_pipe(cli: CommandLine, command: str) -> None:
    cli.add("Likes tea.", "--id", "fact_1")
    cli.ok("summaries", "set", "topOfMind", "tea")
    cli.monkeypatch.setenv("TERM", "dumb")
    assert cli(*command.split(), terminal=True).out == cli.ok(*command.split()).out


@pytest.mark.parametrize("width", [24, 40, 60, 79, *range(94, 104)])
def test_a_narrow_terminal_breaks_no_name(cli: CommandLine, width: int) -> None:
    cli.monkeypatch.setenv("COLUMNS", str(width))
    cli.monkeypatch.setenv("NO_COLOR", "1")
    names = ["agent-of-a-long-name", "fact_0123456789abcdef", "category of mine"]
    cli.add("word " * 30, "--agent", names[0], "--id", names[1], "--category", names[2])
    lines = cli("list", "--all-agents", terminal=True).lines
    assert all(len(line) <= width for line in lines)
    assert all(any(name in line for line in lines) for name in names)
    assert " ".join(" ".join(lines).split()).count("word") == 30


def test_with_room_for_it_a_list_is_one_table(cli: CommandLine) -> None:
    cli.monkeypatch.setenv("COLUMNS", "80")
    cli.monkeypatch.setenv("NO_COLOR", "1")
    fact_id = cli.add("Likes tea.")
    assert any(fact_id in line and "Likes tea." in line for line in cli("list", terminal=True).lines)


@pytest.mark.parametrize("width", range(70, 86))
def test_no_width_breaks_a_user(cli: CommandLine, width: int) -> None:
    cli.monkeypatch.setenv("COLUMNS", str(width))
    cli.add("x", "--user-id", "a-user-of-a-long-name")
    assert (
        "a-user-of-a-long-name"
        in ANSI.sub("", cli("status", "--all-users", terminal=True).out)
        .partition("users")[2]
        .partition("\n")[2]
    )


def test_a_narrow_terminal_breaks_no_user(cli: CommandLine) -> None:
    cli.monkeypatch.setenv("COLUMNS", "40")
    cli.monkeypatch.setenv("NO_COLOR", "1")
    cli.add("x", "--user-id", "a-user-of-a-rather-long-name")
    lines = [line.strip() for line in cli("status", "--all-users", terminal=True).lines]
    assert lines[lines.index("a-user-of-a-rather-long-name") + 1] == "revision 1  agents 1  facts 1"


def test_a_title_is_not_taken_for_markup(cli: CommandLine) -> None:
    cli.monkeypatch.setenv("COLUMNS", "200")
    fact_id = cli.add("[red]not red[/red] :smile: [link=x]y[/link]")
    for command in (["list"], ["get", fact_id], ["search", "red"]):
        assert "[red]not red[/red] :smile: [link=x]y[/link]" in ANSI.sub("", cli(*command, terminal=True).out)


@pytest.mark.parametrize("quiet", [[], ["--quiet"], ["--json"]], ids=str)
def test_content_cannot_command_a_terminal(cli: CommandLine, quiet: list[str]) -> None:
    fact_id = cli.add("x\x1b]0;owned\x07\x9b31m", "--category", "a\x1b[2J")
    cli.monkeypatch.setenv("NO_COLOR", "1")
    for command in (["get", fact_id], ["list"], ["search", "owned"]):
        out = cli(*command, *quiet, terminal=True).out
        assert out
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", out)


def test_a_pipe_gets_the_content_as_it_is(cli: CommandLine) -> None:
    fact_id = cli.add("x\x1b[31m\x07")
    assert cli.ok("get", fact_id, "-q").out == "x\x1b[31m\x07\n"


def test_control_characters_are_spelled_out() -> None:
    assert visible("a\x1b\r\x9b\tb\nc") == "a\\x1b\\r\\x9b\tb\nc"
    assert one_line("a\x1b\tb\nc\u2028d") == "a\\x1b\\tb\\nc\\u2028d"


def test_json_keeps_every_language_and_spells_out_what_terminals_obey() -> None:
    assert json_text({"a": "é喜😀\x9b\x7f"}) == '{\n  "a": "é喜😀\\u009b\\u007f"\n}\n'


def test_errors_cannot_command_a_terminal(cli: CommandLine) -> None:
    for arguments in (
        ["\x1b[2J"],
        ["list", "--x\x1b[2J"],
        ["get", "\x1b[2J"],
        ["list", "--limit", "\x1b[2J"],
    ):
        assert "\x1b" not in cli(*arguments, terminal=True).err


@pytest.mark.parametrize(
    "command",
    [
        "init", "status", "status --all-users", "path", "path fact_1", "add new", "get fact_1", "list",
        "list --all-agents", "search x", "update fact_1 --title t", "adopt fact_1", "delete fact_1",
        "summaries show", "summaries set topOfMind x", "clear --yes", "clear --all --yes", "demo",
    ],
)  # fmt: skip
def test_every_command_prints_one_json_document_and_nothing_else(cli: CommandLine, command: str) -> None:
    cli.add("x 😀", "--id", "fact_1")
    result = cli.ok(*command.split(), "--json")
    assert isinstance(result.json, dict)
    assert "error" not in result.json
    assert result.err == ""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("update fact_1 --title t", "fact_1\n"),
        ("adopt fact_1", "fact_1\n"),
        ("get fact_1", "x\n"),
        ("list", "fact_1\n"),
        ("search x", "fact_1\n"),
        ("delete fact_1", ""),
        ("clear --yes", ""),
        ("status", ""),
        ("list --agent other", ""),
        ("search y", ""),
        ("summaries set topOfMind x", ""),
    ],
)
def test_quiet_prints_what_a_script_reads_and_no_word_more(
    cli: CommandLine, command: str, expected: str
) -> None:
    cli.add("x", "--id", "fact_1")
    result = cli.ok(*command.split(), "--quiet")
    assert (result.out, result.err) == (expected, "")


BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize(
    "command",
    [
        "list",
        "get fact_1",
        "get fact_1 --quiet",
        "search a",
        "summaries show",
        "export",
        "path fact_1 --quiet",
    ],
)
def test_what_turns_the_direction_of_text_is_spelled_out_on_a_terminal_alone(
    cli: CommandLine, command: str
) -> None:
    cli.add(
        f"a {BIDIRECTIONAL} b", "--id", "fact_1", "--topic", f"t{BIDIRECTIONAL}", "--source", BIDIRECTIONAL
    )
    cli.ok("summaries", "set", "topOfMind", f"a {BIDIRECTIONAL} b")
    cli.monkeypatch.setenv("COLUMNS", "400")
    on_terminal = cli(*command.split(), terminal=True).out
    assert not set(on_terminal) & set(BIDIRECTIONAL)
    if not command.startswith("path"):
        assert "\\u202e" in on_terminal
        assert BIDIRECTIONAL in cli.ok(*command.split()).out
        assert BIDIRECTIONAL in cli.ok(*command.split(), "--json").out


def test_a_question_and_an_error_on_a_terminal_spell_it_out_too(cli: CommandLine) -> None:
    user = ("--user-id", "a\u202eb")
    cli.add("x", *user)
    for command in (["clear"], ["erase-user"], ["get", "fact_nope"], ["import", "\u202e.json"]):
        result = cli(*command, *user, stdin="n\n", terminal=True)
        assert result.code in (1, 2, 3)
        assert "\u202e" not in result.err
    assert "a\u202eb" in cli("undo", *user).err


def test_a_table_is_as_wide_as_what_is_spelled_out(cli: CommandLine) -> None:
    cli.monkeypatch.setenv("COLUMNS", "80")
    cli.monkeypatch.setenv("NO_COLOR", "1")
    cli.add("word \u202e" * 12, "--id", "fact_1")
    assert all(len(line) <= 80 for line in cli("list", terminal=True).lines)
