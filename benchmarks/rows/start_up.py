"""P12: what it costs to import the package, and to start its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.bench import Bench
from benchmarks.measuring import Rounds
from benchmarks.results import Result
from benchmarks.scale import Scale

_FLOOR: Final = f"import json, pathlib, dataclasses, yaml, {'msvcrt' if os.name == 'nt' else 'fcntl'}"
# The second shows what the first puts off until it is used; the bar is the first one's.
_IMPORTS: Final = ("import deermem", "from deermem import MemoryRepository")
_UNWANTED: Final = ("fastapi", "langgraph", "mcp", "rich", "typer")

# Processor time, which other programs do not lengthen.
_IMPORT: Final = """\
import sys, time
start = time.process_time()
{statement}
sys.stderr.write(str(time.process_time() - start))
"""
_LOADED: Final = """\
import sys, deermem
print(*(name for name in {names} if name in sys.modules))
"""
_COMMANDS: Final = """\
from deermem.cli.app import app
from typer.main import get_command

def names(command, path=()):
    children = getattr(command, "commands", None)
    if children is None:
        yield "-".join(path)
    else:
        for name, child in children.items():
            yield from names(child, (*path, name))

print(*names(get_command(app)))
"""
_EMPTY_APPLICATION: Final = """\
import typer

main = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
for name in {names}:
    def command() -> None:
        "Does nothing."
    main.command(name)(command)
"""
# Counted from the start of the process, so the interpreter's own start is in it.
_HELP: Final = """\
import sys, time
sys.argv = ["application", "--help"]
{make_main}
try:
    main()
except SystemExit:
    pass
sys.stderr.write(str(time.process_time()))
"""


class Interpreters:
    """Starts new interpreters, which all find the byte code that the first ones wrote."""

    def __init__(self, byte_code: Path) -> None:
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(byte_code)}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def words(self, program: str) -> list[str]:
        """Returns what a program prints."""
        return self._run(program).stdout.split()

    def seconds(self, programs: Sequence[str], scale: Scale) -> list[Rounds]:
        """Returns the times that each of the programs reports, which run in turns."""
        for program in programs:
            self._run(program)
        medians: list[Rounds] = [[] for _ in programs]
        for _ in range(scale.rounds):
            samples = [[self._seconds(program) for program in programs] for _ in range(scale.fewer(4))]
            for rounds, times in zip(medians, zip(*samples, strict=True), strict=True):
                rounds.append(median(times))
        return medians

    def _seconds(self, program: str) -> float:
        return float(self._run(program).stderr)

    def _run(self, program: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - a program of our own
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            env=self._environment,
        )


def measure(bench: Bench) -> Iterator[Result]:
    """Measures in new processes."""
    with bench.folder() as folder:
        interpreters = Interpreters(folder)
        yield from _imports(interpreters, bench.scale)
        if find_spec("typer") is not None:
            yield _help(interpreters, bench.scale)


def _imports(interpreters: Interpreters, scale: Scale) -> Iterator[Result]:
    loaded = interpreters.words(_LOADED.format(names=_UNWANTED))
    note = f"loads {', '.join(loaded)} unasked" if loaded else ""
    programs = [_IMPORT.format(statement=statement) for statement in (*_IMPORTS, _FLOOR)]
    *ours, floor = interpreters.seconds(programs, scale)
    for statement, times in zip(_IMPORTS, ours, strict=True):
        bar = 1.5 if statement == _IMPORTS[0] else None
        yield Result.timed("P12", statement, _FLOOR, times, floor, bar=bar, note=note)


def _help(interpreters: Interpreters, scale: Scale) -> Result:
    commands = interpreters.words(_COMMANDS)
    empty = _EMPTY_APPLICATION.format(names=commands)
    programs = [_HELP.format(make_main=make) for make in ("from deermem.cli import main", empty)]
    ours, floor = interpreters.seconds(programs, scale)
    floor_work = f"an empty Typer application with {len(commands)} commands"
    return Result.timed("P12", "deermem --help, the whole process", floor_work, ours, floor, bar=1.3)
