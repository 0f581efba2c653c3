"""Bad input is refused by name, nothing is written, and the next command works."""

from __future__ import annotations

import os

import pytest

from tests.cli.conftest import CommandLine

LONG_ID = "a" * 300
BAD_IDS = [LONG_ID, "../x", "/etc/passwd", "a/b", "a\\b", ".", "..", "", "x\n", "x ", "\udcff", "ä", "x\x00"]
BAD_AGENTS = ["", "..", "a/b", "x" * 65, "x\n", "a_b", "ä", "\udcff"]
BAD_USERS = ["", "x" * 201, "\udcff"]


def short(value: object) -> str:
    return ascii(value)[:12]


def assert_refused(cli: CommandLine, *arguments: str, names: str, stdin: bytes = b"") -> None:
    kept = cli.add("kept")
    before = cli.tree()
    refused = cli(*arguments, stdin=stdin)
    assert refused.code == 2
    assert refused.out == ""
    assert names in refused.err
    assert "Traceback" not in refused.err
    assert cli.tree() == before
    assert cli.ok("get", kept, "-q").out == "kept\n"


@pytest.mark.parametrize("fact_id", BAD_IDS, ids=short)
@pytest.mark.parametrize("command", ["get", "update", "adopt", "delete", "path", "add"])
def test_a_bad_fact_id(cli: CommandLine, command: str, fact_id: str) -> None:
    arguments = {"add": ["add", "x", "--id", fact_id], "update": ["update", "--title", "x", "--", fact_id]}
    assert_refused(cli, *arguments.get(command, [command, "--", fact_id]), names="the fact id")


@pytest.mark.parametrize("agent", BAD_AGENTS, ids=short)
@pytest.mark.parametrize("command", [["add", "x"], ["list"], ["clear", "--yes"]], ids=lambda each: each[0])
def test_a_bad_agent_name(cli: CommandLine, command: list[str], agent: str) -> None:
    assert_refused(cli, *command, f"--agent={agent}", names="the agent name")


@pytest.mark.parametrize("user", BAD_USERS, ids=short)
@pytest.mark.parametrize("command", [["add", "x"], ["list"], ["status"], ["summaries", "show"]])
def test_a_bad_user_id(cli: CommandLine, command: list[str], user: str) -> None:
    assert_refused(cli, *command, f"--user-id={user}", names="the user id")


@pytest.mark.parametrize("content", ["", "  \n\t ", "\udcff"], ids=short)
def test_bad_content(cli: CommandLine, content: str) -> None:
    assert_refused(cli, "add", content, names="the content")


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"a\xff", b"x" * 1_000_001, b"x" * 50_000_000],
    ids=["empty", "blank", "no UTF-8", "1 MB", "50 MB"],
)
def test_bad_content_on_standard_input(cli: CommandLine, data: bytes) -> None:
    assert_refused(cli, "add", "-", names="the content", stdin=data)


def test_white_space_around_the_content_does_not_count_against_its_limit(cli: CommandLine) -> None:
    assert cli("add", "-", stdin=b" " * 900_000 + b"x" * 1_000_000).code == 0


@pytest.mark.parametrize(
    "confidence",
    ["nan", "inf", "-inf", "-0.1", "1.01", "1e400", "high", "", "0,5", "0x1", "90%"],
)
def test_a_bad_confidence(cli: CommandLine, confidence: str) -> None:
    assert_refused(
        cli, "add", "x", f"--confidence={confidence}", names="--confidence must be a number from 0 to 1"
    )


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [
        ("title", "two\nlines", "the title"),
        ("title", "x" * 161, "the title"),
        ("title", "\udcff", "the title"),
        ("category", "", "the category"),
        ("category", "x" * 4_001, "the category"),
        ("category", "\udcff", "the category"),
        ("topic", "", "a topic"),
        ("topic", "\udcff", "a topic"),
        ("source", "x" * 4_001, "the source"),
        ("source", "\udcff", "the source"),
    ],
    ids=short,
)
def test_a_bad_field(cli: CommandLine, option: str, value: str, name: str) -> None:
    assert_refused(cli, "add", "x", f"--{option}={value}", names=name)


@pytest.mark.parametrize("revision", ["0", "-1", "x", "1.5"])
def test_a_bad_expected_revision(cli: CommandLine, revision: str) -> None:
    assert_refused(
        cli, "update", "fact_1", "--title=x", f"--expected-revision={revision}", names="--expected-revision"
    )


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "", "1.5", "9" * 5_000], ids=short)
@pytest.mark.parametrize("command", [["list"], ["search", "x"]], ids=lambda each: each[0])
def test_a_bad_limit(cli: CommandLine, command: list[str], limit: str) -> None:
    assert_refused(cli, *command, f"--limit={limit}", names="--limit must be a whole number from 1 to 1,000")


@pytest.mark.parametrize("query", ["", "  ", "\udcff", "x" * 100_001], ids=short)
def test_a_bad_query(cli: CommandLine, query: str) -> None:
    assert_refused(cli, "search", query, names="the query")


def test_a_summary_that_is_too_long(cli: CommandLine) -> None:
    assert_refused(cli, "summaries", "set", "topOfMind", "-", names="topOfMind", stdin=b"x" * 100_001)


def test_a_bad_lock_timeout_in_the_environment(cli: CommandLine) -> None:
    cli.monkeypatch.setenv("DEERMEM_LOCK_TIMEOUT", "soon")
    refused = cli("list")
    assert refused.code == 2
    assert "DEERMEM_LOCK_TIMEOUT" in refused.err


def test_a_directory_where_a_fact_should_be(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    file = cli.file_of(fact_id)
    file.unlink()
    file.mkdir()
    for command in (["get", fact_id], ["delete", fact_id], ["list"]):
        refused = cli(*command)
        assert refused.code == 5
        assert str(file) in refused.err
    cli.ok("add", "the next one works", "--agent", "other")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_link_out_of_the_bucket_is_not_followed(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    file = cli.file_of(fact_id)
    outside = cli.root.parent / "outside.md"
    file.rename(outside)
    file.symlink_to(outside)
    for command in (["get", fact_id], ["delete", fact_id], ["update", fact_id, "--title", "y"]):
        refused = cli(*command)
        assert refused.code == 5
        assert str(file) in refused.err
    assert outside.read_bytes()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    cli.file_of(fact_id).chmod(0)
    refused = cli("get", fact_id)
    assert refused.code == 1
    assert fact_id in refused.err


def test_a_storage_root_that_is_a_file(cli: CommandLine) -> None:
    cli.root.write_bytes(b"not a directory")
    for command in (["add", "x"], ["list"], ["status"], ["init"]):
        refused = cli(*command)
        assert refused.code == 2
        assert str(cli.root) in refused.err
    assert cli.root.read_bytes() == b"not a directory"
