"""Reads the Dockerfile: what it says, stage by stage."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]


class Instruction(NamedTuple):
    """One instruction: its word, and the rest with continued lines joined."""

    word: str
    rest: str

    @property
    def command(self) -> list[str]:
        """The exec form of a command; a shell form is no JSON and fails."""
        found = json.loads(self.rest[self.rest.index("[") :])
        assert isinstance(found, list)
        return found


class Stage(NamedTuple):
    """What follows one `FROM`."""

    base: str
    instructions: list[Instruction]

    def all(self, word: str) -> list[Instruction]:
        """Returns the instructions of a kind."""
        return [each for each in self.instructions if each.word == word]

    def one(self, word: str) -> Instruction:
        """Returns the only instruction of a kind."""
        (found,) = self.all(word)
        return found

    @property
    def environment(self) -> dict[str, str]:
        """The variables that are set, without those that extend another."""
        pairs = [pair.partition("=") for each in self.all("ENV") for pair in shlex.split(each.rest)]
        return {name: value for name, _, value in pairs if "$" not in value}


def stages() -> list[Stage]:
    """Returns the stages of the Dockerfile, arguments of the base put in."""
    text = (REPOSITORY / "Dockerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    arguments: dict[str, str] = {}
    found: list[Stage] = []
    for line in joined.splitlines():
        word, _, rest = line.partition(" ")
        if word == "ARG" and not found:
            name, _, value = rest.partition("=")
            arguments[name] = value
        elif word == "FROM":
            base = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], rest)
            found.append(Stage(base, []))
        else:
            found[-1].instructions.append(Instruction(word, rest))
    return found
