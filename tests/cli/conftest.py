"""Runs the command line in this process, as the console script does, and looks at what comes out."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deermem.cli.run import run


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines on standard output."""
        return self.out.splitlines()


class Stream(io.TextIOWrapper):
    """A stream into memory that may pass for a terminal."""

    def __init__(self, data: bytes = b"", terminal: bool = False) -> None:
        super().__init__(io.BytesIO(data), encoding="ascii")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode("utf-8")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Runs commands on a store of its own."""

    root: Path
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str, stdin: str | bytes = b"", terminal: bool = False) -> Result:
        """Runs one command; `terminal` lets a person look at it, and answer with `stdin`."""
        data = stdin if isinstance(stdin, bytes) else stdin.encode("utf-8")
        streams = {name: Stream(data if name == "stdin" else b"", terminal) for name in STREAMS}
        with self.monkeypatch.context() as patched:
            for name, stream in streams.items():
                patched.setattr(sys, name, stream)
            code = run(arguments)
        return Result(code, streams["stdout"].text(), streams["stderr"].text())

    def ok(self, *arguments: str, stdin: str | bytes = b"") -> Result:
        """Runs one command that has to succeed."""
        result = self(*arguments, stdin=stdin)
        assert result.code == 0, result
        return result

    def add(self, content: str, *arguments: str) -> str:
        """Adds a fact and returns its id."""
        return self.ok("add", "--quiet", *arguments, "--", content).out.strip()

    def file_of(self, fact_id: str, *arguments: str) -> Path:
        """Returns a fact's file."""
        return Path(self.ok("path", fact_id, *arguments).out.rstrip("\n"))

    def tree(self) -> Mapping[str, bytes]:
        """Returns every file below the storage root with its bytes; locks have none."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


STREAMS = ("stdin", "stdout", "stderr")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line on an empty store, in an environment that says nothing else."""
    for variable in [name for name in os.environ if name.startswith("DEERMEM_")]:
        monkeypatch.delenv(variable)
    for variable in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("DEERMEM_DATA_DIR", str(tmp_path / "store"))
    return CommandLine(tmp_path / "store", monkeypatch)
