"""Finds the fenced code blocks of a Markdown document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from markdown_it import MarkdownIt

RUN = {"python", "console", "bash"}
SHOWN = {"text", "json", "yaml", "toml", "markdown", "mermaid", "http"}
NOT_RUN = re.compile(r"<!--\s*not run:\s*(.*?)\s*-->\s*", re.DOTALL)


class Block(NamedTuple):
    """One fenced block: its language, its text, and why it is not run if it says so."""

    line: int  # of its first line of code, from 1
    language: str
    code: str
    not_run: str | None

    @property
    def runs(self) -> bool:
        """Whether the block is executed."""
        return self.language in RUN and self.not_run is None


def blocks(text: str) -> Iterator[Block]:
    """Yields the fenced blocks in their order; a comment counts only directly above its block."""
    comment = None
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "fence":
            language = token.info.split()[0] if token.info.split() else ""
            first_line = token.map[0] + 2 if token.map else 1
            yield Block(first_line, language, token.content, comment and comment[1])
        comment = NOT_RUN.fullmatch(token.content) if token.type == "html_block" else None


class Command(NamedTuple):
    """What a console block tells to type, and what it says comes back (nothing: it does not say)."""

    typed: str
    shown: str


def commands(code: str) -> list[Command]:
    """Splits a block at its `$ ` prompts; a block without any is one script.

    A command goes on in the next line where that starts with `> `.
    """
    if not any(line.startswith("$ ") for line in code.splitlines()):
        return [Command(code, "")]
    found: list[Command] = []
    for line in code.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append(Command(line[2:], ""))
        elif not found:
            raise ValueError(f"output before the first command: {line!r}")
        elif line.startswith("> ") and not found[-1].shown:
            found[-1] = Command(found[-1].typed + line[2:], "")
        else:
            found[-1] = Command(found[-1].typed, found[-1].shown + line)
    return found
