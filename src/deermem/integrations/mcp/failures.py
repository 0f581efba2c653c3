"""What a client is told when something goes wrong: one sentence, never a path or a stack trace."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from deermem.errors import (
    CommitInDoubt,
    FactNotFoundError,
    InvalidInputError,
    LockTimeout,
    MemoryConflictError,
    MemoryCorruptionError,
    MemoryManagerClosed,
)

DAMAGED: Final = (
    "The stored memory is damaged; nothing was changed, and an operator must run `deermem check` to mend it."
)
BUSY: Final = "The memory is in use by another program; nothing was changed. Try again in a moment."
TOO_MANY: Final = "Too many calls are under way for this memory; nothing was changed. Try again in a moment."
CONFLICT: Final = "The memory was changed meanwhile; this call changed nothing. Read it again and retry."
IN_DOUBT: Final = (
    "The disk failed while the change was written: it may have been made. Look before you repeat it."
)
ENDING: Final = "The server is ending; nothing was changed."
FULL_DISK: Final = "The disk is full; nothing was changed, and an operator must make room."
DISK: Final = "The memory cannot be read or written at the moment; nothing was changed."
BUG: Final = "This failed inside the server; its log says more."

_MOST_PROBLEMS: Final = 5
_LONGEST: Final = 200

_log = logging.getLogger(__name__)


class Refused(Exception):
    """Says in its text why a call was not begun."""


def told_of(error: Exception) -> str:
    """Returns what a client is told of an error; what is for an operator goes to the log."""
    for kind, tell in _TOLD.items():
        if isinstance(error, kind):
            return tell(error)
    _log.error("a call failed", exc_info=error)
    return BUG


def told_of_arguments(error: ValidationError) -> str:
    """Returns which arguments break which rule; what was sent is not repeated."""
    problems = [_problem(each) for each in error.errors(include_url=False, include_input=False)]
    return _nothing_done(problems[:_MOST_PROBLEMS], len(problems))


def told_of_unknown(names: Collection[str]) -> str:
    """Returns the same of arguments that do not exist; a client may send a great many of them."""
    shown = sorted(islice(names, _MOST_PROBLEMS))
    problems = [{"loc": (name,), "type": "extra_forbidden", "msg": ""} for name in shown]
    return _nothing_done([_problem(each) for each in problems], len(names))


def _nothing_done(shown: Sequence[str], count: int) -> str:
    rest = f"; and {count - len(shown)} more" if count > len(shown) else ""
    return f"Nothing was done: {'; '.join(shown)}{rest}."


def _problem(found: Mapping[str, Any]) -> str:
    where = ".".join(map(str, found["loc"]))[:_LONGEST]
    # A name that nobody declared may have anything in it.
    name = where.encode("ascii", "backslashreplace").decode("ascii")
    reason = "is no argument of this tool" if found["type"] == "extra_forbidden" else found["msg"]
    reason = str(reason).removeprefix("Value error, ")
    return f"{name}: {reason}" if name else reason


def _of_input(error: Any) -> str:
    return f"Nothing was done: {error.field} {error.reason}."


def _of_damage(error: Any) -> str:
    _log.error("%s", error)
    return DAMAGED


def _of_disk(error: Any) -> str:
    _log.error("the storage failed: %s", error)
    return FULL_DISK if error.errno in (errno.ENOSPC, errno.EDQUOT) else DISK


def _of_doubt(error: Any) -> str:
    _log.error("%s", error)
    return IN_DOUBT


# The first that fits counts: some are kinds of others.
_TOLD: Final[Mapping[type[Exception], Callable[[Any], str]]] = MappingProxyType(
    {
        Refused: str,
        ValidationError: told_of_arguments,
        InvalidInputError: _of_input,
        FactNotFoundError: lambda _: "There is no such fact.",
        MemoryCorruptionError: _of_damage,
        MemoryConflictError: lambda _: CONFLICT,
        MemoryManagerClosed: lambda _: ENDING,
        LockTimeout: lambda _: BUSY,
        CommitInDoubt: _of_doubt,
        OSError: _of_disk,
    }
)
