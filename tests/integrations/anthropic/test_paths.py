"""No path leads out of `/memories`, and no two files share a fact."""

from __future__ import annotations

from pathlib import Path

import pytest
from anthropic.lib.tools import ToolError
from hypothesis import given
from hypothesis import strategies as st

from deermem import DeerMem
from deermem.integrations.anthropic import DeerMemMemoryTool
from deermem.integrations.anthropic.paths import fact_id_of, fact_parts, parse_path
from deermem.model.identity import is_fact_id
from tests.integrations.anthropic.calls import call, listed, text_of

ATTEMPTS = [
    "/memories/../x",
    "/memories/..",
    "/memories/a/../../x",
    "/memories/a/..",
    "/memories/./x",
    "/memories/%2e%2e/x",
    "/memories/%2E%2e",
    "/memories/%252e%252e/x",
    "/memories/%25252e%25252e%25252fx",
    "/memories/a%2f..%2fx",
    "/memories/..%2fx",
    "/memories/%2fetc",
    "/memories/%5c..",
    "/memories/..\\x",
    "/memories\\..\\x",
    "/memories/a\\b",
    "/memories/\0",
    "/memories/a\0.txt",
    "/memories/%00",
    "/memories/ .. /x",
    "/memories//x",
    "/memories/a//x",
    "/memories/ /x",
    "/memories/a\nb",
    "/memories/a\u2028b",
    "/memories/\ud800",
    "/memoriesx",
    "/memories-old/x",
    "/Memories/x",
    "memories/x",
    "//memories/x",
    "/etc/passwd",
    "C:\\memories\\x",
    "file:///memories/x",
    "~/memories",
    "../memories/x",
    "",
    f"/memories/{'x' * 1_001}",
    "/memories" + "/x" * 33,
]


@pytest.mark.parametrize("path", ATTEMPTS)
def test_a_path_that_would_leave_is_refused_by_every_command(
    tool: DeerMemMemoryTool, tmp_path: Path, path: str
) -> None:
    call(tool, "create", "/memories/a", file_text="x")
    before = sorted(tmp_path.rglob("*"))
    parameters = {"file_text": "y", "old_str": "x", "new_str": "y", "insert_line": 0, "insert_text": "y"}
    for command in ("view", "create", "str_replace", "insert", "delete"):
        assert call(tool, command, path, **parameters).startswith("Error: Path")
    assert call(tool, "rename", old_path=path, new_path="/memories/b").startswith("Error: Path")
    assert call(tool, "rename", old_path="/memories/a", new_path=path).startswith("Error: Path")
    assert sorted(tmp_path.rglob("*")) == before
    assert text_of(tool, "/memories/a") == "x"


@pytest.mark.parametrize("path", [None, 1, ["/memories"], b"/memories"])
def test_a_path_that_is_no_text_is_refused(path: object) -> None:
    with pytest.raises(ToolError, match="Path must start with /memories"):
        parse_path(path)


@pytest.mark.parametrize(
    "name", ["100%", "a b", "ünï", "…", "...", "..a", "a..", "%41", "%2", "CON", "-", "日本", "👍🏽", "a;b&c"]
)
def test_a_harmless_name_is_a_file_of_its_own(tool: DeerMemMemoryTool, name: str) -> None:
    call(tool, "create", f"/memories/{name}", file_text=name)
    call(tool, "create", f"/memories/{name}x", file_text="other")
    assert text_of(tool, f"/memories/{name}") == name


names = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="/\\"), min_size=1
)


@given(st.lists(names, min_size=1, max_size=4))
def test_what_a_path_becomes_is_that_path_again(parts: list[str]) -> None:
    try:
        path = parse_path("/memories/" + "/".join(parts))
    except ToolError:
        return
    assert path.parts == tuple(parts)
    fact_id = fact_id_of(path.parts)
    if fact_id is not None:
        assert is_fact_id(fact_id)
        assert fact_parts(fact_id, "/".join(parts)) == path.parts


@pytest.mark.parametrize("first", ["/memories/A", "/memories/a/b", "/memories/é"])
@pytest.mark.parametrize("second", ["/memories/a", "/memories/a-b", "/memories/e\u0301"])
def test_names_that_a_disk_could_mix_up_are_two_files(
    tool: DeerMemMemoryTool, first: str, second: str
) -> None:
    call(tool, "create", first, file_text="first")
    if not first.startswith(f"{second}/"):
        call(tool, "create", second, file_text="second")
        assert text_of(tool, second) == "second"
    assert text_of(tool, first) == "first"


def test_a_file_of_facts_cannot_pretend_to_be_another_file(tool: DeerMemMemoryTool) -> None:
    call(tool, "create", "/memories/a", file_text="x")
    alias = f"/memories/facts/{fact_id_of(('a',))}.md"
    assert call(tool, "view", alias).startswith("The path")
    assert call(tool, "delete", alias) == f"Error: The path {alias} does not exist"
    call(tool, "delete", "/memories/a")
    assert call(tool, "create", alias, file_text="y").startswith("Error: A file in /memories/facts must be")


@pytest.mark.parametrize(
    "path",
    [
        *("/memories/facts/a b.md", "/memories/facts/a", "/memories/facts/a/b.md", "/memories/facts/.md"),
        *("/memories/facts/README.md", "/memories/facts/A.md", "/memories/facts/con.md"),
    ],
)
def test_a_name_that_is_no_facts_or_not_its_own_on_every_disk_cannot_be_made_below_facts(
    tool: DeerMemMemoryTool, path: str
) -> None:
    refused = "Error: A file in /memories/facts must be"
    call(tool, "create", "/memories/a", file_text="x")
    assert call(tool, "create", path, file_text="x").startswith(refused)
    assert call(tool, "rename", old_path="/memories/a", new_path=path).startswith(refused)
    assert listed(tool) == ["/memories/a"]


@pytest.mark.timeout(20)
def test_a_path_that_would_take_hours_to_decode_is_refused_at_once(tool: DeerMemMemoryTool) -> None:
    answer = call(tool, "view", f"/memories/%{'25' * 1_000_000}2e")
    assert answer.endswith("is longer than 1000 bytes or 32 names")


def test_two_users_and_two_agents_have_memories_of_their_own(manager: DeerMem) -> None:
    tools = [
        DeerMemMemoryTool(manager, user_id=user, agent_name=agent)
        for user in ("alice", "bob", "a@b.c")
        for agent in (None, "writer")
    ]
    for number, tool in enumerate(tools):
        call(tool, "create", "/memories/a", file_text=str(number))
    assert [text_of(tool, "/memories/a") for tool in tools] == [str(number) for number in range(6)]


def test_a_link_put_in_place_of_a_fact_is_not_followed(tool: DeerMemMemoryTool, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", "utf-8")
    call(tool, "create", "/memories/a", file_text="x")
    (document,) = tmp_path.rglob("file-*.md")
    document.unlink()
    document.symlink_to(secret)
    with DeerMem({"storage_path": str(tmp_path)}) as fresh:
        answer = call(DeerMemMemoryTool(fresh, user_id="alice"), "view", "/memories/a")
    assert answer == "Error: The stored memory is damaged and was not changed; it must be mended."
    assert secret.read_text("utf-8") == "secret"
