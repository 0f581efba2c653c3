"""`undo` says what it takes back, asks, and does it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import CommandLine


@pytest.fixture
def cleared(cli: CommandLine) -> CommandLine:
    """A store whose two facts and summary were just cleared."""
    cli.add("one", "--id", "one")
    cli.add("two", "--id", "two", "--agent", "coder")
    cli.ok("summaries", "set", "topOfMind", "Much.")
    cli.ok("clear", "--all", "--yes")
    return cli


def test_what_was_cleared_comes_back(cleared: CommandLine) -> None:
    document = cleared.ok("undo", "--yes", "--json").json
    assert document["operation"] == "clear"
    assert [fact["id"] for fact in document["back"]] == ["one", "two"]
    assert document["summaries"] == ["user.topOfMind"]
    assert (document["undoneRevision"], document["revision"]) == (4, 5)
    assert cleared.ok("list", "--all-agents", "-q").lines == ["one", "two"]
    assert cleared.ok("summaries", "show").lines == ["user.topOfMind\tMuch."]


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_it_says_what_it_will_do_and_asks(cleared: CommandLine, answer: str, code: int) -> None:
    result = cleared("undo", stdin=answer, terminal=True)
    assert result.code == code
    assert result.err.startswith("Take back the clear of ")
    assert "(revision 4): facts: 2 come back, 0 go, 0 stay; summaries: 1 come back? [y/N] " in result.err
    assert len(cleared.ok("list", "--all-agents", "-q").lines) == (0 if code else 2)


def test_without_a_terminal_nothing_is_taken_back(cleared: CommandLine) -> None:
    before = cleared.tree()
    refused = cleared("undo", stdin="y\n")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert cleared.tree() == before


def test_a_dry_run_writes_nothing(cleared: CommandLine) -> None:
    before = cleared.tree()
    assert cleared.ok("undo", "--dry-run").out.startswith("Would take back the clear of ")
    document = cleared.ok("undo", "--dry-run", "--json").json
    assert document["dryRun"]
    assert "revision" not in document
    assert cleared.tree() == before


def test_what_was_written_since_is_named(cleared: CommandLine) -> None:
    cleared.add("since", "--id", "one")
    result = cleared.ok("undo", "--yes")
    assert result.lines[1:] == ["Changed since, and stays: one of __default__"]
    assert cleared.ok("get", "one", "-q").out == "since\n"


def test_there_may_be_nothing_to_take_back(cli: CommandLine) -> None:
    result = cli("undo", "--yes", "--json")
    assert result.code == 3
    cli.add("one")
    result = cli("undo", "--yes")
    assert result.code == 3
    assert "no clear, import, restore or trim of the user default can be taken back" in result.err


def test_an_import_is_taken_back(cleared: CommandLine) -> None:
    cleared.ok("import", "-", "--yes", stdin=b'{"facts": [{"id": "x", "content": "x"}]}')
    assert cleared.ok("undo", "--yes", "--json").json["operation"] == "import"
    assert cleared.ok("undo", "--yes", "--json").json["operation"] == "clear"
    assert cleared.ok("list", "--all-agents", "-q").lines == ["one", "two"]


def test_the_environment_says_how_long_it_can_be_taken_back(cleared: CommandLine) -> None:
    cleared.monkeypatch.setenv("DEERMEM_UNDO_DAYS", "0")
    assert cleared("undo", "--yes").code == 3
    cleared.monkeypatch.setenv("DEERMEM_UNDO_DAYS", "many")
    refused = cleared("undo", "--yes")
    assert refused.code == 2
    assert "DEERMEM_UNDO_DAYS must be a number of days from 0 to 3,650" in refused.err


@pytest.mark.parametrize("arguments", [["--yes"], ["--dry-run"]])
def test_that_there_is_nothing_to_take_back_is_an_error_in_json_too(
    cli: CommandLine, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEERMEM_UNDO_DAYS", "3")
    refused = cli("undo", *arguments, "--json")
    assert (refused.code, refused.err) == (3, "")
    assert refused.json["error"]["type"] == "NothingToUndo"
    assert refused.json["error"]["hint"] == "it can be for 3 days (DEERMEM_UNDO_DAYS)"
