"""Runs a function where whatever it mounts and starts is gone with it, however it ends.

    python -m tests.kernel.private_mounts MODULE FUNCTION ARGUMENTS

The process has mounts and process numbers of its own. When it dies, all that it started dies with it, its
file systems are unmounted, and loop devices that `mount` made are freed.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import subprocess
import sys
from typing import Any

from tests.kernel.requirements import REPOSITORY


def run_with_own_mounts(module: str, function: str, *arguments: Any, timeout: float = 100) -> Any:
    """Runs a function of a module; arguments and result are JSON.

    It is named rather than passed, since such a module cannot be imported on every system.
    """
    separated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = [sys.executable, "-m", __name__, module, function, json.dumps(arguments)]
    run = subprocess.run(
        [*separated, *command],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if run.returncode != 0:
        raise AssertionError(run.stderr[-4_000:] or f"ended with {run.returncode}")
    return json.loads(run.stdout)


def main(module: str, name: str, arguments: str) -> None:
    """Calls the function and prints its result."""
    logging.disable()
    result = getattr(importlib.import_module(module), name)(*json.loads(arguments))
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
