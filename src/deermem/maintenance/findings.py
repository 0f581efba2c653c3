"""What a check finds: each finding has a kind, a path, a sentence, and what a repair would do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final

from deermem.model.identity import UserId


class Severity(IntEnum):
    """Says how bad a finding is: errors keep a read or a write from working."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


class Action(StrEnum):
    """Says what a repair does about a finding; the value is for a person."""

    NONE = ""
    COMPLETE = "complete the interrupted change"
    SET_ASIDE = "set it aside in .quarantine"
    MOVE = "move it to where it belongs"
    NEW_MANIFEST = "write a new one, at a revision above every one that was seen"
    NEW_FENCES = "write new ones, which refuse every write that is based on what was read before"
    RAISE = "raise the revision of the summary file above it"
    SWEEP = "remove what dead writers left"
    TIGHTEN = "take the permissions of others away"
    CLOSE = "end the repair that was interrupted"
    EXPIRE = "remove it for good"


_NOTE, _WARNING, _ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR

# Every kind of finding, in the order in which it is told of, with its severity.
KINDS: Final[Mapping[str, Severity]] = MappingProxyType(
    {
        "manifest-missing": _ERROR,
        "manifest-corrupt": _ERROR,
        "manifest-newer": _ERROR,
        "manifest-legacy": _NOTE,
        "agent-legacy": _NOTE,
        "migration-stopped": _ERROR,
        "legacy-corrupt": _ERROR,
        "backup-unreadable": _WARNING,
        "backup-differs": _WARNING,
        "fences-corrupt": _ERROR,
        "fences-newer": _ERROR,
        "fences-ahead": _WARNING,
        "journal-hot": _WARNING,
        "journal-legacy": _WARNING,
        "journal-corrupt": _ERROR,
        "journal-unfit": _ERROR,
        "journal-newer": _ERROR,
        "recovery-leftover": _NOTE,
        "recovery-stray": _WARNING,
        "quarantine": _NOTE,
        "quarantine-unfinished": _WARNING,
        "quarantine-unreadable": _WARNING,
        "safety-expired": _NOTE,
        "safety-unreadable": _WARNING,
        "fact-corrupt": _ERROR,
        "fact-conflict-markers": _ERROR,
        "fact-foreign-user": _ERROR,
        "fact-foreign-agent": _ERROR,
        "fact-other-id": _ERROR,
        "fact-misplaced": _ERROR,
        "fact-duplicate": _ERROR,
        "fact-newer": _ERROR,
        "fact-too-large": _ERROR,
        "fact-ahead": _WARNING,
        "fact-edited": _NOTE,
        "case-twins": _WARNING,
        "agent-case": _WARNING,
        "device-name": _WARNING,
        "temporary-file": _WARNING,
        "sync-copy": _WARNING,
        "stray-entry": _NOTE,
        "not-a-bucket": _NOTE,
        "symbolic-link": _ERROR,
        "special-file": _ERROR,
        "wrong-type": _ERROR,
        "permissions": _WARNING,
        "unreadable": _ERROR,
    }
)
_ORDER: Final = {kind: place for place, kind in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class Finding:
    """Is one thing that is wrong, or worth knowing.

    `path` is below the storage root. `evidence` tells two findings apart that are told in the same words:
    what it was seen on. `target` is where a repair moves the file, below the storage root.
    """

    kind: str
    path: str
    message: str
    action: Action = Action.NONE
    evidence: object = None
    target: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return KINDS[self.kind]

    @property
    def repair(self) -> str:
        """What a repair does about it; empty if it does nothing."""
        return f"move it to {self.target}" if self.target else self.action.value

    @property
    def rank(self) -> tuple[int, int, str]:
        """The place of the finding in a list: the worst come first."""
        return -self.severity, _ORDER[self.kind], self.path

    @property
    def identity(self) -> tuple[str, str, object]:
        """What stays the same where two looks found one thing."""
        return self.kind, self.path, self.evidence


@dataclass(frozen=True, slots=True)
class UserReport:
    """Says what was looked at of one user; `revision` is `None` where it cannot be read.

    `version` is that of `memory.json`, empty where there is none or it cannot be read. `facts` counts the
    facts that can be read.
    """

    user: UserId
    directory: str
    version: str
    revision: int | None
    facts: int
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Says what a check found: of each user, and of the storage root."""

    users: tuple[UserReport, ...]
    of_root: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings: those of the root, then those of each user, the worst first."""
        return (*in_order(self.of_root), *(each for user in self.users for each in in_order(user.findings)))

    @property
    def worst(self) -> Severity:
        """The severity of the worst finding; that of a note if there is none."""
        return max((finding.severity for finding in self.findings), default=Severity.NOTE)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Returns findings in the order in which they are told, each once."""
    return sorted(dict.fromkeys(findings), key=lambda finding: finding.rank)
