"""`explain` says where a memory lies, why there, and what the next access will do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.support.stores import ALICE, draft, interrupt, tree
from tests.support.watched import call_of


def explained(cli: CommandLine, *arguments: str) -> dict[str, object]:
    """Returns the document, and makes sure that nothing was changed for it."""
    before = tree(cli.root)
    document = cli.ok("explain", "--json", *arguments).json
    assert tree(cli.root) == before
    assert isinstance(document, dict)
    return document


def test_a_memory_that_is_well(cli: CommandLine) -> None:
    cli.add("one", "--user-id", "a@b.c", "--agent", "coder")
    cli.add("two", "--user-id", "a@b.c", "--agent", "coder")
    cli.ok("clear", "--yes", "--user-id", "a@b.c")
    found = explained(cli, "--user-id", "a@b.c", "--agent", "Coder")
    assert found["paths"] == {
        "directory": "users/a-b-c-d648b243a3e817ea",
        "manifest": "users/a-b-c-d648b243a3e817ea/memory.json",
        "lock": "users/a-b-c-d648b243a3e817ea/.memory.lock",
        "journal": "users/a-b-c-d648b243a3e817ea/.memory.journal.json",
        "fences": "users/a-b-c-d648b243a3e817ea/.memory.fences.json",
        "staged": "users/a-b-c-d648b243a3e817ea/.recovery",
        "facts": "users/a-b-c-d648b243a3e817ea/agents/coder/facts",
        "erasure": ".erased/59db8e55bd5116fc7e54fb2281795004.json",
    }
    assert (found["agentName"], found["version"], found["revision"], found["facts"]) == ("coder", "2.0", 3, 2)
    assert found["fences"] == {"everything": 0, "agents": {"__default__": 3}}
    status = (cli.root / "users/a-b-c-d648b243a3e817ea/memory.json").stat()
    assert found["cacheToken"] == {"mtimeNs": status.st_mtime_ns, "size": status.st_size, "revision": 3}
    assert "journal" not in found
    assert found["toMigrate"] == []


def test_a_user_who_is_not_there(cli: CommandLine) -> None:
    document = cli.ok("explain", "--json").json
    assert document["exists"] is False
    assert "revision" not in document
    assert not cli.root.exists()


@pytest.mark.parametrize(
    ("arguments", "root_from", "user_from"),
    [
        ((), "DEERMEM_DATA_DIR", "the default"),
        (("--storage-path", "."), "--storage-path", "the default"),
        (("--user-id", "x"), "DEERMEM_DATA_DIR", "--user-id"),
        (("--no-user",), "DEERMEM_DATA_DIR", "--no-user"),
    ],
)
def test_it_says_what_named_the_store_and_the_user(
    cli: CommandLine, arguments: tuple[str, ...], root_from: str, user_from: str
) -> None:
    document = cli.ok("explain", "--json", *arguments).json
    assert (document["storageRootFrom"], document["userIdFrom"]) == (root_from, user_from)


def test_the_environment_and_the_default_are_told_apart(cli: CommandLine, tmp_path: Path) -> None:
    cli.monkeypatch.setenv("DEERMEM_USER_ID", "x")
    cli.monkeypatch.delenv("DEERMEM_DATA_DIR")
    cli.monkeypatch.setenv("HOME", str(tmp_path / "home"))
    document = cli.ok("explain", "--json").json
    assert (document["storageRootFrom"], document["userIdFrom"]) == ("the default", "DEERMEM_USER_ID")
    assert document["storageRoot"].endswith("home/.deermem")


def test_an_interrupted_transaction_and_what_becomes_of_it(cli: CommandLine) -> None:
    cli.add("one", "--user-id", "alice")
    interrupt(cli.root, lambda store: store.upsert_fact(ALICE, draft("late")), call_of("rename", "late.md"))
    found = explained(cli, "--user-id", "alice")
    assert found["journal"] == (
        "a change from revision 1 to 2: the next access completes it (files beside memory.json: "
        "1 written, 0 removed)"
    )
    assert found["revision"] == 1
    cli.ok("list", "--user-id", "alice")
    assert "journal" not in explained(cli, "--user-id", "alice")


@pytest.mark.parametrize(
    ("state", "told"), [("prepared", "it is rolled back"), ("committed", "it is complete")]
)
def test_a_transaction_of_the_predecessor(cli: CommandLine, state: str, told: str) -> None:
    cli.add("one", "--user-id", "alice")
    journal = {
        "operationId": "op",
        "state": state,
        "agentName": None,
        "expectedRevision": 1,
        "nextRevision": 2,
    }
    path = cli.root / "users/alice/.memory.journal.json"
    path.write_text(json.dumps({**journal, "factIds": [], "oldEntries": {}}))
    text = explained(cli, "--user-id", "alice")["journal"]
    assert isinstance(text, str)
    assert text.startswith("a change of the predecessor from revision 1 to 2")
    assert told in text


def test_files_of_version_1_wait_to_be_migrated(cli: CommandLine) -> None:
    bucket = cli.root / "users/alice"
    (bucket / "agents/coder").mkdir(parents=True)
    for name in ("memory.json", "agents/coder/memory.json"):
        (bucket / name).write_text('{"version": "1.0", "facts": []}')
    found = explained(cli, "--user-id", "alice")
    assert found["version"] == "1.0"
    assert found["toMigrate"] == ["users/alice/memory.json", "users/alice/agents/coder/memory.json"]


def test_what_cannot_be_read_is_reported_beside_the_rest(cli: CommandLine) -> None:
    cli.add("one", "--user-id", "alice")
    (cli.root / "users/alice/.memory.journal.json").write_text("{")
    result = cli("explain", "--user-id", "alice", "--json")
    assert result.code == 5
    assert (result.json["journal"], result.json["facts"]) == ("cannot be read", 1)
    assert ".memory.journal.json" in result.json["problems"][0]["message"]
    assert cli("explain", "--user-id", "alice").lines[1] == "user          alice (from --user-id)"


def test_an_erased_user_is_told_of(cli: CommandLine) -> None:
    cli.add("one", "--user-id", "alice")
    cli.ok("erase-user", "--user-id", "alice", "--yes")
    found = explained(cli, "--user-id", "alice")
    assert (found["exists"], found["erasedAt"]) == (False, 2)
    assert cli.ok("explain", "--user-id", "alice", "-q").out == f"{cli.root}/users/alice\n"
