"""`init` and `path`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


def test_init_makes_the_storage_root_and_says_how_to_go_on(cli: CommandLine) -> None:
    made = cli.ok("init")
    assert cli.root.is_dir()
    assert str(cli.root) in made.out
    assert "deermem add" in made.err
    assert list(cli.tree()) == []


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_init_keeps_everybody_else_out(cli: CommandLine) -> None:
    cli.ok("init")
    assert cli.root.stat().st_mode & 0o777 == 0o700


def test_init_leaves_a_store_as_it_is(cli: CommandLine) -> None:
    assert cli.ok("init", "--json").json == {"storageRoot": str(cli.root), "created": True}
    cli.add("x")
    before = cli.tree()
    assert cli.ok("init", "--json").json == {"storageRoot": str(cli.root), "created": False}
    assert cli.tree() == before


def test_path_prints_where_the_memory_is_although_nothing_is_there(cli: CommandLine, tmp_path: Path) -> None:
    assert cli.ok("path").out == f"{cli.root}\n"
    assert cli.ok("path", "--storage-path", str(tmp_path / "x" / ".." / "y")).out == f"{tmp_path / 'y'}\n"
    assert cli.ok("path", "--json").json == {"path": str(cli.root)}
    assert not cli.root.exists()


def test_path_of_a_fact_is_its_file_also_when_it_cannot_be_read(cli: CommandLine) -> None:
    fact_id = cli.add("x", "--user-id", "a@b.c", "--agent", "coder")
    file = cli.file_of(fact_id, "--user-id", "a@b.c", "--agent", "coder")
    assert f"id: {fact_id}\n" in file.read_text("utf-8")
    file.write_bytes(b"\xff")
    assert cli.file_of(fact_id, "--user-id", "a@b.c", "--agent", "coder") == file


def test_path_of_an_absent_fact_is_not_found(cli: CommandLine) -> None:
    assert cli("path", "fact_absent").code == 3


def test_an_agent_without_a_fact_has_no_path(cli: CommandLine) -> None:
    assert cli("path", "--agent", "coder").code == 2
