"""A command line that cannot be understood is answered with what to type."""

from __future__ import annotations

import pytest

from tests.cli.conftest import CommandLine


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (
            ["--json", "list"],
            "no such option: --json",
            "options follow the command, as in `deermem list --json`",
        ),
        (["list", "--user", "alice"], "no such option: --user", "did you mean --user-id or --no-user or "),
        (["add", "-5 degrees"], "no such option: -5", "text that begins with a dash comes after `--`"),
        (["search", "--foo"], "no such option: --foo", "text that begins with a dash comes after `--`"),
        (["get", "--foo"], "no such option: --foo", "`deermem get --help`"),
        (["add", "two", "words"], "got unexpected extra argument", "put the text in quotes"),
        (
            ["summaries", "set", "topOfMind", "a", "b"],
            "got unexpected extra argument",
            "put the text in quotes",
        ),
        (["get", "a", "b"], "got unexpected extra argument", "`deermem get --help`"),
        (["update", "fact_1", "--category"], "option '--category' requires", "`deermem update --help`"),
        (["summaries", "set", "--user-id"], "option '--user-id' requires", "`deermem summaries set --help`"),
        (["frob"], "no such command 'frob'", "`deermem --help`"),
        (["list", "--limit", "0"], "--limit must be a whole number from 1 to 1,000", ""),
    ],
    ids=str,
)
def test_a_mistake_is_answered_with_what_to_type(
    cli: CommandLine, arguments: list[str], message: str, hint: str
) -> None:
    wrong = cli(*arguments)
    said = wrong.out + wrong.err
    assert wrong.code == 2
    assert message in said
    assert hint in said


def test_what_begins_as_it_was_typed_is_offered_first(cli: CommandLine) -> None:
    assert "did you mean --user-id " in cli("list", "--user", "alice").err


def test_another_option_is_not_offered_where_options_do_not_belong(cli: CommandLine) -> None:
    assert "--version" not in cli("--json", "list").out
