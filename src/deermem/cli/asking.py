"""Asks a person before a command does what may be regretted."""

from __future__ import annotations

import sys

from deermem.cli.exits import Declined, UsageError
from deermem.cli.output import is_terminal, visible, write


def confirmed(question: str, hint: str) -> None:
    """Returns if a person says yes.

    Args:
        question: What to ask, with a question mark at its end.
        hint: What to do where nobody can be asked.

    Raises:
        UsageError: There is nobody to ask.
        Declined: The answer is no.
    """
    check_terminal(hint)
    write(sys.stderr, visible(f"{question} [y/N] "))
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        write(sys.stderr, "\n")  # the input ended, and the cursor stands behind the question
    if answer.strip().lower() not in ("y", "yes"):
        raise Declined


def check_terminal(hint: str) -> None:
    """Makes sure that there is somebody to ask.

    Raises:
        UsageError: There is not; the hint says what to do then.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError("there is no terminal to ask at", hint)
