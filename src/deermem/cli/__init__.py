"""The command line `deermem`, an optional part of the package: `pip install "deermem[cli]"`."""

from __future__ import annotations

import sys

_NEEDED = frozenset(["click", "rich", "typer"])


def main() -> None:
    """Runs the command line on the arguments of this process and exits with its code."""
    try:
        from deermem.cli.run import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        sys.exit('The command line needs Typer and Rich: pip install "deermem[cli]"')
    sys.exit(run(sys.argv[1:]))
