"""`export` and `import` carry an agent's memory in the historical document."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.support.systems import needs_modes


@pytest.fixture
def exported(cli: CommandLine, tmp_path: Path) -> Path:
    """A document of two facts and a summary; the store it came from."""
    cli.add("one", "--id", "one")
    cli.add("two", "--id", "two", "--topic", "x")
    cli.ok("summaries", "set", "topOfMind", "Much.")
    path = tmp_path / "memory-of-default.json"
    assert cli.ok("export", "--out", str(path)).out == f"Wrote 2 facts to {path}\n"
    return path


def test_an_exported_document_is_that_of_the_store(cli: CommandLine, exported: Path) -> None:
    document = json.loads(exported.read_text("utf-8"))
    assert document == cli.ok("export").json == cli.ok("export", "--json", "--out", "-").json
    assert [fact["id"] for fact in document["facts"]] == ["one", "two"]
    assert document["user"]["topOfMind"]["summary"] == "Much."


@needs_modes
def test_an_exported_document_is_read_by_its_owner_alone(exported: Path) -> None:
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600


def test_a_file_that_is_there_is_replaced_only_when_that_is_said(cli: CommandLine, exported: Path) -> None:
    before = exported.read_bytes()
    cli.add("three")
    assert cli("export", "--out", str(exported)).code == 2
    assert exported.read_bytes() == before
    cli.ok("export", "--out", str(exported), "--force")
    assert len(json.loads(exported.read_bytes())["facts"]) == 3
    assert not list(exported.parent.glob(".*"))


def test_an_imported_document_is_what_was_exported(cli: CommandLine, exported: Path) -> None:
    result = cli.ok("import", str(exported), "--user-id", "bob", "--agent", "coder", "--yes")
    assert result.out.startswith("Imported into bob/coder: 2 come, 0 change, 0 stay, 0 go;")
    original = json.loads(exported.read_bytes())
    copy = cli.ok("export", "--user-id", "bob", "--agent", "coder").json
    assert copy["user"] == original["user"]
    for fact, wanted in zip(copy["facts"], original["facts"], strict=True):
        for key in ("id", "content", "topics", "createdAt", "confidence", "source"):
            assert fact[key] == wanted[key]


def test_what_comes_changes_stays_and_goes_is_counted(cli: CommandLine, exported: Path) -> None:
    cli.ok("update", "one", "--content", "changed")
    cli.add("three")
    planned = cli.ok("import", str(exported), "--dry-run", "--json").json
    assert planned["facts"] == {"come": 0, "change": 1, "stay": 1, "go": 1}
    assert planned["dryRun"]
    done = cli.ok("import", str(exported), "--yes", "--json").json
    assert done["facts"] == planned["facts"]
    assert done["revision"] == planned["revision"] + 1
    again = cli.ok("import", str(exported), "--yes", "--json").json
    assert again == {**done, "facts": {"come": 0, "change": 0, "stay": 2, "go": 0}}


def test_a_dry_run_writes_nothing(cli: CommandLine, exported: Path) -> None:
    before = cli.tree()
    cli.ok("import", str(exported), "--agent", "other", "--dry-run")
    assert cli.tree() == before


def test_standard_input_is_read(cli: CommandLine, exported: Path) -> None:
    cli.ok("import", "-", "--agent", "coder", "--yes", stdin=exported.read_bytes())
    assert cli.ok("list", "--agent", "coder", "-q").lines == ["one", "two"]


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_it_asks_and_does_what_was_shown(cli: CommandLine, exported: Path, answer: str, code: int) -> None:
    result = cli("import", str(exported), "--agent", "coder", stdin=answer, terminal=True)
    assert result.code == code
    assert "(facts: 2 come, 0 change, 0 stay, 0 go)? [y/N] " in result.err
    assert len(cli.ok("list", "--agent", "coder", "-q").lines) == (0 if code else 2)


def test_without_a_terminal_nothing_is_imported(cli: CommandLine, exported: Path) -> None:
    before = cli.tree()
    refused = cli("import", str(exported), "--agent", "coder", stdin="y\n")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert cli.tree() == before


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"\xff", "is not UTF-8"),
        (b'{"facts": [{}]}', "facts[0].content"),
        (b'{"facts": [{"id": "../x", "content": "x"}]}', "facts[0].id"),
        (b'{"facts": 1}', "facts must be a list"),
        (b'{"version": "9"}', "version is not one of"),
        (b'{"data": {"facts": []}}', "the document must have at least one of version, user, history, facts"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"user": {"workContext": {"summary": 1}}}', "user.workContext"),
    ],
)
def test_a_document_that_is_none_is_refused(cli: CommandLine, tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    refused = cli("import", str(path), "--yes")
    assert refused.code == 2, refused
    assert told in refused.err
    assert not cli.root.exists()


def test_a_document_of_version_1_is_imported(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text('{"version": "1.0", "facts": [{"content": "Of old."}]}', "utf-8")
    cli.ok("import", str(path), "--yes")
    assert [fact["content"] for fact in cli.ok("export").json["facts"]] == ["Of old."]
