"""Shells complete commands, options and values; what they are offered is right wherever the cursor is."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from deermem import FactDraft, MemoryRepository, Scope
from deermem.cli.command_tree import command_tree
from deermem.cli.completion import Shell, offers, print_offers
from tests.cli.conftest import CommandLine

BIN = Path(sys.executable).parent
PATIENCE = 60.0


def words(*typed: str) -> list[str]:
    """Returns what is offered for a command line; the last word is being typed."""
    return [each.word for each in offers(typed)]


def test_commands_are_offered_by_their_beginning() -> None:
    assert words("s") == ["status", "search", "serve", "summaries"]
    assert set(words("")) >= {"add", "backup", "completion"}
    assert "doctor" not in words("")


def test_the_commands_of_a_group_are_offered() -> None:
    assert words("token", "") == ["create", "list", "revoke"]
    assert words("backup", "v") == ["verify"]


@pytest.mark.parametrize("name", [each.name for each in command_tree().walk() if each.works])
def test_the_options_of_every_command_are_offered(name: str) -> None:
    (command,) = [each for each in command_tree().walk() if each.name == name]
    assert words(*name.split(), "--") == [each.long for each in command.options]


def test_an_option_that_was_given_is_not_offered_again_unless_it_repeats() -> None:
    offered = words("add", "text", "--title", "x", "--topic=a", "--t")
    assert offered == ["--topic"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["add", "x", "--category", "co"], ["constraint", "context", "correction"]),
        (["add", "x", "--category=dec"], ["decision"]),
        (["migrate", "--on-invalid", ""], ["fail", "quarantine"]),
        (["restore", "--on-conflict", "s"], ["skip"]),
        (["token", "create", "--role", "a"], ["administrator"]),
        (["summaries", "set", "t"], ["topOfMind"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_values_that_are_known_are_offered(typed: list[str], offered: list[str]) -> None:
    assert words(*typed) == offered


@pytest.mark.parametrize(
    "typed",
    [
        ["add", "x", "--title", "--"],  # the value of an option
        ["add", "--", "--"],  # an argument
        ["export", "--out", ""],  # a file
        ["summaries", "set", "topOfMind", ""],
        ["no-such-command", ""],
        ["add", "--no-such-option=", ""],
    ],
)
def test_where_nothing_is_known_nothing_is_offered(typed: list[str]) -> None:
    assert [each for each in words(*typed) if each.startswith("-")] == []


def test_what_is_offered_as_a_value_is_what_the_help_names() -> None:
    for name, option in (("restore", "--on-conflict"), ("token create", "--role")):
        (command,) = [each for each in command_tree().walk() if each.name == name]
        (found,) = [each for each in command.options if each.long == option]
        assert sorted(words(*name.split(), option, "")) == sorted(re.findall(r"`(\w+)`", found.help))


@pytest.mark.parametrize(
    ("shell", "typed", "printed"),
    [
        (Shell.BASH, ["add", "--category", "=", "dec"], "decision\t\n"),
        (Shell.BASH, ["migrate", "--on-invalid", "="], "fail\t\nquarantine\t\n"),
        (Shell.ZSH, ["add", "--category=dec"], "--category=decision\t\n"),
        (Shell.FISH, ["add", "--category=dec"], "--category=decision\t\n"),
    ],
)
def test_each_shell_gets_the_word_that_it_replaces(
    shell: Shell, typed: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_offers(shell, typed)
    assert capsys.readouterr().out == printed


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of three users; the environment names it."""
    root = tmp_path / "named"
    with MemoryRepository(root) as repository:
        for user, agent, fact_id in (
            ("default", None, "fact_one"),
            ("alice@example.com", None, "fact_two"),
            ("alice@example.com", "coder", "fact_three"),
            ("$(touch gone) <b>", None, "fact_four"),
            ("no:where", None, "fact_five"),
        ):
            draft = FactDraft("Speaks Portuguese.", id=fact_id)
            repository.create_fact(Scope.of(user, agent), draft)
    monkeypatch.setenv("DEERMEM_DATA_DIR", str(root))
    monkeypatch.delenv("DEERMEM_USER_ID", raising=False)
    return root


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["get", ""], ["fact_one"]),
        (["get", "note"], []),
        (["path", "fact"], ["fact_one"]),
        (["delete", "fact_one", ""], ["fact_one"]),
        (["get", "--user-id", "alice@example.com", ""], ["fact_two"]),
        (["get", "--user-id=alice@example.com", "--agent", "coder", ""], ["fact_three"]),
        (["get", "--user-id", "nobody", ""], []),
        (["get", "--no-user", ""], []),
        (["list", "--user-id", "alice@example.com", "--agent", ""], ["__default__", "coder"]),
        (["list", "--user-id", ""], ["alice@example.com", "default", "no:where"]),
        (["list", "--user-id", "alice@e"], ["alice@example.com"]),
        (["list", "--user-id=d"], ["default"]),
        (["get", "--storage-path", "nowhere", ""], []),
        (["get", "--storage-path", "$DEERMEM_DATA_DIR", ""], ["fact_one"]),
    ],
)
def test_what_the_store_has_is_offered(typed: list[str], offered: list[str]) -> None:
    assert words(*typed) == offered


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        (["list", "--user-id", "ali"], "alice@example.com"),
        (["list", "--user-id", "alice", "@"], "@example.com"),
        (["list", "--user-id", "alice", "@", "ex"], "@example.com"),
        (["list", "--user-id", "alice@ex"], "alice@example.com"),  # where `@` breaks no word
        (["list", "--user-id", "=", "alice", "@", "ex"], "@example.com"),
        (["list", "--user-id", "no", ":", "wh"], "where"),
        (["list", "--user-id", "no", ":"], "where"),
        (["get", "--user-id", "alice", "@", "example.com", "--agent", "coder", ""], "fact_three"),
        (["get", "--user-id", "'alice@example.com'", "--agent", "coder", ""], "fact_three"),
    ],
)
def test_bash_gets_what_is_missing_of_a_name_that_it_breaks(
    typed: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_offers(Shell.BASH, typed)
    assert capsys.readouterr().out == f"{printed}\t\n"


@pytest.mark.parametrize(
    ("limit", "number", "typed"),
    [
        ("_MOST_NAMES", 2, ["get", "--user-id", "many", ""]),
        ("_MOST_NAMES", 4, ["get", "--user-id", ""]),
        ("_MOST_USERS", 2, ["get", "--user-id", ""]),
    ],
)
def test_a_part_of_too_many_names_is_not_offered_as_if_it_were_all(
    limit: str, number: int, typed: list[str], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryRepository(store) as repository:
        for each in range(3):
            repository.create_fact(Scope.of("many"), FactDraft(f"Fact {each}."))
    monkeypatch.setattr(f"deermem.cli.stored_names.{limit}", number + 1)
    assert words(*typed)
    monkeypatch.setattr(f"deermem.cli.stored_names.{limit}", number)
    assert words(*typed) == []


def test_completion_changes_nothing_of_a_store_and_makes_none(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = store / "users" / "old"
    old.mkdir()
    (old / "memory.json").write_text('{"version": "1.0", "facts": [{"id": "fact_old", "content": "x"}]}')
    (store / "users" / "default" / ".memory.lock").unlink()
    before = {each: (each.stat().st_mtime_ns, each.stat().st_size) for each in store.rglob("*")}
    for typed in ([""], ["--user-id", "old", ""], ["--user-id", ""], ["--agent", ""]):
        words("get", *typed)
    assert {each: (each.stat().st_mtime_ns, each.stat().st_size) for each in store.rglob("*")} == before
    monkeypatch.setenv("DEERMEM_DATA_DIR", str(tmp_path / "absent"))
    assert words("get", "") == []
    assert not (tmp_path / "absent").exists()


@pytest.mark.usefixtures("store")
def test_settings_that_break_a_rule_offer_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEERMEM_LOCK_TIMEOUT", "soon")
    assert words("get", "") == []


def test_the_script_of_an_unknown_shell_is_refused(cli: CommandLine) -> None:
    assert cli("completion", "tcsh").code == 2


def environment(home: Path) -> Mapping[str, str]:
    """Returns what a shell of a new user knows."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    return {**kept, "HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb"}


def test_fish_completes(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("needs fish")
    (tmp_path / "notes.md").touch()
    asked = "deermem completion fish | source; for line in 'lis' 'add --cat' 'token r' 'import not'; "
    asked += 'complete --do-complete "deermem $line"; end'
    done = subprocess.run(
        ["fish", "--no-config", "-c", asked],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert offered == ["list", "--category", "revoke", "notes.md"], done.stderr


class Terminal:
    """Is a terminal with a shell at its other end."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._shown = ""

    def type(self, keys: str) -> None:
        """Presses keys."""
        os.write(self._file, keys.encode())

    def wait_for(self, pattern: str) -> None:
        """Waits until something is shown behind what was waited for before."""
        until = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self._shown)) is None:
            left = max(0.0, until - time.monotonic())
            assert select.select([self._file], [], [], left)[0], self._shown
            self._shown += os.read(self._file, 65_536).decode("utf-8", "replace")
        self._shown = self._shown[found.end() :]


@contextmanager
def terminal(command: list[str], home: Path) -> Iterator[Terminal]:
    """Starts a shell in a terminal, and ends it."""
    import pty

    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            command,
            cwd=home,
            env=environment(home),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            try:
                yield Terminal(ours)
            finally:
                process.kill()
    finally:
        os.close(ours)
        os.close(theirs)


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='ready> '\n"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "PS1='ready> '; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D\n",
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_at_a_terminal_completes_a_command_an_option_and_a_file(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (tmp_path / "notes-of-monday.md").touch()
    with MemoryRepository(tmp_path / ".deermem") as repository:
        repository.create_fact(Scope.of("alice@example.com"), FactDraft("Skis.", id="fact_skiing"))
    command, prepare = SHELLS[shell]
    with terminal(command, tmp_path) as screen:
        screen.type(prepare)
        screen.wait_for(r"\nready> |\rready> ")
        screen.type(f'eval "$(deermem completion {shell})"; echo lo"aded"\n')
        screen.wait_for("loaded")
        for typed, completed in (
            ("deermem expl\t", "deermem explain"),
            ("deermem add x --cat\t", "--category"),
            ("deermem add x --category dec\t", "decision"),
            ("deermem import notes-of\t", "notes-of-monday.md"),
            ("deermem list --user-id al\t", "alice@example.com"),
            ("deermem list --user-id alice@ex\t", "alice@example.com"),
            ("deermem get --user-id alice@example.com fact_s\t", "fact_skiing"),
        ):
            screen.type(typed)
            screen.wait_for(completed)
            screen.type("\x15\n")  # ^U empties the line
            screen.wait_for("ready> ")
