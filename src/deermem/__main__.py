"""`python -m deermem` is the command line."""

from __future__ import annotations

from deermem.cli import main

if __name__ == "__main__":
    main()
