"""Whatever is done to them, the files are those of a dictionary and of the SDK's own back end on a disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deermem import DeerMem
from deermem.integrations.anthropic import DeerMemMemoryTool
from tests.integrations.anthropic.calls import call, text_of

blanks = st.text(" \t\n\r\x0b\x0c\x1c\x85\u2028\u3000", max_size=4)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
texts = st.builds("".join, st.tuples(blanks, words, blanks)) | st.sampled_from(
    [
        "",
        "\n",
        "---\n",
        "# x\n\ny",
        "(empty file)",
        " (empty file)",
        "a\r\nb\r\n",
        "<<<<<<< x\n=======\n>>>>>>> y\n",
    ]
)
names = st.sampled_from(["a", "b", "c.md", ".h"])
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/memories/" + "/".join(parts))


@contextmanager
def opened() -> Iterator[DeerMemMemoryTool]:
    with tempfile.TemporaryDirectory() as root, DeerMem({"storage_path": root}) as manager:
        yield DeerMemMemoryTool(manager, user_id="alice")


@given(texts, texts)
@example("", "(empty file)")
def test_a_text_comes_back_to_its_last_character_from_a_fresh_store(first: str, second: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        with DeerMem({"storage_path": root}) as manager:
            tool = DeerMemMemoryTool(manager, user_id="alice")
            call(tool, "create", "/memories/a", file_text=first)
            call(tool, "create", "/memories/facts/b.md", file_text=second)
        with DeerMem({"storage_path": root}) as manager:
            tool = DeerMemMemoryTool(manager, user_id="alice")
            assert text_of(tool, "/memories/a") == first
            assert text_of(tool, "/memories/facts/b.md") == second


class Directory(RuleBasedStateMachine):
    """Does the same to a dictionary of files."""

    def __init__(self) -> None:
        super().__init__()
        self.context = opened()
        self.tool = self.context.__enter__()
        self.files: dict[str, str] = {}

    def teardown(self) -> None:
        self.context.__exit__(None, None, None)

    def below(self, path: str) -> list[str]:
        return [file for file in self.files if file.startswith(f"{path}/")]

    def can_be_made(self, path: str) -> bool:
        above = [path.rsplit("/", depth)[0] for depth in range(1, path.count("/") - 1)]
        return (
            path not in self.files and not self.below(path) and not any(each in self.files for each in above)
        )

    @rule(path=paths, text=texts)
    def create(self, path: str, text: str) -> None:
        answer = call(self.tool, "create", path, file_text=text)
        assert answer.startswith("File created") == self.can_be_made(path)
        if self.can_be_made(path):
            self.files[path] = text

    @rule(path=paths, old=words, new=texts)
    def str_replace(self, path: str, old: str, new: str) -> None:
        text = self.files.get(path, "")
        old = old or text[:3]
        once = path in self.files and bool(old) and text.find(old) >= 0 and text.find(old) == text.rfind(old)
        answer = call(self.tool, "str_replace", path, old_str=old, new_str=new)
        if old or path not in self.files:
            assert answer.startswith("The memory file has been edited") == once
            if once:
                self.files[path] = text.replace(old, new)
        elif not text:
            self.files[path] = new

    @rule(path=paths, line=st.integers(0, 4), text=texts)
    def insert(self, path: str, line: int, text: str) -> None:
        answer = call(self.tool, "insert", path, insert_line=line, insert_text=text)
        before = self.files.get(path, "")
        lines = before.removesuffix("\n").split("\n") if before else []
        assert answer.endswith("has been edited.") == (path in self.files and line <= len(lines))
        if path in self.files and line <= len(lines):
            ended = before.endswith("\n") or (line == len(lines) and text.endswith("\n"))
            lines.insert(line, text.removesuffix("\n"))
            self.files[path] = "\n".join(lines) + "\n" * ended

    @rule(path=paths)
    def delete(self, path: str) -> None:
        answer = call(self.tool, "delete", path)
        gone = [path] if path in self.files else self.below(path)
        assert answer.startswith("Successfully") == bool(gone)
        for file in gone:
            del self.files[file]

    @rule(old=paths, new=paths)
    def rename(self, old: str, new: str) -> None:
        moved = [old] if old in self.files else self.below(old)
        inside = new == old or new.startswith(f"{old}/")
        answer = call(self.tool, "rename", old_path=old, new_path=new)
        possible = bool(moved) and not inside and self.can_be_made(new)
        assert answer.startswith("Successfully") == possible
        if possible:
            for file in moved:
                self.files[new + file.removeprefix(old)] = self.files.pop(file)

    @invariant()
    def the_files_are_those_of_the_dictionary(self) -> None:
        shown = {path: text_of(self.tool, path) for path in self.files}
        assert shown == self.files
        facts = self.tool._manager.get_memory(user_id="alice")["facts"]
        assert len(facts) == len(self.files)


TestDirectory = Directory.TestCase
TestDirectory.settings = settings(max_examples=25, stateful_step_count=20)


def told(tool: BetaAbstractMemoryTool, command: dict[str, Any]) -> tuple[bool, str]:
    """Returns whether it went well and what was told, without the sizes, which a disk counts otherwise."""
    try:
        answer = tool.call(command)
    except ToolError:
        return False, ""
    assert isinstance(answer, str)
    if answer.startswith("Here're the files"):
        shown = [line.split("\t")[1] for line in answer.split("\n")[1:]]
        return True, "\n".join(path for path in shown if not path.endswith("/"))
    return True, answer


lines = st.lists(st.sampled_from(["one", "two", "three", ""]), max_size=4).map(
    lambda each: "".join(f"{line}\n" for line in each)
)
flat = st.sampled_from(["/memories/a", "/memories/b.md", "/memories/d/c", "/memories/d/e"])
commands = st.one_of(
    st.builds(lambda path: {"command": "view", "path": path}, flat | st.just("/memories")),
    st.builds(lambda path, text: {"command": "create", "path": path, "file_text": text}, flat, lines),
    st.builds(
        lambda path, old, new: {"command": "str_replace", "path": path, "old_str": old, "new_str": new},
        flat,
        st.sampled_from(["one", "two", "two\n"]),
        st.sampled_from(["", "one", "x\ny\n"]),
    ),
    st.builds(
        lambda path, line, text: {
            "command": "insert",
            "path": path,
            "insert_line": line,
            "insert_text": text,
        },
        flat,
        st.integers(0, 3),
        st.sampled_from(["new", "new\n", "x\ny\n"]),
    ),
    st.builds(lambda path: {"command": "delete", "path": path}, flat),
    st.builds(lambda old, new: {"command": "rename", "old_path": old, "new_path": new}, flat, flat),
)


@settings(max_examples=60)
@given(st.lists(commands, max_size=12))
def test_the_answers_are_those_of_the_sdks_own_back_end(each: list[dict[str, Any]]) -> None:
    with opened() as tool, tempfile.TemporaryDirectory() as root:
        theirs = BetaLocalFilesystemMemoryTool(str(Path(root)))
        for command in each:
            went_well, answer = told(tool, command)
            assert (went_well, answer) == told(theirs, command), command
