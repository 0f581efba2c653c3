"""No answer floods the model's context, and each tells how to see what it does not show."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from anthropic.lib.tools import ToolError
from hypothesis import given
from hypothesis import strategies as st

from deermem import DeerMem, InvalidInputError
from deermem.integrations.anthropic import AsyncDeerMemMemoryTool, DeerMemMemoryTool
from deermem.integrations.anthropic.views import file_view, listing
from tests.integrations.anthropic.calls import call

LONG = "/memories/long.txt"


@pytest.fixture
def narrow(manager: DeerMem) -> DeerMemMemoryTool:
    return DeerMemMemoryTool(manager, user_id="alice", max_characters=40)


def pages(view: Callable[[list[int] | None], str]) -> list[list[str]]:
    """Returns the rows of each page, got by doing what each says."""
    found: list[list[str]] = []
    view_range: list[int] | None = None
    while True:
        rows = view(view_range).split("\n")[1:]
        more = re.search(r"View the next lines with `view_range` \[(\d+), (-?\d+)\]", rows[-1])
        found.append([row for row in rows if not row.startswith("[")])
        if more is None:
            return found
        view_range = [int(more[1]), int(more[2])]


@given(st.lists(st.text("ab", max_size=30), min_size=1, max_size=30), st.integers(38, 200))
def test_the_pages_of_a_file_are_the_file(lines: list[str], limit: int) -> None:
    text = "\n".join(lines)
    shown = pages(lambda view_range: file_view(LONG, text, view_range, limit))
    assert all(len("\n".join(page)) <= limit for page in shown)
    assert [row.split("\t")[1] for page in shown for row in page] == lines


@given(st.sets(st.text("abc", min_size=1, max_size=8), max_size=30), st.integers(40, 200))
def test_the_pages_of_a_directory_are_the_directory(names: set[str], limit: int) -> None:
    sizes: dict[tuple[str, ...], int] = {(name,): 1 for name in names}
    shown = pages(lambda view_range: listing("/memories/", sizes, view_range, limit))
    assert all(len("\n".join(page)) <= limit for page in shown)
    rows = [row.split("\t")[1] for page in shown for row in page]
    assert rows == ["/memories", *(f"/memories/{name}" for name in sorted(names))]


def test_a_range_is_paged_to_its_own_end(narrow: DeerMemMemoryTool) -> None:
    call(narrow, "create", LONG, file_text="line\n" * 9)
    assert call(narrow, "view", LONG, view_range=[2, 8]).split("\n")[1:] == [
        "     2\tline",
        "     3\tline",
        "     4\tline",
        "[At most 40 characters are shown. View the next lines with `view_range` [5, 8].]",
    ]
    assert call(narrow, "view", LONG, view_range=[6, 8]).split("\n")[1:] == [
        f"     {number}\tline" for number in (6, 7, 8)
    ]


def test_a_range_of_a_directory_is_of_its_rows(tool: DeerMemMemoryTool) -> None:
    for name in "abc":
        call(tool, "create", f"/memories/{name}", file_text="1")
    rows = call(tool, "view", "/memories", view_range=[2, 3]).split("\n")[1:]
    assert rows == ["1B\t/memories/a", "1B\t/memories/b"]
    assert "lines of the listing: [1, 4]" in call(tool, "view", "/memories", view_range=[5, 6])


def test_a_line_that_is_too_long_is_cut_and_can_be_broken(narrow: DeerMemMemoryTool) -> None:
    call(narrow, "create", LONG, file_text=f"{'x' * 30} and so on\nend")
    assert call(narrow, "view", LONG).split("\n")[1:] == [
        f"     1\t{'x' * 30} an",
        (
            "[Line 1 is cut after 40 of 47 characters. "
            "To view the rest of it, break it into lines with `str_replace`.]"
        ),
        "[At most 40 characters are shown. View the next lines with `view_range` [2, -1].]",
    ]
    call(narrow, "str_replace", LONG, old_str="x an", new_str="x\nan")
    assert call(narrow, "view", LONG, view_range=[2, -1]).split("\n")[1:] == [
        "     2\tand so on",
        "     3\tend",
    ]


def test_a_row_of_a_file_cannot_pass_for_the_tools_own(narrow: DeerMemMemoryTool) -> None:
    call(narrow, "create", LONG, file_text="[At most 9 characters]\n[x")
    assert [row[:8] for row in call(narrow, "view", LONG).split("\n")[1:]] == ["     1\t[", "     2\t["]


def test_an_edit_shows_no_more_than_a_view(narrow: DeerMemMemoryTool) -> None:
    call(narrow, "create", LONG, file_text=f"a\n{'x' * 1_000}\nb")
    answer = call(narrow, "str_replace", LONG, old_str="a", new_str="c")
    assert answer.split("\n")[1:] == [
        "     1\tc",
        "[At most 40 characters are shown. View the next lines with `view_range` [2, -1].]",
    ]


def test_a_text_that_is_everywhere_is_told_on_its_first_lines(tool: DeerMemMemoryTool) -> None:
    call(tool, "create", LONG, file_text="x\n" * 400_000)
    answer = call(tool, "str_replace", LONG, old_str="x", new_str="y")
    assert f"in lines: {', '.join(map(str, range(1, 21)))}, .... Please" in answer
    call(tool, "create", "/memories/few", file_text="x\n" * 3)
    answer = call(tool, "str_replace", "/memories/few", old_str="x", new_str="y")
    assert answer.endswith("in lines: 1, 2, 3. Please ensure it is unique")


def test_a_long_text_is_quoted_by_its_beginning(tool: DeerMemMemoryTool) -> None:
    call(tool, "create", LONG, file_text="x" * 900_000)
    for old in ("y" * 500_000, "x" * 500_000):
        answer = call(tool, "str_replace", LONG, old_str=old, new_str="")
        assert f"old_str `{old[:1_000]}...`" in answer


def test_thirty_thousand_characters_are_shown_by_default(manager: DeerMem, tool: DeerMemMemoryTool) -> None:
    call(tool, "create", LONG, file_text="x" * 900_000)
    assert 30_000 < len(call(tool, "view", LONG)) < 30_300
    for number in range(40):
        manager.create_fact(f"fact {number}", user_id="alice")
    small = DeerMemMemoryTool(manager, user_id="alice", max_characters=1_000)
    assert len(call(small, "view", "/memories")) < 1_300


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, None, "9"])
@pytest.mark.parametrize("kind", [DeerMemMemoryTool, AsyncDeerMemMemoryTool])
def test_a_limit_that_is_no_positive_number_is_refused(
    manager: DeerMem, kind: type[DeerMemMemoryTool], limit: int
) -> None:
    with pytest.raises(InvalidInputError, match="max_characters"):
        kind(manager, user_id="alice", max_characters=limit)


@pytest.mark.parametrize(
    "command",
    [
        {"command": "create", "path": "/memories/b", "file_text": "\ud800"},
        {"command": "str_replace", "path": "/memories/a", "old_str": "\ud800", "new_str": ""},
        {"command": "str_replace", "path": "/memories/a", "old_str": "x", "new_str": "\ud800"},
        {"command": "insert", "path": "/memories/a", "insert_line": "\ud800", "insert_text": "x"},
        {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "\ud800"},
        {"command": "view", "path": "/memories/a", "view_range": "\ud800"},
        {"command": "view", "path": "/memories/a", "view_range": 5},
        {"command": "view", "path": "/memories/\ud800"},
        {"command": "rename", "old_path": "/memories/a", "new_path": "\ud800"},
    ],
)
def test_what_cannot_be_sent_is_not_quoted(tool: DeerMemMemoryTool, command: dict[str, object]) -> None:
    call(tool, "create", "/memories/a", file_text="x")
    with pytest.raises(ToolError) as refused:
        tool.call(command)
    assert str(refused.value.content).encode()
