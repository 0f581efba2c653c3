"""P12: what it costs to import the package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.bench import Bench
from benchmarks.results import Result

_OURS: Final = "deermem"
_FLOOR: Final = f"json, pathlib, dataclasses, yaml, {'msvcrt' if os.name == 'nt' else 'fcntl'}"
_UNWANTED: Final = ("fastapi", "langgraph", "mcp", "rich", "typer")

_TIMED: Final = """\
import time
start = time.process_time()
import {names}
print(time.process_time() - start)
"""
_LOADED: Final = """\
import sys, deermem
print(*(name for name in {names} if name in sys.modules))
"""


class Interpreter:
    """Starts new interpreters, which all find the byte code that the first one wrote."""

    def __init__(self, byte_code: Path) -> None:
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(byte_code)}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def import_time(self, names: str) -> float:
        """Returns how long an import takes, the interpreter's own start left out."""
        return float(self._run(_TIMED.format(names=names)))

    def loaded_with_deermem(self) -> list[str]:
        """Returns which of the packages that only parts of DeerMem need are loaded by all of it."""
        return self._run(_LOADED.format(names=_UNWANTED)).split()

    def _run(self, program: str) -> str:
        return subprocess.run(  # noqa: S603 - a program of our own
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            env=self._environment,
        ).stdout


def measure(bench: Bench) -> Iterator[Result]:
    """Measures both imports in turns, and looks at what else was loaded."""
    scale = bench.scale
    medians: dict[str, list[float]] = {_OURS: [], _FLOOR: []}
    with bench.folder() as folder:
        interpreter = Interpreter(folder)
        for names in medians:
            interpreter.import_time(names)  # writes the byte code
        for _ in range(scale.rounds):
            times: dict[str, list[float]] = {names: [] for names in medians}
            for _ in range(scale.fewer(4)):
                for names in medians:
                    times[names].append(interpreter.import_time(names))
            for names, collected in times.items():
                medians[names].append(median(collected))
        loaded = interpreter.loaded_with_deermem()
    note = f"loads {', '.join(loaded)} unasked" if loaded else ""
    yield Result.timed(
        "P12", "import deermem", f"import {_FLOOR}", medians[_OURS], medians[_FLOOR], bar=1.5, note=note
    )
