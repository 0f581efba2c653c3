"""Commands that read and change facts open the storage that the environment names; others say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from deermem import ChangeSet, Delta, InvalidInputError, MemoryRepository, UserId, View
from tests.cli.conftest import CommandLine

NAME = f"{__name__}:Watched"


class Watched(MemoryRepository):
    """Notes which seams a command passes, and refuses what it is told to."""

    passed: ClassVar[set[str]] = set()
    refuses: ClassVar[str] = ""

    def before_read(self, user: UserId) -> None:
        self._note("before_read", user)

    def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:  # noqa: ARG002 - a seam
        self._note("before_commit", user)
        return changes

    def after_commit(self, user: UserId, delta: Delta) -> None:  # noqa: ARG002 - a seam
        self._note("after_commit", user)

    def _note(self, seam: str, user: UserId) -> None:
        assert user.bucket == "default"
        self.passed.add(seam)
        if seam == self.refuses:
            raise InvalidInputError("content", "is not for this command")


@pytest.fixture
def watched(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A command line with two facts, a summary and a document; from here on `Watched` is named."""
    cli.add("tea", "--id", "x")
    cli.add("water", "--id", "z")
    cli.ok("summaries", "set", "topOfMind", "drinks")
    cli.ok("export", "--out", str(cli.root.parent / "document.json"))
    cli.ok("clear", "--yes")
    cli.add("tea", "--id", "x")
    cli.add("coffee", "--id", "y")
    monkeypatch.setenv("DEERMEM_STORAGE_CLASS", NAME)
    monkeypatch.setattr(Watched, "passed", set())
    monkeypatch.chdir(cli.root.parent)
    return cli


READS = ("get x", "list", "search tea", "search tea --all-agents", "export", "summaries show")
WRITES = (
    "add milk",
    "update x --content juice",
    "adopt x",
    "delete x y",
    "clear --yes",
    "clear --all --yes",
    "import document.json --yes",
    "summaries set topOfMind work",
    "undo --yes",
)
PLAIN = ("status", "check", "explain", "locks", "backup --out saved.tar.gz")
PLAIN_WRITES = ("erase-user --user-id default --yes", "check --repair --yes", "restore saved.tar.gz")
NO_STORE = {"init", "path", "demo", "completion", "token", "doctor", "fsck", "migrate", "serve", "mcp"}


