"""Errors say what to do next, in words that can be typed."""

from __future__ import annotations

import os
import shutil

import pytest

from deermem.cli.exits import report_of
from deermem.cli.hints import improved
from deermem.cli.options import ScopeOptions
from tests.cli.conftest import CommandLine


def test_the_default_agent_may_be_named_as_lists_show_it(cli: CommandLine) -> None:
    fact_id = cli.add("x", "--agent", "__default__")
    assert cli.ok("list", "-q").lines == cli.ok("list", "-q", "--agent", "__default__").lines == [fact_id]


@pytest.mark.parametrize("command", ["get", "adopt", "delete", "path"])
def test_a_fact_of_another_agent_is_told_with_its_agent(cli: CommandLine, command: str) -> None:
    fact_id = cli.add("x", "--agent", "coder")
    refused = cli(command, fact_id)
    assert refused.code == 3
    assert "Hint: it is a fact of the agent coder: add --agent coder\n" in refused.err
    cli.ok(command, fact_id, "--agent", "coder")


def test_a_command_in_a_hint_repeats_what_says_which_memory_is_meant(cli: CommandLine) -> None:
    place = ["--agent", "coder", "--user-id", "bob smith"]
    fact_id = cli.add("x", *place)
    said = "--agent coder --user-id 'bob smith'"
    assert f"`deermem update {fact_id} {said}`" in cli("add", "X", *place).err
    assert "`deermem list --all-agents --user-id 'bob smith'`" in cli("get", "fact_absent", *place).err
    refused = cli("update", fact_id, "--title", "y", "--expected-revision", "9", *place)
    assert f"`deermem get {fact_id} {said}`" in refused.err
    assert "--no-user" in cli("get", "fact_absent", "--no-user").err


def test_an_id_that_is_taken_is_told_so(cli: CommandLine) -> None:
    cli.add("x", "--id", "fact_1")
    refused = cli("add", "y", "--id", "fact_1")
    assert refused.code == 4
    assert refused.err == "Error: there is a fact fact_1 already\nHint: `deermem update fact_1` changes it\n"


def test_a_bad_id_of_a_new_fact_brings_no_hint_on_others(cli: CommandLine) -> None:
    assert "Hint" not in cli("add", "x", "--id", "a/b").err
    assert "Hint: `deermem list` shows the ids" in cli("get", "a/b").err


@pytest.mark.parametrize(
    "arguments", [["--cursor", "a b"], ["--cursor", "coder/a b", "--all-agents"]], ids=str
)
def test_a_bad_cursor_is_called_one(cli: CommandLine, arguments: list[str]) -> None:
    refused = cli("list", *arguments)
    assert refused.code == 2
    assert refused.err.startswith("Error: the cursor is not one of `list")


def test_a_fact_that_is_named_twice_is_deleted_once(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    assert cli.ok("delete", fact_id, fact_id).lines == [f"Deleted {fact_id}"]
    again = cli.add("x")
    cli.ok("delete", again, again, "--expected-revision", "1")


def test_a_file_in_the_wrong_shard_is_told_where_it_belongs(cli: CommandLine) -> None:
    file = cli.file_of(cli.add("x"))
    wrong = file.parent.with_name("00" if file.parent.name != "00" else "01") / file.name
    wrong.parent.mkdir()
    shutil.copy(file, wrong)
    assert f"{file} is there already" in cli("list").err
    file.unlink()
    assert f"Hint: nothing was changed; move it to {file}\n" in cli("list").err
    wrong.rename(file)
    cli.ok("list")


def test_a_store_without_tokens_says_so(cli: CommandLine) -> None:
    pytest.importorskip("fastapi")
    listed = cli.ok("token", "list")
    assert (listed.out, listed.err) == ("", "No tokens.\n")


def test_a_refusal_of_the_system_names_the_whole_path(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact_id = cli.add("x")
    file = cli.file_of(fact_id)
    # A process of root may do everything, so the answer of the system is planted.
    monkeypatch.setattr(os, "access", lambda path, _: str(path) != str(file))
    error = PermissionError(13, "Permission denied", file.name)
    options = ScopeOptions(user_id="default")
    report = improved(report_of(error, str(cli.root)), error, options, str(cli.root))
    assert report.message == f"Permission denied: {file}"
    assert report.hint == "`deermem status --user-id default` says who may write here"


def test_a_store_that_nobody_may_look_into_is_named(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.root.mkdir()
    monkeypatch.setattr(os, "access", lambda path, _: str(path) != str(cli.root))
    error = PermissionError(13, "Permission denied", "users")
    report = improved(report_of(error, str(cli.root)), error, ScopeOptions(user_id="default"), str(cli.root))
    assert report.message == f"Permission denied: {cli.root}"


def test_a_refusal_of_a_new_file_names_the_directory(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = cli.file_of(cli.add("x")).parent
    monkeypatch.setattr(os, "access", lambda path, _: str(path) != str(shard))
    error = PermissionError(13, "Permission denied", "staged.md")
    report = improved(report_of(error, str(cli.root)), error, ScopeOptions(user_id="default"), str(cli.root))
    assert report.message == f"Permission denied: {shard}"


def test_a_damaged_file_leads_to_a_check_of_the_same_memory(cli: CommandLine) -> None:
    fact_id = cli.add("x", "--user-id", "bob")
    cli.file_of(fact_id, "--user-id", "bob").write_bytes(b"no fact")
    refused = cli("get", fact_id, "--user-id", "bob")
    assert refused.code == 5
    assert "or see with `deermem check --user-id bob` what a repair would do" in refused.err
