"""What became of one user in a run over many."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from deermem.errors import DeerMemError
from deermem.model.identity import UserId
from deermem.repository import MigrationReport


class Status(StrEnum):
    """Is how it went; the values are the words of the summary."""

    MIGRATED = "migrated"
    PLANNED = "planned"
    ROLLED_BACK = "rolled_back"
    CURRENT = "current"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class UserOutcome:
    """Reports one user.

    `reason` says why it failed, in one line. `report` is there unless that kept it from being made.
    `restored` are the files of version 1 that a rollback put back, by path below the storage root.
    `stored` is false for a user about whom nothing is stored.
    """

    user: UserId
    status: Status
    reason: str = ""
    report: MigrationReport | None = None
    restored: tuple[str, ...] = ()
    stored: bool = True


def reason_of(error: BaseException) -> str:
    """Returns what an error says, in one line."""
    if isinstance(error, DeerMemError):
        return spelled_out(str(error))
    if isinstance(error, OSError):
        names = [str(name) for name in (error.filename, error.filename2) if name not in (None, "")]
        return spelled_out(": ".join([error.strerror or str(error) or type(error).__name__, *names]))
    return spelled_out(f"this should not have happened: {type(error).__name__}: {error}".rstrip(": "))


def spelled_out(text: str) -> str:
    """Returns text without anything that a terminal would take for a command or a new line."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