@pytest.mark.parametrize("command", READS)
def test_a_command_that_reads_facts_can_be_refused(
    watched: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    assert watched.ok(*command.split()).err == ""
    assert Watched.passed == {"before_read"}
    monkeypatch.setattr(Watched, "refuses", "before_read")
    result = watched(*command.split())
    assert (result.code, result.out) == (2, "")
    assert "the content is not for this command" in result.err


@pytest.mark.parametrize("command", WRITES)
def test_a_command_that_changes_memory_passes_before_and_after(watched: CommandLine, command: str) -> None:
    watched.ok(*command.split())
    assert {"before_commit", "after_commit"} <= Watched.passed


@pytest.mark.parametrize("command", WRITES)
def test_a_command_that_changes_memory_can_be_refused(
    watched: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    before = watched.tree()
    monkeypatch.setattr(Watched, "refuses", "before_commit")
    result = watched(*command.split())
    assert (result.code, result.out) == (2, "")
    assert watched.tree() == before


@pytest.mark.parametrize("command", WRITES)
def test_a_command_that_may_not_read_has_changed_nothing_if_it_fails(
    watched: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    before = watched.tree()
    monkeypatch.setattr(Watched, "refuses", "before_read")
    result = watched(*command.split())
    assert result.code == 0 or (result.code == 2 and watched.tree() == before)


def test_a_migration_is_told_and_its_way_back_says_that_it_is_not(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {
        "version": "1.0",
        "lastUpdated": "",
        "user": {},
        "history": {},
        "facts": [{"id": "x", "content": "tea"}],
    }
    path = cli.root / "users" / "default" / "memory.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(old), "utf-8")
    monkeypatch.setenv("DEERMEM_STORAGE_CLASS", NAME)
    monkeypatch.setattr(Watched, "passed", set())
    assert NAME not in cli.ok("migrate", "--user-id", "default").err
    assert Watched.passed == {"after_commit"}
    Watched.passed.clear()
    assert (
        f"{NAME} (DEERMEM_STORAGE_CLASS) is neither"
        in cli.ok("migrate", "--user-id", "default", "--rollback").err
    )
    assert Watched.passed == set()


@pytest.mark.parametrize("command", PLAIN)
def test_a_command_that_looks_at_files_passes_nothing(watched: CommandLine, command: str) -> None:
    result = watched.ok(*command.split())
    assert NAME not in result.err
    assert Watched.passed == set()


@pytest.mark.parametrize("command", PLAIN)
def test_a_store_is_looked_at_and_saved_where_its_class_is_missing(
    watched: CommandLine, command: str
) -> None:
    watched.monkeypatch.setenv("DEERMEM_STORAGE_CLASS", "no.such.Class")
    watched.ok(*command.split())


@pytest.mark.parametrize("command", PLAIN_WRITES)
def test_a_command_that_changes_files_says_that_it_passes_the_storage_by(
    watched: CommandLine, command: str
) -> None:
    watched.ok("backup", "--out", "saved.tar.gz")
    result = watched.ok(*command.split())
    assert f"This works on files: {NAME} (DEERMEM_STORAGE_CLASS) is neither asked nor told.\n" in result.err
    assert Watched.passed == set()
    watched.monkeypatch.delenv("DEERMEM_STORAGE_CLASS")
    watched.ok("add", "more")
    assert "This works on files" not in watched(*command.split()).err


def test_every_command_is_known_to_pass_or_not() -> None:
    from deermem.cli.commands import COMMANDS

    told = {command.split()[0] for command in (*READS, *WRITES, *PLAIN, *PLAIN_WRITES)}
    assert told | NO_STORE == {listed.name for listed in COMMANDS}
    assert told & NO_STORE == set()


def test_status_names_the_class(watched: CommandLine) -> None:
    assert f"storage class {NAME}" in watched.ok("status").lines
    assert watched.ok("status", "--json").json["storageClass"] == NAME
    watched.monkeypatch.delenv("DEERMEM_STORAGE_CLASS")
    assert "storage class" not in watched.ok("status").out
    assert "storageClass" not in watched.ok("status", "--json").json


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no.such.Class", "'no.such.Class' cannot be imported: ModuleNotFoundError: No module named 'no'"),
        ("json.JSONDecoder", "'json.JSONDecoder' is no subclass of MemoryRepository"),
        ("faulty.Storage", "'faulty.Storage' cannot be imported: SyntaxError: invalid syntax"),
    ],
)
@pytest.mark.parametrize("command", ["list", "add tea"])
def test_a_class_that_cannot_be_used_is_refused_and_not_passed_by(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str, command: str
) -> None:
    tmp_path.joinpath("faulty.py").write_text("class Storage(:\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("DEERMEM_STORAGE_CLASS", name)
    result = cli(*command.split())
    assert result.code == 2
    assert result.err.startswith(f"Error: DEERMEM_STORAGE_CLASS {reason}")
    assert "installed beside deermem" in result.err
    assert not cli.root.exists()


def test_the_class_gets_the_settings_of_the_environment(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEERMEM_STORAGE_CLASS", NAME)
    monkeypatch.setenv("DEERMEM_MANIFEST_FILENAME", "summary.json")
    monkeypatch.setenv("DEERMEM_LOCK_TIMEOUT", "1")
    monkeypatch.setenv("DEERMEM_UNDO_DAYS", "0")
    made: list[Watched] = []

    def note(store: Watched, *arguments: object, **settings: object) -> None:
        MemoryRepository.__init__(store, *arguments, **settings)  # type: ignore[arg-type]
        made.append(store)

    monkeypatch.setattr(Watched, "__init__", note)
    cli.ok("add", "tea")
    (store,) = made
    assert (store.engine.lock_timeout, store.engine.undo_days) == (1, 0)
    assert store.engine.manifest_name == "summary.json"
    assert Path(store.storage_root) == cli.root.resolve()
