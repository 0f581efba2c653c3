"""`summaries show` and `summaries set`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import CommandLine


def test_a_summary_is_set_and_the_others_stay(cli: CommandLine) -> None:
    cli.ok("summaries", "set", "workContext", "Writes parsers.")
    cli.ok("summaries", "set", "history.recentMonths", "-", stdin="Wrote two.\nBoth work.\n")
    shown = cli.ok("summaries", "show", "--json").json
    assert shown["user"]["workContext"]["summary"] == "Writes parsers."
    assert shown["history"]["recentMonths"]["summary"] == "Wrote two.\nBoth work.\n"
    assert shown["revision"] == 2
    assert [len(shown["user"]), len(shown["history"])] == [3, 3]


def test_summaries_in_a_pipe_have_one_line_each(cli: CommandLine) -> None:
    cli.ok("summaries", "set", "topOfMind", "one\ntwo")
    assert cli.ok("summaries", "show").out == "user.topOfMind\tone\\ntwo\n"


def test_setting_prints_the_summaries_unless_it_is_quiet(cli: CommandLine) -> None:
    assert cli.ok("summaries", "set", "topOfMind", "x").out == "user.topOfMind\tx\n"
    assert cli.ok("summaries", "set", "topOfMind", "y", "--quiet").out == ""


def test_an_empty_text_removes_a_summary(cli: CommandLine) -> None:
    cli.ok("summaries", "set", "topOfMind", "x")
    cli.ok("summaries", "set", "topOfMind", "")
    result = cli.ok("summaries", "show")
    assert (result.out, result.err) == ("", "No summaries.\n")


def test_a_summary_is_not_set_at_another_revision(cli: CommandLine) -> None:
    cli.ok("summaries", "set", "topOfMind", "x", "--expected-revision", "0")
    before = cli.tree()
    refused = cli("summaries", "set", "topOfMind", "y", "--expected-revision", "7", "--json")
    assert (refused.code, refused.json["error"]["type"]) == (4, "ManifestConflict")
    assert cli.tree() == before


@pytest.mark.parametrize("section", ["mood", "history.topOfMind", "user", ""])
def test_an_unknown_summary_is_refused_with_the_names_of_the_known(cli: CommandLine, section: str) -> None:
    refused = cli("summaries", "set", section, "x")
    assert refused.code == 2
    assert "longTermBackground" in refused.err
    assert not cli.root.exists()
