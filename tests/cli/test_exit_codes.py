"""Every error leaves with the code of its class, one sentence, and no stack trace."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from deermem import errors
from deermem.cli.exits import ExitCode, exit_code_of, report_of
from deermem.model.identity import UserId
from deermem.repository import MemoryRepository
from tests.cli.conftest import CommandLine

CODES = {
    "AgentNotFoundError": ExitCode.NOT_FOUND,
    "CommitInDoubt": ExitCode.IN_DOUBT,
    "Corruption": ExitCode.CORRUPT,
    "DeerMemError": ExitCode.FAILED,
    "DuplicateFact": ExitCode.CONFLICT,
    "FactConflict": ExitCode.CONFLICT,
    "FactNotFoundError": ExitCode.NOT_FOUND,
    "InvalidInputError": ExitCode.INVALID,
    "LockTimeout": ExitCode.LOCKED,
    "ManifestConflict": ExitCode.CONFLICT,
    "MemoryConflictError": ExitCode.CONFLICT,
    "MemoryCorruptionError": ExitCode.CORRUPT,
    "MemoryManagerClosed": ExitCode.FAILED,
    "MemoryManagerError": ExitCode.FAILED,
    "MigrationError": ExitCode.CORRUPT,
    "ArchiveError": ExitCode.CORRUPT,
    "RestoreConflict": ExitCode.CONFLICT,
    "LegacyFormat": ExitCode.CORRUPT,
    "NotACustomAgent": ExitCode.CONFLICT,
    "RevisionConflict": ExitCode.CONFLICT,
    "SearchIndexError": ExitCode.INDEX,
    "UnsupportedFormat": ExitCode.CORRUPT,
}


def test_every_public_error_has_the_code_of_its_kind() -> None:
    public = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, Exception)]
    assert {each.__name__: exit_code_of(each) for each in public} == CODES


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (errors.InvalidInputError("user_id", "is too long"), 2, "the user id is too long"),
        (errors.DuplicateFact(fact_id="fact_1"), 4, "the same text is stored already, as fact_1"),
        (errors.FactNotFoundError("fact_1"), 3, "no fact with the id 'fact_1'"),
        (errors.ManifestConflict(1, 2), 4, "memory.json is at revision 2, not 1"),
        (errors.FactConflict("f", 1, None), 4, "fact 'f' was expected at revision 1 but is absent"),
        (errors.LockTimeout("/r/.memory.lock", 1.5), 6, "no lock on /r/.memory.lock after 1.5 s"),
        (errors.Corruption("users/x/memory.json", "is bad"), 5, "/r/users/x/memory.json: is bad"),
        (
            errors.UnsupportedFormat("memory.json", "9.0", "2.0"), 5,
            "/r/memory.json: version 9.0 is not supported (supported: 2.0)",
        ),
        (errors.MigrationError("memory.json", "is bad"), 5, "/r/memory.json: is bad"),
        (
            errors.CommitInDoubt(3, "EIO"), 7,
            "the change to revision 3 is journalled but not applied: EIO",
        ),
        (errors.SearchIndexError("x.Y", "is down"), 8, "retrieval adapter x.Y: is down"),
        (OSError(28, "No space left on device", "memory.json"), 1,
         "No space left on device: memory.json below /r"),
        (PermissionError(13, "Permission denied", "/r/users"), 1, "Permission denied: /r/users"),
        (OSError(18, "Invalid link", "/r/a", None, "/r/b"), 1, "Invalid link: /r/a -> /r/b"),
        (OSError("odd"), 1, "odd: /r"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError(), 1, "this should not have happened: ZeroDivisionError"),
        (TypeError("x"), 1, "this should not have happened: TypeError: x"),
    ],
)  # fmt: skip
def test_an_error_becomes_a_code_and_a_sentence(error: BaseException, code: int, told: str) -> None:
    report = report_of(error, "/r")
    assert (report.code, report.message) == (code, told)


def test_success_is_0(cli: CommandLine) -> None:
    assert cli("list").code == 0


def test_another_failure_is_1(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    failed = cli("add", "x", "--storage-path", str(tmp_path / "file" / "store"))
    assert failed.code == 1
    assert failed.err == f"Error: Not a directory: {tmp_path / 'file' / 'store'}\n"


def test_without_a_command_the_help_is_shown(cli: CommandLine) -> None:
    shown = cli()
    assert (shown.code, shown.err) == (2, "")
    assert shown.out == cli.ok("--help").out


@pytest.mark.parametrize(
    "arguments",
    [
        ["summaries"], ["frobnicate"], ["list", "--frobnicate"], ["get"], ["add"], ["add", "a", "b"],
        ["list", "--limit", "many"], ["list", "--limit"], ["--json", "list"], ["update", "fact_1"],
        ["list", "--user-id", "x", "--no-user"], ["update", "fact_1", "--topic", "x", "--no-topics"],
        ["delete", "fact_1", "fact_2", "--expected-revision", "1"],
    ],
)  # fmt: skip
def test_wrong_usage_is_2_and_says_where_help_is(cli: CommandLine, arguments: list[str]) -> None:
    wrong = cli(*arguments)
    assert wrong.code == 2
    assert wrong.err or wrong.json["error"]
    assert not cli.root.exists()


def test_an_absent_fact_is_3(cli: CommandLine) -> None:
    for command in (["get"], ["update", "--title", "x"], ["adopt"], ["delete"], ["path"]):
        assert cli(*command, "fact_absent").code == 3
    assert not cli.root.exists()


def test_a_conflict_is_4(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    assert cli("add", "y", "--id", fact_id).code == 4


def test_corruption_is_5(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    cli.file_of(fact_id).write_bytes(b"\xff")
    for command in (["get"], ["update", "--title", "x"], ["adopt"], ["delete"]):
        assert cli(*command, fact_id).code == 5
    assert cli("search", "x").code == 5


def test_a_lock_that_is_held_too_long_is_6_and_nothing_is_written(cli: CommandLine) -> None:
    cli.add("x")
    before = cli.tree()
    cli.monkeypatch.setenv("DEERMEM_LOCK_TIMEOUT", "1")
    with MemoryRepository(cli.root) as other, other.engine.transaction(UserId.parse("default")):
        refused = cli("add", "y")
    assert refused.code == 6
    assert ".memory.lock" in refused.err
    assert cli.tree() == before


def test_with_json_an_error_is_the_one_document_on_standard_output(cli: CommandLine) -> None:
    refused = cli("get", "fact_absent", "--json")
    assert refused.json == {
        "error": {
            "type": "FactNotFoundError",
            "message": "no fact with the id 'fact_absent'",
            "hint": "`deermem list --all-agents` shows what there is",
        }
    }
    assert refused.err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["frob"],
        ["get"],
        ["list", "--limit", "0"],
        ["get", "../x"],
        ["clear"],
        ["list", "--no-user", "--user-id=x"],
    ],
)
def test_with_json_wrong_usage_is_one_document_too(cli: CommandLine, arguments: list[str]) -> None:
    refused = cli(*arguments, "--json")
    assert refused.code == 2
    assert set(refused.json) == {"error"}
    assert refused.json["error"]["message"]
    assert refused.err == ""


def test_the_text_json_behind_two_dashes_asks_for_no_document(cli: CommandLine) -> None:
    assert cli("get", "--", "--json").err.startswith("Error: no fact with the id '--json'")


def test_a_bug_leaves_a_sentence_and_no_stack_trace(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(MemoryRepository, "get_fact", broken)
    failed = cli("get", "fact_1")
    assert failed.code == 1
    assert failed.err.splitlines()[0] == "Error: this should not have happened: RuntimeError: planted"
    assert "Traceback" not in failed.err
