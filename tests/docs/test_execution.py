"""A document that is wrong is found out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from tests.docs import execution
from tests.docs.blocks import blocks
from tests.docs.execution import BlockFailed, run_document

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the documents speak to a POSIX shell")


def document(language: str, *lines: str, above: str = "") -> str:
    return "\n".join(["# Title", "", above, f"```{language}", *lines, "```", ""])


def test_a_python_block_that_raises_is_found_with_its_line() -> None:
    with pytest.raises(BlockFailed, match=r"page\.md:5: ZeroDivisionError"):
        run_document("page.md", document("python", "1 / 0"))


def test_python_blocks_of_one_document_continue_each_other() -> None:
    text = document("python", "kept = 1") + document("python", "assert kept == 1")
    assert run_document("page.md", text) == 2


def test_a_command_that_fails_is_found_although_others_follow() -> None:
    with pytest.raises(BlockFailed, match="`false` exits with 1"):
        run_document("page.md", document("console", "$ true", "$ false", "$ true"))


def test_a_script_that_fails_in_the_middle_is_found() -> None:
    with pytest.raises(BlockFailed, match="exits with 1"):
        run_document("page.md", document("bash", "false", "true"))


def test_output_that_differs_from_what_is_shown_is_found() -> None:
    with pytest.raises(BlockFailed, match="is said to print"):
        run_document("page.md", document("console", "$ echo one", "one", "$ echo two", "three"))


def test_an_ellipsis_stands_for_what_changes() -> None:
    assert run_document("page.md", document("console", "$ echo fact_1234 stored", "fact_... stored")) == 1


def test_a_command_may_go_on_in_the_next_line() -> None:
    assert run_document("page.md", document("console", "$ echo one \\", ">   two", "one two")) == 1


def test_output_without_a_final_line_break_does_not_hide_the_next_command() -> None:
    with pytest.raises(BlockFailed, match="`false`"):
        run_document("page.md", document("console", "$ printf x", "x", "$ false"))


@pytest.mark.parametrize("end", ["$ false", "$ sleep 60"], ids=["fails", "takes too long"])
def test_what_a_block_leaves_in_the_background_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(execution, "SECONDS", 1)
    os.mkfifo(tmp_path / "open")
    reader = os.open(tmp_path / "open", os.O_RDONLY | os.O_NONBLOCK)
    lines = [f"$ exec 3> {tmp_path / 'open'}", "$ sleep 60 > /dev/null 2>&1 &", end]
    with pytest.raises((BlockFailed, TimeoutExpired)):
        run_document("page.md", document("console", *lines))
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # comes when nobody holds the other end any more
    os.close(reader)


def test_a_block_sees_what_the_blocks_above_it_have_exported() -> None:
    text = document("console", "$ export DEERMEM_DATA_DIR=store other=1")
    text += document("python", "import os", "assert os.environ['DEERMEM_DATA_DIR'] == 'store'")
    text += document("console", "$ echo $DEERMEM_DATA_DIR${other-}", "store1", "$ unset other")
    text += document("console", "$ echo $DEERMEM_DATA_DIR${other-}", "store")
    before = dict(os.environ)
    assert run_document("page.md", text) == 4
    assert dict(os.environ) == before


def test_a_document_that_works_on_the_store_of_the_reader_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BlockFailed, match=r"page\.md:5: works on ~/\.deermem"):
        run_document("page.md", document("console", '$ mkdir "${DEERMEM_DATA_DIR-$HOME/.deermem}"'))


def test_a_document_that_leaves_a_variable_is_found() -> None:
    with pytest.raises(BlockFailed, match="leaves exported: DEERMEM_AUTH_MODE"):
        run_document("page.md", document("console", "$ export DEERMEM_AUTH_MODE=token"))


def test_a_block_marked_as_not_run_is_left_alone() -> None:
    text = document("python", "1 / 0", above="<!-- not run: it divides by zero -->")
    assert run_document("page.md", text) == 0
    assert [block.not_run for block in blocks(text)] == ["it divides by zero"]


def test_a_mark_counts_only_directly_above_its_block() -> None:
    text = document("python", "1 / 0", above="<!-- not run: elsewhere -->\n\nA sentence between them.\n")
    with pytest.raises(BlockFailed):
        run_document("page.md", text)


def test_illustrations_are_not_run() -> None:
    assert run_document("page.md", document("text", "$ false")) == 0
