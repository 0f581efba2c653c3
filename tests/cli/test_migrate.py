"""`migrate`: what it prints, how it exits, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandLine
from tests.legacy.stores import STORES
from tests.migration.runs import NOT_TO_BE_MIGRATED, put_users, stamped_tree
from tests.migration.v1 import FACT, OTHER, agent_document, document, put
from tests.support.stores import manifest

FIRST = "Before a migration: stop the old application, and take a snapshot of the whole of {root}"


def put_good_and_bad(root: Path) -> None:
    """Writes a user that migrates, one that does not, and one that is of version 2."""
    put(root, document(FACT, OTHER), user_id="alice")
    put(root, document(FACT, NOT_TO_BE_MIGRATED), user_id="bob")


def test_a_run_says_first_what_has_to_be_done_before_and_then_what_became_of_each_user(
    cli: CommandLine,
) -> None:
    put_good_and_bad(cli.root)
    cli.add("A fact of version 2.", "--user-id", "carol")
    done = cli("migrate", "--all-users")
    assert done.code == 1
    assert done.lines == [
        FIRST.format(root=cli.root),
        "alice: migrated (1.0 -> 2.0)",
        "  users/alice/memory.json went to memory.json.v1.bak",
        "  2 facts written",
        "bob: FAILED: users/bob/memory.json: facts[1].content must be a non-empty string",
        "carol: already current",
        "Summary: migrated=1 planned=0 current=1 failed=1",
    ]
    assert done.err == "Hint: --dry-run names every value that stops a user\n"


def test_a_dry_run_names_every_fact_and_why_not_and_writes_nothing(cli: CommandLine) -> None:
    put_good_and_bad(cli.root)
    put(cli.root, agent_document({**FACT, "id": "fact_c"}), "coder", user_id="alice")
    before = stamped_tree(cli.root)
    done = cli("migrate", "--all-users", "--dry-run")
    assert stamped_tree(cli.root) == before
    assert done.code == 1
    assert done.lines[1:] == [
        "alice: would migrate",
        "  users/alice/memory.json goes to memory.json.v1.bak",
        "  users/alice/agents/coder/memory.json goes to memory.json.v1.bak",
        "  writes __default__/fact_a",
        "  writes __default__/fact_b",
        "  writes coder/fact_c",
        "bob: FAILED: users/bob/memory.json: facts[1].content must be a non-empty string",
        "  writes __default__/fact_a",
        "  cannot be migrated: users/bob/memory.json: facts[1].content must be a non-empty string",
        "Summary: migrated=0 planned=1 current=0 failed=1",
    ]


def test_a_dry_run_in_which_all_can_be_migrated_succeeds(cli: CommandLine) -> None:
    put_users(cli.root, "alice", "bob")
    assert cli.ok("migrate", "--all-users", "--dry-run").lines[-1] == (
        "Summary: migrated=0 planned=2 current=0 failed=0"
    )


def test_with_quarantine_the_file_is_named_and_holds_the_value_verbatim(cli: CommandLine) -> None:
    put(cli.root, document(FACT, NOT_TO_BE_MIGRATED))
    done = cli.ok("migrate", "--user-id", "alice", "--on-invalid", "quarantine")
    (named,) = re.findall(r"^  kept in (\S+)$", done.out, re.MULTILINE)
    assert '"text": "{\\"id\\":\\"fact_bad\\",\\"content\\":\\" \\"}"' in (cli.root / named).read_text()
    assert "cannot be migrated: users/alice/memory.json: facts[1].content" in done.out


def test_a_second_run_finds_every_user_current(cli: CommandLine) -> None:
    put_users(cli.root, "alice", "bob")
    cli.ok("migrate", "--all-users", "--jobs", "2")
    assert cli.ok("migrate", "--all-users").lines[1:] == [
        "alice: already current",
        "bob: already current",
        "Summary: migrated=0 planned=0 current=2 failed=0",
    ]


def test_only_the_users_that_are_named_are_migrated(cli: CommandLine) -> None:
    put_users(cli.root, "alice", "bob", "a@b.c")
    put(cli.root, document(FACT), user_id=None)
    done = cli.ok("migrate", "--user-id", "a@b.c", "--user-id", "bob")
    assert [line for line in done.lines if "migrated (" in line] == [
        "a@b.c: migrated (1.0 -> 2.0)",
        "bob: migrated (1.0 -> 2.0)",
    ]
    assert "(no user): migrated (1.0 -> 2.0)" in cli.ok("migrate", "--no-user").lines
    assert manifest(cli.root)["version"] == "1.0"


def test_all_users_include_the_memory_without_a_user(cli: CommandLine) -> None:
    put_users(cli.root, "alice")
    put(cli.root, document(FACT), user_id=None)
    assert cli.ok("migrate", "--all-users").lines[-1] == ("Summary: migrated=2 planned=0 current=0 failed=0")
    assert cli.ok("list", "--no-user", "--quiet").lines == ["fact_a"]


def test_a_user_of_whom_nothing_is_stored_is_told_apart(cli: CommandLine) -> None:
    put_users(cli.root, "alice")
    assert "alcie: already current (nothing is stored)" in cli.ok("migrate", "--user-id", "alcie").lines


def test_an_empty_store_gets_a_hint_and_stays_empty(cli: CommandLine) -> None:
    cli.root.mkdir()
    done = cli.ok("migrate", "--all-users")
    assert done.lines[-1] == "Summary: migrated=0 planned=0 current=0 failed=0"
    assert done.err == f"Hint: there is no memory below {cli.root}\n"
    assert list(cli.root.iterdir()) == []


def test_a_rollback_puts_the_files_back_and_refuses_after_a_change(cli: CommandLine) -> None:
    source = put(cli.root, document(FACT, OTHER))
    before = source.read_bytes()
    cli.ok("migrate", "--user-id", "alice")
    assert cli.ok("migrate", "--rollback", "--user-id", "alice").lines[1:] == [
        "alice: rolled back",
        "  restored users/alice/memory.json",
        "Summary: rolled_back=1 failed=0",
    ]
    assert source.read_bytes() == before
    cli.ok("delete", "fact_b", "--user-id", "alice")
    new = cli.add("New.", "--user-id", "alice")
    refused = cli("migrate", "--rollback", "--user-id", "alice")
    assert refused.code == 1
    (line,) = [line for line in refused.lines if line.startswith("alice: FAILED: ")]
    assert "__default__/fact_b" in line
    assert f"__default__/{new}" in line
    assert manifest(cli.root)["version"] == "2.0"


def test_a_lead_agent_moves_only_when_asked_for(cli: CommandLine) -> None:
    cli.add("Of the lead.", "--agent", "lead-agent", "--id", "fact_1", "--user-id", "alice")
    assert "alice: already current" in cli.ok("migrate", "--all-users").lines
    planned = cli.ok("migrate", "--all-users", "--adopt-lead-agent", "--dry-run").lines
    assert planned[1:3] == ["alice: would migrate", "  moves from lead-agent to __default__: fact_1"]
    assert cli.ok("migrate", "--all-users", "--adopt-lead-agent").lines[1:3] == [
        "alice: migrated (lead-agent -> __default__)",
        "  moved from lead-agent to __default__: fact_1",
    ]
    assert cli.ok("list", "--quiet", "--user-id", "alice").lines == ["fact_1"]


def test_the_document_has_a_user_for_each_line_and_the_summary(cli: CommandLine) -> None:
    put_good_and_bad(cli.root)
    done = cli("migrate", "--all-users", "--json", "--on-invalid", "quarantine")
    assert (done.code, done.err) == (0, "")
    document: dict[str, Any] = done.json
    alice, bob = document.pop("users")
    assert document == {
        "storageRoot": str(cli.root),
        "dryRun": False,
        "rollback": False,
        "summary": {"migrated": 2, "planned": 0, "current": 0, "failed": 0},
    }
    assert alice == {
        "userId": "alice",
        "directory": "users/alice",
        "status": "migrated",
        "fromVersion": "1.0",
        "toVersion": "2.0",
        "revision": 1,
        "sources": ["users/alice/memory.json"],
        "backups": ["users/alice/memory.json.v1.bak"],
        "facts": [{"id": fact_id, "agentName": "__default__"} for fact_id in ("fact_a", "fact_b")],
        "thereAlready": 0,
        "adopted": [],
        "refused": [],
        "quarantine": None,
        "setAside": [],
        "interrupted": False,
    }
    assert bob["refused"] == [
        {
            "path": "users/bob/memory.json",
            "place": "facts[1]",
            "field": "content",
            "reason": "must be a non-empty string",
        }
    ]
    assert (cli.root / bob["quarantine"]).exists()


def test_the_document_of_a_failure_has_its_reason_and_the_exit_code_says_so(cli: CommandLine) -> None:
    put_good_and_bad(cli.root)
    done = cli("migrate", "--all-users", "--json")
    assert done.code == 1
    assert [user["status"] for user in done.json["users"]] == ["migrated", "failed"]
    assert done.json["users"][1]["reason"].startswith("users/bob/memory.json: facts[1].content")


def test_quiet_prints_failures_and_the_summary(cli: CommandLine) -> None:
    put_good_and_bad(cli.root)
    done = cli("migrate", "--all-users", "--quiet")
    assert done.lines == [
        "bob: FAILED: users/bob/memory.json: facts[1].content must be a non-empty string",
        "Summary: migrated=1 planned=0 current=0 failed=1",
    ]
    assert done.err == ""


def test_a_terminal_gets_a_bar_beside_the_lines(cli: CommandLine) -> None:
    put_users(cli.root, "alice", "bob")
    shown = cli("migrate", "--all-users", terminal=True)
    assert shown.code == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.out)
    assert "alice: migrated (1.0 -> 2.0)" in plain
    assert re.search(r"Migrating .*2/2", plain)
    assert "Summary: migrated=2 planned=0 current=0 failed=0" in plain


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the users are not named"),
        (["--all-users", "--user-id", "alice"], "--all-users goes with neither"),
        (["--all-users", "--no-user"], "--all-users goes with neither"),
        (["--user-id", ""], "the user id must be a non-empty string"),
        (["--all-users", "--rollback"], "--rollback does not go with --all-users"),
        (["--user-id", "alice", "--rollback", "--dry-run"], "--rollback does not go with --dry-run"),
        (["--all-users", "--jobs", "0"], "--jobs must be a whole number from 1 to 64"),
        (["--all-users", "--on-invalid", "ignore"], "ignore"),
    ],
    ids=str,
)
def test_wrong_use_is_refused_and_nothing_is_done(
    cli: CommandLine, arguments: list[str], message: str
) -> None:
    put_users(cli.root, "alice")
    before = stamped_tree(cli.root)
    refused = cli("migrate", *arguments)
    assert refused.code == 2
    assert message in refused.err
    assert stamped_tree(cli.root) == before


def test_a_file_that_had_to_go_from_where_it_lay_is_named(cli: CommandLine) -> None:
    STORES["fact_map_of_an_agent"](cli.root / "users" / "alice")
    done = cli.ok("migrate", "--all-users")
    kept = [line.rpartition(" ")[2] for line in done.lines if "set aside in" in line]
    assert kept
    assert all((cli.root / path).exists() for path in kept)


def test_a_dry_run_that_no_quarantine_would_help_does_not_advise_one(cli: CommandLine) -> None:
    source = put(cli.root, document(FACT))
    original = source.read_bytes()
    cli.ok("migrate", "--user-id", "alice")
    source.write_bytes(original)
    failed = cli("migrate", "--user-id", "alice", "--dry-run")
    assert failed.code == 1
    assert "came back" in failed.out
    assert "quarantine" not in failed.err


def test_check_and_status_call_a_file_that_came_back_an_error_with_its_remedy(cli: CommandLine) -> None:
    source = put(cli.root, document(FACT))
    original = source.read_bytes()
    cli.ok("migrate", "--user-id", "alice")
    source.write_bytes(original)
    found = cli("check", "--all-users")
    assert found.code == 1
    assert "error\tmigration-stopped\tusers/alice/memory.json\t" in found.out
    assert "move users/alice/memory.json.v1.bak away" in found.out
    assert "next access migrates it" not in found.out
    status = cli("status", "--user-id", "alice")
    assert status.code == 5
    assert "move users/alice/memory.json.v1.bak away" in status.err
