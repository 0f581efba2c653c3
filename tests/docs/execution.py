"""Runs the blocks of one document, from top to bottom, as a reader would."""

from __future__ import annotations

import doctest
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.docs.blocks import Block, Command, blocks, commands

SECONDS = 60
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Every document that needs it sets it to a directory of its own, so it does no harm to the next one.
MAY_STAY: Final = frozenset(["DEERMEM_DATA_DIR"])
# The last two are those of whatever terminal the process has, set by its line editor.
OF_THE_SHELL: Final = frozenset(["_", "OLDPWD", "PWD", "SHLVL", "LINES", "COLUMNS"])


class BlockFailed(AssertionError):
    """Says which block of which document did not do what the document says."""


def run_document(name: str, text: str) -> int:
    """Runs every block that is to be run, in the current directory; returns how many there were.

    Python blocks of one document see each other's names, and every block sees what a shell block before it
    has exported. A shell keeps its directory and its other variables to the end of its block.

    Raises:
        BlockFailed: A block does something else than the document says, works on the store in the reader's
            home directory, or the document leaves a variable that changes what another one's commands do.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    running = [block for block in blocks(text) if block.runs]
    of_the_reader = Path.home() / ".deermem"
    existed = of_the_reader.exists()
    with restored_environment() as before:
        for block in running:
            if block.language == "python":
                run_python(name, block, names)
            else:
                run_shell(name, block)
            if of_the_reader.exists() and not existed:
                raise BlockFailed(f"{name}:{block.line}: works on ~/.deermem; set DEERMEM_DATA_DIR before")
        left = {each for each in os.environ if os.environ[each] != before.get(each)} - MAY_STAY
    if left:
        raise BlockFailed(f"{name}: leaves exported: {', '.join(sorted(left))}")
    return len(running)


@contextmanager
def restored_environment() -> Iterator[dict[str, str]]:
    """Yields the environment as it is, and puts it back at the end."""
    before = dict(os.environ)
    try:
        yield before
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_python(name: str, block: Block, names: dict[str, Any]) -> None:
    """Executes a block so that a traceback names the document's own lines."""
    padded = "\n" * (block.line - 1) + block.code
    try:
        exec(compile(padded, name, "exec", dont_inherit=True), names)  # noqa: S102 - the point of this module
    except Exception as error:
        raise BlockFailed(f"{name}:{block.line}: {type(error).__name__}: {error}") from error


def run_shell(name: str, block: Block) -> None:
    """Executes a block in one bash, and compares what each command prints with what the document shows."""
    steps = commands(block.code)
    # Between two commands bash prints a line that no command prints, and stops at the first failure.
    mark = "--- end of command ---"
    script = "".join(f"{step.typed}\nprintf '%s\\n' '{mark}'\n" for step in steps)
    with tempfile.NamedTemporaryFile() as exported:
        exit_code, output = run_bash(f"{script}env -0 > {exported.name}\n")
        take_over(exported.read())
    printed = output.split(f"{mark}\n")
    if exit_code:
        failed = steps[min(len(printed), len(steps)) - 1].typed.strip()
        raise BlockFailed(f"{name}:{block.line}: `{failed}` exits with {exit_code}:\n{printed[-1]}")
    for step, output in zip(steps, printed, strict=False):
        compare(f"{name}:{block.line}", step, output)


def take_over(printed: bytes) -> None:
    """Takes what `env -0` has printed, if anything, for the environment of the blocks that come."""
    exported = dict(each.split("=", 1) for each in os.fsdecode(printed).split("\0") if each)
    for variable in exported.keys() | os.environ.keys() if exported else ():
        if variable in OF_THE_SHELL:
            continue
        if variable in exported:
            os.environ[variable] = exported[variable]
        else:
            del os.environ[variable]


def run_bash(script: str) -> tuple[int, str]:
    """Runs a script and ends what it leaves in the background; returns its exit code and its output."""
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    ) as shell:
        try:
            output, _ = shell.communicate(timeout=SECONDS)
        finally:
            if sys.platform != "win32":
                # A server that the script has started is of the same group.
                with suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
        return shell.returncode, output


def compare(where: str, step: Command, output: str) -> None:
    """Accepts `...` for whatever changes from run to run, and any amount of white space for any other."""
    if step.shown.strip() and not doctest.OutputChecker().check_output(step.shown, output, LENIENT):
        typed = step.typed.strip()
        raise BlockFailed(f"{where}: `{typed}` is said to print\n{step.shown}but prints\n{output}")
