"""`clear` asks before it acts, and never hangs."""

from __future__ import annotations

import pytest

from tests.cli.conftest import CommandLine


@pytest.fixture
def ids(cli: CommandLine) -> list[str]:
    cli.ok("summaries", "set", "topOfMind", "x")
    return [cli.add("one"), cli.add("two"), cli.add("three", "--agent", "coder")]


def test_one_agent_is_cleared_and_the_others_stay(cli: CommandLine, ids: list[str]) -> None:
    document = cli.ok("clear", "--yes", "--json").json
    assert sorted(each["id"] for each in document["deleted"]) == sorted(ids[:2])
    assert {each["agentName"] for each in document["deleted"]} == {"__default__"}
    assert cli.ok("list", "--all-agents", "-q").lines == ids[2:]
    assert cli.ok("summaries", "show").lines


@pytest.mark.usefixtures("ids")
def test_all_agents_and_the_summaries_are_cleared(cli: CommandLine) -> None:
    result = cli.ok("clear", "--all", "--yes")
    assert result.out == "Deleted 3 facts of __default__, coder\n"
    assert cli.ok("list", "--all-agents", "-q").lines == []
    assert cli.ok("summaries", "show").lines == []


@pytest.mark.usefixtures("ids")
def test_without_a_terminal_nothing_is_cleared_and_nobody_is_waited_for(cli: CommandLine) -> None:
    before = cli.tree()
    refused = cli("clear", stdin="y\n")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert cli.tree() == before


@pytest.mark.parametrize("answer", ["y\n", "YES\n", " yes \n"])
@pytest.mark.usefixtures("ids")
def test_a_yes_clears(cli: CommandLine, answer: str) -> None:
    result = cli("clear", "--agent", "coder", stdin=answer, terminal=True)
    assert result.code == 0
    assert result.err == "Delete 1 fact of the agent coder of the user default? [y/N] "
    assert cli.ok("list", "--agent", "coder").lines == []


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "yesterday\n"])
@pytest.mark.usefixtures("ids")
def test_any_other_answer_does_nothing(cli: CommandLine, answer: str) -> None:
    before = cli.tree()
    result = cli("clear", "--all", stdin=answer, terminal=True)
    assert result.code == 1
    assert result.err.startswith("Delete 3 facts and the summaries of the user default? [y/N] ")
    assert cli.tree() == before


def test_facts_that_cannot_be_read_are_named_before_and_after_they_are_cleared(
    cli: CommandLine, ids: list[str]
) -> None:
    file = cli.file_of(ids[0])
    file.write_bytes(b"no fact")
    result = cli("clear", stdin="y\n", terminal=True)
    assert result.code == 0
    assert result.err.startswith(f"Cannot be read, and goes too: {file}\nDelete 2 facts ")
    assert result.lines == ["Deleted 2 facts of __default__", f"Deleted without being read: {file}"]
    assert not file.exists()


@pytest.mark.parametrize("option", [["--all"], ["--agent", "coder"]], ids=str)
def test_the_document_of_a_clear_names_what_could_not_be_read(
    cli: CommandLine, ids: list[str], option: list[str]
) -> None:
    file = cli.file_of(ids[2], "--agent", "coder")
    file.write_bytes(b"no fact")
    assert cli.ok("clear", "--yes", "--json", *option).json["unreadable"] == [str(file)]


@pytest.mark.usefixtures("ids")
def test_the_end_of_the_input_at_the_question_leaves_the_error_a_line_of_its_own(cli: CommandLine) -> None:
    result = cli("clear", terminal=True)
    assert result.err.splitlines()[1:] == ["Error: the answer was no: nothing was done"]


@pytest.mark.usefixtures("ids")
def test_a_clear_at_another_revision_is_refused(cli: CommandLine) -> None:
    before = cli.tree()
    refused = cli("clear", "--yes", "--expected-revision", "3", "--json")
    assert (refused.code, refused.json["error"]["type"]) == (4, "ManifestConflict")
    assert cli.tree() == before
    cli.ok("clear", "--yes", "--expected-revision", "4")


def test_clearing_nothing_writes_nothing(cli: CommandLine) -> None:
    result = cli.ok("clear", "--yes")
    assert result.out == "Deleted 0 facts\n"
    assert result.err == f"Hint: nothing is stored at {cli.root}\n"
    assert not cli.root.exists()


@pytest.mark.usefixtures("ids")
def test_all_and_one_agent_exclude_each_other(cli: CommandLine) -> None:
    assert cli("clear", "--all", "--agent", "coder", "--yes").code == 2
