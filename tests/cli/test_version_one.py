"""What only looks leaves memory of version 1 alone and says so; what migrates it says that, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine, Result
from tests.migration.runs import NOT_TO_BE_MIGRATED
from tests.migration.v1 import FACT, OTHER, agent_document, document, put

ALICE = ("--user-id", "alice")
TOLD = (
    "users/alice/memory.json is of version 1, not migrated yet",
    "`deermem migrate --user-id alice`",
)
MIGRATED = (
    "The memory of the user alice was of version 1 and has been migrated; its old files are kept as "
    "*.v1.bak, and `deermem migrate --rollback --user-id alice` puts them back.\n"
)


@pytest.fixture
def old(cli: CommandLine) -> CommandLine:
    """A store with one user of version 1."""
    put(cli.root, document(FACT, OTHER))
    return cli


@pytest.fixture
def given_document(tmp_path: Path) -> str:
    """A file that `import` can read."""
    path = tmp_path / "given.json"
    path.write_text('{"version": "2.0", "facts": []}')
    return str(path)


def looks(given: str) -> dict[str, tuple[str, ...]]:
    """Returns commands that only look, or that are refused before they write."""
    return {
        "status": ("status", *ALICE),
        "status of all": ("status", "--all-users"),
        "path of a fact": ("path", FACT["id"], *ALICE),
        "undo --dry-run": ("undo", "--dry-run", *ALICE),
        "undo that is refused": ("undo", *ALICE),
        "import --dry-run": ("import", given, "--dry-run", *ALICE),
        "import that is refused": ("import", given, *ALICE),
        "clear that is refused": ("clear", *ALICE),
        "clear of all that is refused": ("clear", "--all", *ALICE),
        "check": ("check", *ALICE),
        "explain": ("explain", *ALICE),
        "locks": ("locks", *ALICE),
        "migrate --dry-run": ("migrate", "--dry-run", *ALICE),
        "erase-user --dry-run": ("erase-user", "--dry-run", *ALICE),
    }


LOOKS = tuple(looks(""))


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("form", [(), ("--json",), ("--quiet",)])
def test_a_look_changes_no_file_and_makes_none(
    old: CommandLine, given_document: str, name: str, form: tuple[str, ...]
) -> None:
    before = old.tree()
    old(*looks(given_document)[name], *form)
    assert old.tree() == before


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_changes_nothing_of_an_agent_with_a_file_of_its_own(
    cli: CommandLine, given_document: str, name: str
) -> None:
    cli.add("A fact of version 2.", *ALICE)
    put(cli.root, agent_document(FACT), "coder")
    before = cli.tree()
    agent = ("--agent", "coder") if name.split(maxsplit=1)[0] in ("import", "path", "explain") else ()
    cli(*looks(given_document)[name], *agent)
    assert cli.tree() == before


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("status", 0),
        ("path of a fact", 5),
        ("undo --dry-run", 5),
        ("undo that is refused", 5),
        ("import --dry-run", 5),
        ("import that is refused", 5),
    ],
)
def test_a_look_says_that_nothing_was_migrated_and_which_command_does_it(
    old: CommandLine, given_document: str, name: str, code: int
) -> None:
    result = old(*looks(given_document)[name])
    assert result.code == code
    assert all(each in result.out + result.err for each in TOLD)


def test_with_a_terminal_an_import_and_an_undo_are_refused_instead_of_migrating_before_the_answer(
    old: CommandLine, given_document: str
) -> None:
    before = old.tree()
    for command in (("undo", *ALICE), ("import", given_document, *ALICE)):
        result = old(*command, stdin="n\n", terminal=True)
        assert result.code == 5
        assert all(each in result.err for each in TOLD)
    assert old.tree() == before


def test_the_question_of_a_clear_tells_of_version_1_and_its_answer_decides(old: CommandLine) -> None:
    before = old.tree()
    refused = old("clear", *ALICE, stdin="n\n", terminal=True)
    assert refused.code == 1
    assert "Delete all facts, of version 1 and not counted, of the agent __default__ of the user alice?" in (
        refused.err
    )
    assert old.tree() == before
    assert old("clear", *ALICE, stdin="y\n", terminal=True).code == 0
    assert old.ok("list", "-q", *ALICE).out == ""


def test_the_status_counts_what_is_in_files_of_version_1(old: CommandLine) -> None:
    put(old.root, agent_document({**FACT, "id": "fact_c"}), "coder")
    result = old.ok("status", *ALICE)
    assert "facts         3: __default__ 2, coder 1" in result.lines
    (memory,) = old.ok("status", "--json", *ALICE).json["memories"]
    assert memory["versionOneFiles"] == [
        "users/alice/memory.json",
        "users/alice/agents/coder/memory.json",
    ]
    assert memory["facts"] == 3


def test_the_status_of_many_users_names_the_command_once(old: CommandLine) -> None:
    put(old.root, document(FACT), user_id="bob")
    old.add("A fact of version 2.", "--user-id", "carol")
    result = old.ok("status", "--all-users")
    assert "2 users are of version 1, not migrated yet: `deermem migrate --all-users`" in result.err
    assert [line.split("\t")[3] for line in result.lines[-3:]] == ["2", "1", "1"]


def test_the_command_that_status_names_means_the_store_that_was_named(old: CommandLine) -> None:
    result = old("status", *ALICE, "--storage-path", str(old.root))
    assert f"`deermem migrate --user-id alice --storage-path {old.root}`" in result.err


def test_the_status_reports_what_stops_the_migration(cli: CommandLine) -> None:
    put(cli.root, document(FACT, NOT_TO_BE_MIGRATED))
    result = cli("status", *ALICE)
    assert result.code == 5
    assert "users/alice/memory.json: facts[1].content must be a non-empty string" in result.err


def reads(old: CommandLine) -> dict[str, Callable[[], Result]]:
    """Returns the commands that read or write facts, and so migrate what they touch."""
    return {
        "list": lambda: old("list", *ALICE),
        "search": lambda: old("search", "a", *ALICE),
        "get": lambda: old("get", "fact_nope", *ALICE),
        "export": lambda: old("export", *ALICE),
        "summaries show": lambda: old("summaries", "show", *ALICE),
        "add": lambda: old("add", "more", *ALICE),
        "clear": lambda: old("clear", "--yes", *ALICE),
        "undo": lambda: old("undo", "--yes", *ALICE),
    }


@pytest.mark.parametrize("name", reads(CommandLine(Path(), pytest.MonkeyPatch())))
def test_a_read_or_a_write_that_migrates_says_so_once(old: CommandLine, name: str) -> None:
    result = reads(old)[name]()
    assert result.err.count(MIGRATED) == 1
    assert MIGRATED not in reads(old)[name]().err


def test_the_hint_of_an_absent_fact_migrates_no_other_agent(cli: CommandLine) -> None:
    cli.add("A fact of version 2.", *ALICE)
    put(cli.root, agent_document(FACT), "coder")
    before = cli.tree()
    assert cli("get", "fact_nope", *ALICE).code == 3
    assert cli.ok("list", "--category", "goal", *ALICE).out == ""
    assert cli.tree() == before


def test_migrate_tells_of_itself_alone(old: CommandLine) -> None:
    assert MIGRATED not in old.ok("migrate", *ALICE).err
