"""Writes deermem(1), the manual page, from the commands themselves and the reference's own tables.

    python -m tools.manual build/man/deermem.1

Variables and exit codes are taken from docs/reference/command-line.md, so that they are told in one place.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from deermem.cli.command_tree import Command, Option, command_tree

REFERENCE: Final = Path(__file__).parents[1] / "docs" / "reference" / "command-line.md"
_WIDTH: Final = 76  # a line of source that is longer is bad style, says mandoc

_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_SENTENCE: Final = re.compile(r"(?<=[.!?]) +(?=[A-Z`-])")
_ROW: Final = re.compile(r"^\|(.+)\|$", re.MULTILINE)


def manual(date: str) -> str:
    """Returns the manual page.

    Args:
        date: The date that it shows, as `2026-07-19`.
    """
    tree = command_tree()
    commands = [each for each in tree.walk() if each.works]
    shared = shared_options(commands)
    lines = [
        f'.TH DEERMEM 1 {date} "deermem {version("deermem")}" "User commands"',
        ".SH NAME",
        *_wrapped(f"deermem \\- {escaped(tree.summary[:1].lower() + tree.summary[1:].rstrip('.'))}"),
        ".SH SYNOPSIS",
        *_synopsis([["deermem", "COMMAND", "[OPTIONS]", "[ARGUMENTS]"], ["deermem", "--version"]]),
        ".SH DESCRIPTION",
        *text(tree.help),
        *text("Every command below tells the same with `--help`."),
    ]
    panel = ""
    for command in sorted(commands, key=_panel_order(tree)):
        if _panel_of(tree, command) != panel:
            panel = _panel_of(tree, command)
            lines.append(f'.SH "{panel.upper()}"')
        lines += _section(command, shared)
    lines += ['.SH "OPTIONS OF MOST COMMANDS"', *(line for each in shared for line in _item(each))]
    lines += [".SH ENVIRONMENT", *_told("| variable |")]
    lines += ['.SH "EXIT STATUS"', *_told("| code |")]
    return "\n".join([*lines, ""])


def shared_options(commands: Sequence[Command]) -> list[Option]:
    """Returns the options that at least half of the commands have, which are told of once."""
    counted = Counter(option for command in commands for option in command.options)
    return [option for option, count in counted.items() if 2 * count >= len(commands)]


def _panel_of(tree: Command, command: Command) -> str:
    top = command.name.partition(" ")[0]
    return next(each.panel for each in tree.commands if each.name == top)


def _panel_order(tree: Command) -> Callable[[Command], int]:
    panels = list(dict.fromkeys(each.panel for each in tree.commands))
    return lambda command: panels.index(_panel_of(tree, command))


def _section(command: Command, shared: Sequence[Option]) -> Iterator[str]:
    yield f'.SS "deermem {escaped(command.name)}"'
    arguments = [each.value for each in command.arguments]
    yield from _synopsis([["deermem", *command.name.split(), "[OPTIONS]", *arguments]])
    for paragraph in command.help.split("\n\n"):
        yield ".PP"
        yield from text(paragraph)
    for each in (*command.arguments, *(option for option in command.options if option not in shared)):
        yield from _item(each)
    also = ", ".join(f"`{option.long}`" for option in shared if option in command.options)
    yield ".PP"
    yield from text(f"Also takes {also}.")


def _synopsis(forms: Sequence[Sequence[str]]) -> Iterator[str]:
    for number, (name, *rest) in enumerate(forms):
        if number:
            yield ".br"
        words = [f"\\fI{escaped(word)}\\fR" if word.strip("[].").isupper() else bold(word) for word in rest]
        yield " ".join([bold(name), *words])


def _item(option: Option) -> Iterator[str]:
    """Yields an entry of a list of options or arguments."""
    is_option = option.long.startswith("-")
    value = f" \\fI{escaped(option.value)}\\fR" if option.value and is_option else ""
    names = (
        ", ".join(bold(name) for name in option.names) if is_option else f"\\fI{escaped(option.value)}\\fR"
    )
    yield ".TP"
    yield f"{names}{value}"
    told = option.help or "Needed."
    if option.repeats and is_option and "repeated" not in told:
        told += " May be repeated."
    if option.default and option.default != "-":
        told += f" Without it: `{option.default}`."
    yield from text(told)


def _told(head: str) -> Iterator[str]:
    """Yields a table of the reference as a list."""
    found = REFERENCE.read_text("utf-8").partition(f"\n{head}")
    heads, _, *rows = _ROW.findall("".join(found[1:]).partition("\n\n")[0])
    for row in rows:
        name, meaning, *more = _cells(row)
        told = [f"{column}: {cell}" for column, cell in zip(_cells(heads)[2:], more, strict=True) if cell]
        yield ".TP"
        yield bold(name.strip("`"))
        yield from text(f"{'; '.join([meaning[:1].upper() + meaning[1:], *told])}.")


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")]


def text(paragraph: str) -> Iterator[str]:
    """Yields prose as lines of source: one sentence each, which goes on where it is long."""
    plain = _LINK.sub(r"\1", " ".join(paragraph.split()))
    for sentence in _SENTENCE.split(plain):
        parts = [
            bold(part) if number % 2 else escaped(part) for number, part in enumerate(sentence.split("`"))
        ]
        yield from _wrapped("".join(parts))


def _wrapped(source: str) -> Iterator[str]:
    """Yields lines of source that are no requests, however they begin."""
    for line in textwrap.wrap(source, _WIDTH, break_long_words=False, break_on_hyphens=False):
        yield f"\\&{line}" if line.startswith((".", "'")) else line


def bold(words: str) -> str:
    """Returns what is typed as it is, in bold."""
    return f"\\fB{escaped(words)}\\fR"


def escaped(words: str) -> str:
    """Returns text so that nothing in it is taken for a request."""
    return words.replace("\\", r"\e").replace("-", r"\-").replace("…", "...").replace("'", r"\(aq")


def main(target: str) -> None:
    """Writes the manual page; `SOURCE_DATE_EPOCH` is the date that it shows, if there is one."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(manual(f"{moment:%Y-%m-%d}"), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
