"""The command line `deermem`, an optional part of the package: `pip install "deermem[cli]"`."""

from __future__ import annotations

import os
import sys

_NEEDED = frozenset(["click", "rich", "typer"])


def main() -> None:
    """Runs the command line on the arguments of this process and exits with its code."""
    try:
        if shell := os.environ.get("_DEERMEM_COMPLETE"):
            from deermem.cli.completion import print_offers

            print_offers(shell, sys.argv[1:])
            sys.exit(0)
        from deermem.cli.run import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        sys.exit('The command line needs Typer and Rich: pip install "deermem[cli]"')
    sys.exit(run(sys.argv[1:]))
