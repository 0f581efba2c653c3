"""The manual page tells of every command and option, and is well formed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deermem.cli.command_tree import Command, command_tree
from deermem.cli.exits import ExitCode
from tools.manual import escaped, main, manual, text

COMMANDS = [each for each in command_tree().walk() if each.works]
REQUESTS = {".TH", ".SH", ".SS", ".PP", ".TP", ".br"}


@pytest.fixture(scope="module")
def page() -> str:
    return manual("2026-07-19")


def section(page: str, command: Command) -> str:
    """Returns what the page says of a command."""
    _, _, after = page.partition(f'\n.SS "deermem {escaped(command.name)}"\n')
    return re.split(r"^\.S[SH] ", after, maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_manual_page_names_every_option_of_a_command(page: str, command: Command) -> None:
    found = section(page, command)
    named = [*(option.long for option in command.options), *(each.value for each in command.arguments)]
    assert [name for name in named if escaped(name) not in found] == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_manual_page_says_what_the_help_says(page: str, command: Command) -> None:
    def said(source: str) -> str:
        return " ".join(re.sub(r"\\f[BIR]|\\&", "", source).split())

    shared = page.partition('.SH "OPTIONS OF MOST COMMANDS"')[2]
    found = said(section(page, command)) + said(shared)
    told = [command.help, *(option.help for option in command.options)]
    missing = [
        each
        for each in told
        if said("\n".join(text(each.replace("\n\n", " ")))) not in found.replace(" .PP", "")
    ]
    assert missing == []


def test_the_manual_page_names_every_exit_code(page: str) -> None:
    codes = page.partition('.SH "EXIT STATUS"')[2]
    assert [int(code) for code in re.findall(r"^\.TP\n\\fB(\d+)\\fR$", codes, re.MULTILINE)] == sorted(
        ExitCode
    )


def test_every_line_that_looks_like_a_request_is_one(page: str) -> None:
    found = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert found <= REQUESTS


def test_text_that_looks_like_a_request_or_an_escape_is_text() -> None:
    assert list(text(".memory.lock is here")) == [r"\&.memory.lock is here"]
    assert list(text(r"a\nb `it's`")) == [r"a\enb \fBit\(aqs\fR"]


def test_the_manual_page_shows_a_given_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    main(str(tmp_path / "made" / "deermem.1"))
    assert (tmp_path / "made" / "deermem.1").read_text("utf-8").startswith(".TH DEERMEM 1 1970-01-02 ")


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="needs mandoc")
def test_a_formatter_has_nothing_to_say_against_the_page(page: str, tmp_path: Path) -> None:
    file = tmp_path / "deermem.1"
    file.write_text(page, "utf-8")
    told = subprocess.run(["mandoc", "-Tlint", "-Wall", file], capture_output=True, text=True, check=False)
    assert told.stdout + told.stderr == ""
