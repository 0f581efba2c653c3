"""Fuzzes the parsers, guided by coverage: `python -m tests.fuzz [SECONDS [TARGET …]]` (needs atheris).

Each target runs in a process of its own for that many seconds and ends with how many inputs it tried. The
exit status is 1 if one of them did what it must not.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SECONDS = "60"


def main(arguments: Sequence[str]) -> int:
    """Returns the exit status."""
    from tests.fuzz.targets import TARGETS

    seconds, *names = arguments or [SECONDS]
    failed = 0
    for name in names or TARGETS:
        with tempfile.TemporaryDirectory() as corpus:
            for number, sample in enumerate(TARGETS[name].samples):
                Path(corpus, str(number)).write_bytes(sample)
            command = [sys.executable, __file__, name, corpus, f"-max_total_time={seconds}", "-max_len=65536"]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
        told = [line for line in ran.stderr.splitlines() if line.startswith(("Done", "Uncaught", "#"))]
        sys.stdout.write(f"{name}: {told[-1] if told else ran.stderr[-500:]}\n")
        sys.stdout.flush()
        if ran.returncode:
            failed = 1
            sys.stdout.write(f"{ran.stdout}\n{ran.stderr}\n")
    return failed


def fuzz(name: str, options: Sequence[str]) -> None:
    """Fuzzes one target; ends the process."""
    import atheris  # type: ignore[import-untyped]  # it has none

    with atheris.instrument_imports(include=["deermem", "yaml"]):
        from tests.fuzz.targets import try_target
    atheris.Setup([sys.argv[0], *options], lambda data: try_target(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) > 2 and not sys.argv[1].isdigit():
        sys.path.insert(0, str(Path(__file__).parents[2]))
        fuzz(sys.argv[1], sys.argv[2:])
    else:
        raise SystemExit(main(sys.argv[1:]))
