"""`erase-user` needs the user to be named, asks, and says what it removed and what it kept."""

from __future__ import annotations

import pytest

from tests.cli.conftest import CommandLine


@pytest.fixture
def stored(cli: CommandLine) -> CommandLine:
    cli.add("one", "--user-id", "alice")
    cli.add("two", "--user-id", "alice", "--agent", "coder")
    cli.add("three", "--user-id", "bob")
    (cli.root / "users/alice/threads").mkdir()
    (cli.root / "users/alice/threads/1.json").write_bytes(b"{}")
    return cli


def of_alice(cli: CommandLine) -> dict[str, bytes]:
    return {path: data for path, data in cli.tree().items() if "/alice/" in path}


def test_what_is_deermems_goes_and_what_is_the_hosts_is_named(stored: CommandLine) -> None:
    result = stored.ok("erase-user", "--user-id", "alice", "--yes")
    assert result.lines == [
        "Erased the user alice: 2 facts of __default__, coder, 4 files in all",
        "kept, of the host: users/alice/threads/",
    ]
    assert "Beyond reach: backups and exports" in result.err
    assert of_alice(stored) == {"users/alice/threads/1.json": b"{}"}
    assert stored.ok("list", "--user-id", "bob", "-q").lines


def test_a_dry_run_names_every_file_and_changes_none(stored: CommandLine) -> None:
    before = stored.tree()
    planned = stored.ok("erase-user", "--user-id", "alice", "--dry-run", "--json").json
    shown = stored.ok("erase-user", "--user-id", "alice", "--dry-run").lines
    assert stored.tree() == before
    assert planned["dryRun"]
    assert planned["facts"] == 2
    assert [f"would remove {path}" for path in planned["removed"]] == shown[1:-1]
    done = stored.ok("erase-user", "--user-id", "alice", "--yes", "--json").json
    assert set(planned["removed"]) <= set(done["removed"])
    assert done["kept"] == planned["kept"] == ["users/alice/threads/"]
    assert (done["userId"], done["directory"], done["directoryRemoved"]) == ("alice", "users/alice", False)


def test_the_directory_goes_when_nothing_of_the_host_is_in_it(stored: CommandLine) -> None:
    assert stored.ok("erase-user", "--user-id", "bob", "--yes", "--json").json["directoryRemoved"]
    assert not (stored.root / "users/bob").exists()
    assert stored.ok("status", "--json").json["users"] == ["alice"]


@pytest.mark.parametrize("arguments", [(), ("--yes",), ("--dry-run",)])
def test_a_user_who_is_not_named_is_not_erased(stored: CommandLine, arguments: tuple[str, ...]) -> None:
    stored.monkeypatch.setenv("DEERMEM_USER_ID", "alice")
    before = stored.tree()
    result = stored("erase-user", *arguments)
    assert result.code == 2
    assert "--user-id" in result.err
    assert stored.tree() == before


def test_without_a_terminal_and_without_yes_nothing_is_erased(stored: CommandLine) -> None:
    before = stored.tree()
    result = stored("erase-user", "--user-id", "alice", stdin="y\n")
    assert result.code == 2
    assert "--yes" in result.err
    assert stored.tree() == before


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("no\n", 1), ("\n", 1), ("", 1)])
def test_a_person_is_asked(stored: CommandLine, answer: str, code: int) -> None:
    result = stored("erase-user", "--user-id", "alice", stdin=answer, terminal=True)
    assert result.code == code
    assert "Erase the user alice for good: 2 facts of __default__, coder, 3 files in all? [y/N]" in result.err
    assert ("users/alice/memory.json" in stored.tree()) == (code != 0)


def test_a_mistyped_user_is_told_of(stored: CommandLine) -> None:
    result = stored.ok("erase-user", "--user-id", "alcie", "--yes")
    assert result.out == "Nothing of the user alcie is stored\n"
    assert "users there are: alice, bob" in result.err


def test_the_search_index_that_the_environment_names_has_to_forget(stored: CommandLine) -> None:
    stored.monkeypatch.setenv("DEERMEM_RETRIEVAL_ADAPTER", "tests.maintenance.erase.test_erasure:Forgetful")
    result = stored("erase-user", "--user-id", "alice", "--yes")
    assert result.code == 8
    assert "Forgetful" in result.err
    stored.monkeypatch.delenv("DEERMEM_RETRIEVAL_ADAPTER")
    assert stored.ok("erase-user", "--user-id", "alice", "--yes", "--json").json["agents"]


def test_an_erased_user_can_be_written_again(stored: CommandLine) -> None:
    stored.ok("erase-user", "--user-id", "alice", "--yes")
    stored.add("anew", "--user-id", "alice")
    document = stored.ok("status", "--user-id", "alice", "--json").json
    assert document["memories"][0]["facts"] == 1
