"""One look at one bucket: what it collects, and how it reads without stopping at what is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from deermem.maintenance.findings import Action, Finding
from deermem.model.identity import UserId
from deermem.storage.bucket import ManifestImage
from deermem.storage.ownership import denied_owner
from deermem.storage.port import Directory, EntryKind, EntryStatus, FileIdentity, FileTooLarge

Parts = tuple[str, ...]

MAX_SET_ASIDE: Final = 64_000_000
# Text in a damaged file may look like a revision; one so far off would use up the numbers there are.
_BELIEVED: Final = 10**12
_NAMED_REVISION: Final = re.compile(
    rb'"(?:revision|baseRevision|expectedRevision|nextRevision)"\s*:\s*(\d{1,16})\b|^revision:\s*(\d{1,16})\b',
    re.MULTILINE,
)


def _is_text(name: str) -> bool:
    """Tells whether a name is UTF-8: another one no record can name."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class Scan:
    """Collects what one look at a bucket shows.

    Args:
        user: Whose bucket it is.
        prefix: The bucket's path below the storage root, in parts.
        manifest_name: The name of the summary file.
        now: The time, as it is stored.
        undo_days: How long safety copies are kept.
        windows_names: Whether names such as `CON` stand for devices here.
    """

    def __init__(
        self,
        user: UserId,
        prefix: Parts,
        manifest_name: str,
        now: str,
        *,
        undo_days: int,
        windows_names: bool,
    ) -> None:
        self.user = user
        self.manifest_name = manifest_name
        self.now = now
        self.undo_days = undo_days
        self.windows_names = windows_names
        self.findings: list[Finding] = []
        self.image: ManifestImage | None = None
        self.version = ""
        self.facts = 0
        self.fact_files = 0
        self.manifest_broken = False
        self.journal: object = None
        self.has_journal = False
        self.disturbed = False
        self.seen_revision = 0
        self.rumoured_revision = 0
        self.manifest_names_revision = False
        self.root = ""
        self._prefix = prefix

    def path(self, parts: Parts) -> str:
        """Returns a path below the storage root."""
        return "/".join((*self._prefix, *parts)) or "."

    def add(
        self,
        kind: str,
        parts: Parts,
        message: str,
        action: Action = Action.NONE,
        *,
        evidence: object = None,
        target: Parts = (),
    ) -> None:
        """Notes a finding."""
        goal = self.path(target) if target else ""
        if action in (Action.SET_ASIDE, Action.MOVE) and not _is_text("/".join(parts)):
            action, message = Action.NONE, f"{message}; its name is no text: move it away by hand"
        self.findings.append(Finding(kind, self.path(parts), message, action, evidence, goal))

    def see(self, revision: int) -> None:
        """Notes that somebody may have seen a revision."""
        self.seen_revision = max(self.seen_revision, revision)

    def see_any_in(self, data: bytes) -> bool:
        """Notes every revision that a file names which cannot be parsed; tells whether there is one."""
        named = [int(match[1] or match[2]) for match in _NAMED_REVISION.finditer(data)]
        believed = [revision for revision in named if revision <= _BELIEVED]
        self.rumoured_revision = max(self.rumoured_revision, *believed, 0)
        return bool(believed)

    def read(self, directory: Directory, parts: Parts, limit: int) -> tuple[bytes, FileIdentity] | None:
        """Reads a file; `None` when it vanished or cannot be read, which is noted.

        Raises:
            FileTooLarge: It has more than `limit` bytes.
        """
        try:
            return directory.read(parts[-1], limit)
        except FileTooLarge:
            raise
        except OSError as error:
            self._note_failure(parts, error)
            return None

    def read_or_note(
        self, directory: Directory, parts: Parts, limit: int, kind: str, action: Action = Action.NONE
    ) -> tuple[bytes, FileIdentity] | None:
        """Reads a file as `read` does; one that is too large is noted as a finding of this kind.

        One that is too large to be kept first is for a person to mend.
        """
        try:
            return self.read(directory, parts, limit)
        except FileTooLarge as error:
            with self.noting(parts):
                size = directory.identify(parts[-1]).size
                self.add(kind, parts, error.reason, action if size <= MAX_SET_ASIDE else Action.NONE)
            return None

    @contextmanager
    def noting(self, parts: Parts) -> Iterator[None]:
        """Notes what the disk refuses inside, and goes on after it."""
        try:
            yield
        except OSError as error:
            self._note_failure(parts, error)

    def _note_failure(self, parts: Parts, error: OSError) -> None:
        if isinstance(error, FileNotFoundError):
            self.disturbed = True
            return
        message = f"cannot be read: {error.strerror or error}"
        if isinstance(error, PermissionError) and self.root:
            owner = denied_owner(os.path.join(self.root, *self._prefix, *parts), self.root)
            message += f"; {owner}" if owner else ""
        self.add("unreadable", parts, message)

    def is_expected(
        self, parts: Parts, status: EntryStatus, kind: EntryKind, action: Action = Action.SET_ASIDE
    ) -> bool:
        """Tells whether an entry is of the right kind; notes if not, or if others have permissions.

        Args:
            parts: Where it lies.
            status: What it is.
            kind: What it should be.
            action: What a repair does about an entry of the wrong kind.
        """
        if status.kind == kind:
            if status.excess:
                what = "open to other users of the machine" if status.excess & 0o7 else "open to its group"
                message = f"is {what} (mode bits {status.excess:03o} too many); fine if that is on purpose"
                self.add("permissions", parts, message, Action.TIGHTEN)
            return True
        found = {EntryKind.LINK: "symbolic-link", EntryKind.OTHER: "special-file"}
        hint = "" if action else "; move it by hand, with what is behind it"
        self.add(
            found.get(status.kind, "wrong-type"),
            parts,
            f"is a {status.kind} where a {kind} belongs{hint}",
            action,
            evidence=status.identity,
        )
        return False
