"""The answers are those that Anthropic documents for the memory tool; the model was trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError

from deermem.integrations.anthropic import DeerMemMemoryTool
from tests.integrations.anthropic.calls import call, listed, text_of

NOTES = "/memories/notes.txt"


@pytest.fixture
def notes(tool: DeerMemMemoryTool) -> DeerMemMemoryTool:
    call(tool, "create", NOTES, file_text="one\ntwo\nthree two\n")
    return tool


def test_a_directory_lists_two_levels_with_sizes(tool: DeerMemMemoryTool) -> None:
    call(tool, "create", "/memories/b.txt", file_text="x" * 1_536)
    call(tool, "create", "/memories/a/deep/er/c.txt", file_text="12345")
    call(tool, "create", "/memories/a/d.txt", file_text="")
    call(tool, "create", "/memories/.hidden", file_text="secret")
    call(tool, "create", "/memories/node_modules/x.js", file_text="x")
    assert call(tool, "view", "/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, "
        "excluding hidden items and node_modules:\n"
        "1.5K\t/memories\n"
        "5B\t/memories/a/\n"
        "0B\t/memories/a/d.txt\n"
        "5B\t/memories/a/deep/\n"
        "1.5K\t/memories/b.txt"
    )
    assert listed(tool, "/memories/a/deep") == ["/memories/a/deep/er/", "/memories/a/deep/er/c.txt"]
    assert text_of(tool, "/memories/.hidden") == "secret"


def test_an_empty_memory_has_a_directory(tool: DeerMemMemoryTool, tmp_path: Path) -> None:
    assert call(tool, "view", "/memories").endswith("\n0B\t/memories")
    assert not list(tmp_path.iterdir())


def test_a_file_is_shown_with_line_numbers(notes: DeerMemMemoryTool) -> None:
    header = "Here's the content of /memories/notes.txt with line numbers:\n"
    assert call(notes, "view", NOTES) == f"{header}     1\tone\n     2\ttwo\n     3\tthree two\n     4\t"
    assert call(notes, "view", NOTES, view_range=[2, 3]) == f"{header}     2\ttwo\n     3\tthree two"
    assert call(notes, "view", NOTES, view_range=[3, -1]) == f"{header}     3\tthree two\n     4\t"
    assert call(notes, "view", NOTES, view_range=[4, 99]) == f"{header}     4\t"


@pytest.mark.parametrize(
    ("parameters", "answer"),
    [
        (("view", "/memories/x"), "The path /memories/x does not exist. Please provide a valid path."),
        (("create", NOTES), "Error: File /memories/notes.txt already exists"),
        (("create", "/memories"), "Error: File /memories already exists"),
        (
            ("str_replace", "/memories/x"),
            "Error: The path /memories/x does not exist. Please provide a valid path.",
        ),
        (
            ("str_replace", "/memories"),
            "Error: The path /memories does not exist. Please provide a valid path.",
        ),
        (("insert", "/memories/x"), "Error: The path /memories/x does not exist"),
        (("delete", "/memories/x"), "Error: The path /memories/x does not exist"),
        (("delete", "/memories"), "Error: Cannot delete the /memories directory itself"),
    ],
)
def test_what_is_not_there_or_there_already_is_told(
    notes: DeerMemMemoryTool, parameters: tuple[str, str], answer: str
) -> None:
    rest: dict[str, Any] = {"file_text": "x", "old_str": "x", "new_str": "y"}
    rest |= {"insert_line": 0, "insert_text": "x"}
    assert call(notes, *parameters, **rest) == answer


def test_a_refusal_is_an_error_of_the_tool(tool: DeerMemMemoryTool) -> None:
    with pytest.raises(ToolError):
        tool.call({"command": "view", "path": "/memories/x"})


def test_create_and_the_edits_answer_as_documented(notes: DeerMemMemoryTool) -> None:
    path = "/memories/new.txt"
    assert call(notes, "create", path, file_text="a") == "File created successfully at: /memories/new.txt"
    assert call(notes, "insert", NOTES, insert_line=1, insert_text="1.5\n") == (
        "The file /memories/notes.txt has been edited."
    )
    assert call(notes, "str_replace", NOTES, old_str="three two", new_str="3") == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     2\t1.5\n     3\ttwo\n     4\t3\n     5\t"
    )
    assert call(notes, "rename", old_path=path, new_path="/memories/d/e") == (
        "Successfully renamed /memories/new.txt to /memories/d/e"
    )
    assert call(notes, "delete", "/memories/d") == "Successfully deleted /memories/d"
    assert text_of(notes, NOTES) == "one\n1.5\ntwo\n3\n"


def test_a_text_that_is_not_there_once_is_not_replaced(notes: DeerMemMemoryTool) -> None:
    assert call(notes, "str_replace", NOTES, old_str="four", new_str="4") == (
        "No replacement was performed, old_str `four` did not appear verbatim in /memories/notes.txt."
    )
    assert call(notes, "str_replace", NOTES, old_str="two", new_str="2") == (
        "No replacement was performed. Multiple occurrences of old_str `two` in lines: 2, 3. "
        "Please ensure it is unique"
    )
    assert text_of(notes, NOTES) == "one\ntwo\nthree two\n"


@pytest.mark.parametrize("line", [None, "x", 1.5])
def test_a_line_that_is_no_number_is_refused(notes: DeerMemMemoryTool, line: Any) -> None:
    answer = call(notes, "insert", NOTES, insert_line=line, insert_text="x")
    assert answer == "Error: The parameter `insert_line` is missing or is no whole number."


@pytest.mark.parametrize("line", [-1, 4])
def test_a_line_that_is_not_in_the_file_is_refused(notes: DeerMemMemoryTool, line: Any) -> None:
    assert call(notes, "insert", NOTES, insert_line=line, insert_text="x") == (
        f"Error: Invalid `insert_line` parameter: {line}. "
        "It should be within the range of lines of the file: [0, 3]"
    )


@pytest.mark.parametrize("view_range", [[5, 6], [3, 2], [1], [1, 2, 3], ["x", 2], [1, 0]])
def test_a_range_that_there_is_not_is_refused(notes: DeerMemMemoryTool, view_range: Any) -> None:
    assert call(notes, "view", NOTES, view_range=view_range).startswith("Error: Invalid `view_range`")


def test_a_file_of_too_many_lines_is_not_shown(tool: DeerMemMemoryTool) -> None:
    call(tool, "create", NOTES, file_text="x" + "\n" * 5_000 + "y" + "\n" * 5_000 + "z")
    assert "exceeds maximum" not in call(tool, "view", NOTES, view_range=[1, 1])
    call(tool, "create", "/memories/long", file_text="x\n" * 499_990)
    assert len(call(tool, "view", "/memories/long", view_range=[499_990, -1]).split("\n")) == 3


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ("/memories/x", "/memories/y", "Error: The path /memories/x does not exist"),
        (NOTES, NOTES, "Error: The destination /memories/notes.txt already exists"),
        (NOTES, "/memories/d", "Error: The destination /memories/d already exists"),
        (NOTES, "/memories", "Error: The destination /memories already exists"),
        ("/memories/d", "/memories/d/in", "Error: Cannot move /memories/d into itself"),
        (NOTES, "/memories/d/file/x", "Error: /memories/d/file is a file, not a directory"),
        ("/memories", "/memories/x", "Error: Cannot rename the /memories directory itself"),
        (NOTES, "/memories/x/", "Error: /memories/x/ is the path of a directory, not of a file"),
        ("/memories/d", "/memories/facts/x", "Error: /memories/facts has no directories"),
    ],
)
def test_a_rename_replaces_nothing(notes: DeerMemMemoryTool, old: str, new: str, answer: str) -> None:
    call(notes, "create", "/memories/d/file", file_text="x")
    assert call(notes, "rename", old_path=old, new_path=new) == answer
    assert listed(notes) == ["/memories/d/", "/memories/d/file", NOTES]


def test_a_directory_is_renamed_with_all_that_is_in_it_in_one_transaction(tool: DeerMemMemoryTool) -> None:
    for name in ("a", "b/c", "b/d e"):
        call(tool, "create", f"/memories/old/{name}", file_text=f"{name}\n")
    before = tool._manager.get_memory(user_id="alice")["revision"]
    call(tool, "rename", old_path="/memories/old/", new_path="/memories/new/place")
    assert tool._manager.get_memory(user_id="alice")["revision"] == before + 1
    for name in ("a", "b/c", "b/d e"):
        assert text_of(tool, f"/memories/new/place/{name}") == f"{name}\n"
        assert text_of(tool, f"/memories/old/{name}") is None


def test_a_file_is_no_directory(notes: DeerMemMemoryTool) -> None:
    assert call(notes, "create", f"{NOTES}/x", file_text="x") == f"Error: {NOTES} is a file, not a directory"
    assert call(notes, "view", f"{NOTES}/") == (
        f"The path {NOTES}/ does not exist. Please provide a valid path."
    )


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ({"command": "create", "path": NOTES}, "file_text"),
        ({"command": "str_replace", "path": NOTES}, "old_str"),
        ({"command": "insert", "path": NOTES, "insert_line": 1}, "insert_text"),
    ],
)
def test_a_parameter_that_the_model_left_out_is_named(
    tool: DeerMemMemoryTool, command: dict[str, Any], missing: str
) -> None:
    with pytest.raises(ToolError, match=f"The parameter `{missing}` is missing"):
        tool.call(command)


def test_clearing_takes_facts_and_summaries(tool: DeerMemMemoryTool) -> None:
    call(tool, "create", NOTES, file_text="x")
    call(tool, "create", "/memories/summaries/work-context.md", file_text="Writes a parser")
    assert tool.clear_all_memory() == "All memory cleared"
    assert listed(tool) == []


def test_a_text_that_occurs_twice_overlapping_is_not_unique(tool: DeerMemMemoryTool) -> None:
    call(tool, "create", NOTES, file_text="aaa\n")
    assert "Multiple occurrences" in call(tool, "str_replace", NOTES, old_str="aa", new_str="b")
    assert text_of(tool, NOTES) == "aaa\n"


def test_more_blanks_at_the_ends_than_a_front_matter_holds_are_refused(tool: DeerMemMemoryTool) -> None:
    answer = call(tool, "create", NOTES, file_text="x" + "\n" * 10_001)
    assert answer == "Error: text: has more than 10,000 blanks at its ends"
