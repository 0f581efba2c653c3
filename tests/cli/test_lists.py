"""`list` and `search`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import CommandLine


@pytest.fixture
def ids(cli: CommandLine) -> list[str]:
    """Six facts of three agents; the last two are of the default agent."""
    ids = [f"fact_{number}" for number in range(6)]
    agents = [["--agent", "coder"], ["--agent", "coder"], ["--agent", "tutor"], ["--agent", "tutor"], [], []]
    for number, (fact_id, agent) in enumerate(zip(ids, agents, strict=True)):
        category = "goal" if number % 2 else "context"
        cli.add(
            f"text {number}", "--id", fact_id, "--category", category, "--topic", f"t{number % 3}", *agent
        )
    return ids


def test_a_list_in_a_pipe_has_one_fact_a_line_with_tabs(cli: CommandLine) -> None:
    cli.add("first line\nsecond line", "--id", "fact_a", "--confidence", "0.25", "--category", "a\tb\nc")
    assert cli.ok("list").out == "fact_a\ta\\tb\\nc\t0.25\tfirst line\n"


def test_a_list_is_sorted_by_id_and_shows_one_agent(cli: CommandLine, ids: list[str]) -> None:
    assert cli.ok("list", "-q").lines == ids[4:]
    assert cli.ok("list", "-q", "--agent", "coder").lines == ids[:2]


def test_a_list_of_all_agents_names_them(cli: CommandLine, ids: list[str]) -> None:
    shown = [line.split("\t")[:2] for line in cli.ok("list", "--all-agents").lines]
    assert shown == [
        ["__default__", ids[4]], ["__default__", ids[5]], ["coder", ids[0]], ["coder", ids[1]],
        ["tutor", ids[2]], ["tutor", ids[3]],
    ]  # fmt: skip


def test_filters_choose_by_category_and_by_all_topics(cli: CommandLine, ids: list[str]) -> None:
    assert cli.ok("list", "-q", "--all-agents", "--category", "goal").lines == [ids[5], ids[1], ids[3]]
    assert cli.ok("list", "-q", "--all-agents", "--topic", "t0").lines == [ids[0], ids[3]]
    assert cli.ok("list", "-q", "--all-agents", "--topic", "t0", "--topic", "t1").lines == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7])
def test_the_parts_of_a_list_of_all_agents_are_the_whole(
    cli: CommandLine, ids: list[str], limit: int
) -> None:
    whole = cli.ok("list", "-q", "--all-agents").lines
    assert len(whole) == len(ids)
    parts: list[str] = []
    cursor: list[str] = []
    while True:
        document = cli.ok("list", "--all-agents", "--limit", str(limit), "--json", *cursor).json
        assert 1 <= len(document["facts"]) <= limit
        parts += [fact["id"] for fact in document["facts"]]
        if "nextCursor" not in document:
            break
        cursor = ["--cursor", document["nextCursor"]]
    assert parts == whole


def test_a_list_that_is_cut_says_how_to_go_on(cli: CommandLine, ids: list[str]) -> None:
    result = cli.ok("list", "--limit", "1")
    assert f"--cursor {ids[4]}" in result.err
    assert cli.ok("list", "--limit", "1", "--cursor", ids[4], "-q").lines == [ids[5]]


def test_a_file_that_cannot_be_read_is_left_out_and_reported(cli: CommandLine) -> None:
    good, bad = cli.add("good"), cli.add("bad")
    file = cli.file_of(bad)
    file.write_text("no front matter", "utf-8")
    result = cli("list")
    assert result.code == 5
    assert [line.split("\t")[0] for line in result.lines] == [good]
    assert str(file) in result.err
    document = cli("list", "--json", "--all-agents").json
    assert [fact["id"] for fact in document["facts"]] == [good]
    assert [problem["type"] for problem in document["problems"]] == ["Corruption"]


def test_an_empty_list_is_empty(cli: CommandLine) -> None:
    result = cli.ok("list")
    assert (result.out, result.err) == ("", f"No facts.\nHint: nothing is stored at {cli.root}\n")
    assert cli.ok("list", "--json").json == {"revision": 0, "facts": [], "problems": []}
    assert not cli.root.exists()


def test_a_search_finds_text_in_any_case_the_highest_confidence_first(cli: CommandLine) -> None:
    low = cli.add("Drinks green TEA.", "--confidence", "0.2")
    high = cli.add("Never drinks coffee; tea only.", "--confidence", "0.9")
    cli.add("Eats bread.")
    assert cli.ok("search", "Tea", "-q").lines == [high, low]
    assert cli.ok("search", "tea", "-q", "--limit", "1").lines == [high]


def test_a_search_that_is_cut_says_so(cli: CommandLine) -> None:
    for number in range(3):
        cli.add(f"tea {number}")
    cut = cli.ok("search", "tea", "--limit", "2")
    assert len(cut.lines) == 2
    assert cut.err == "There are more: repeat the command with --limit 20\n"
    assert cli.ok("search", "tea", "--limit", "2", "--json").json["more"] is True
    whole = cli.ok("search", "tea", "--limit", "3")
    assert (len(whole.lines), whole.err) == (3, "")
    assert cli.ok("search", "tea", "--limit", "3", "--json").json["more"] is False


def test_a_search_shows_what_can_be_read_and_reports_the_rest(cli: CommandLine) -> None:
    good, bad = cli.add("green tea"), cli.add("black tea")
    file = cli.file_of(bad)
    file.write_text("no front matter", "utf-8")
    result = cli("search", "tea")
    assert result.code == 5
    assert [line.split("\t")[0] for line in result.lines] == [good]
    assert str(file) in result.err
    document = cli("search", "TEA", "--json", "--all-agents").json
    assert [hit["fact"]["id"] for hit in document["hits"]] == [good]
    assert [problem["type"] for problem in document["problems"]] == ["Corruption"]


@pytest.mark.usefixtures("ids")
@pytest.mark.parametrize("command", [["list"], ["search", "x"], ["clear", "--yes"]], ids=lambda each: each[0])
def test_where_nothing_is_found_a_hint_says_what_was_looked_at(cli: CommandLine, command: list[str]) -> None:
    nowhere = f"{cli.root}x"
    typo = cli.ok(*command, "--storage-path", nowhere)
    assert f"Hint: nothing is stored at {nowhere}\n" in typo.err
    typo = cli.ok(*command, "--user-id", "defualt", "--agent", "coder")
    assert (
        f"no facts of the agent coder of the user defualt in {cli.root}; users there are: default" in typo.err
    )
    typo = cli.ok(*command, "--agent", "codre")
    assert "; agents with facts are: __default__, coder, tutor" in typo.err


def test_where_facts_are_and_none_is_chosen_there_is_no_hint(cli: CommandLine) -> None:
    cli.add("x")
    assert cli.ok("list", "--category", "goal").err == "No facts.\n"


def test_a_search_tells_score_and_kind_of_match(cli: CommandLine) -> None:
    fact_id = cli.add("tea", "--confidence", "0.9")
    document = cli.ok("search", "TEA", "--json").json
    (hit,) = document["hits"]
    assert (document["query"], hit["score"], hit["matchType"]) == ("TEA", 0.9, "substring")
    assert hit["fact"] == cli.ok("get", fact_id, "--json").json


def test_a_search_looks_at_one_agent_or_at_all(cli: CommandLine, ids: list[str]) -> None:
    assert cli.ok("search", "text", "-q").lines == ids[4:]
    assert sorted(cli.ok("search", "text", "-q", "--all-agents").lines) == ids
    assert cli.ok("search", "text", "-q", "--all-agents", "--topic", "t2").lines == [ids[2], ids[5]]


@pytest.mark.usefixtures("ids")
def test_a_search_without_a_result_is_no_error(cli: CommandLine) -> None:
    result = cli.ok("search", "nowhere")
    assert (result.out, result.err) == ("", "Nothing found.\n")


@pytest.mark.parametrize("command", [["list"], ["search", "x"]])
def test_one_agent_and_all_agents_exclude_each_other(cli: CommandLine, command: list[str]) -> None:
    assert cli(*command, "--agent", "coder", "--all-agents").code == 2


def test_a_cursor_of_another_list_is_refused(cli: CommandLine, ids: list[str]) -> None:
    assert cli("list", "--all-agents", "--cursor", ids[0]).code == 2
    assert cli("list", "--cursor", f"coder/{ids[0]}").code == 2
