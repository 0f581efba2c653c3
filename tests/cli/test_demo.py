"""`demo` and the sample that it loads."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from deermem.cli.tour import changes_of, read_sample
from tests.cli.conftest import CommandLine


def test_the_sample_has_several_users_agents_and_languages() -> None:
    sample = read_sample()
    assert len(sample) >= 3
    assert sum(len(memory["agents"]) for memory in sample) >= 6
    text = "".join(
        fact["content"] for memory in sample for facts in memory["agents"].values() for fact in facts
    )
    for alphabet in ("a", "ä", "é", "喜", "の", "ا", "त", "☕"):  # noqa: RUF001 - one letter of each
        assert alphabet in text


def test_every_user_of_the_sample_is_a_valid_change_set() -> None:
    for memory in read_sample():
        assert changes_of(memory).upserts


def test_demo_shows_each_operation_the_files_and_one_fact(cli: CommandLine) -> None:
    document = cli.ok("demo", "--json").json
    did = " ".join(step["did"].split()[0] for step in document["steps"])
    assert did == "Loaded Added Updated Searched Searched Cleared"
    assert all(step["outcome"] for step in document["steps"])
    assert document["fact"]["path"] in document["files"]
    assert document["fact"]["text"].startswith("---\nid: fact_5d0c41aa\n")
    assert not any("/research-agent/" in path for path in document["files"])


def test_demo_leaves_nothing_behind_and_touches_no_store(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cli.ok("demo")
    assert list(tmp_path.iterdir()) == []


def test_demo_keeps_its_files_where_it_is_told_to_put_them(cli: CommandLine, tmp_path: Path) -> None:
    root = tmp_path / "kept"
    document = cli.ok("demo", "--storage-path", str(root), "--json").json
    assert document["kept"] is True
    assert (root / document["fact"]["path"]).read_text("utf-8") == document["fact"]["text"]
    assert len(cli.ok("status", "--storage-path", str(root), "--json").json["users"]) == 3


def test_demo_does_not_write_to_a_store_that_is_in_use(cli: CommandLine) -> None:
    cli.add("x", "--user-id", "alice@example.com")
    before = cli.tree()
    assert cli("demo", "--storage-path", str(cli.root)).code == 2
    assert cli.tree() == before
