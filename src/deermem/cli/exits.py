"""How each error leaves the process: its exit code, one sentence, and a hint. One table says it all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from deermem.errors import (
    AgentNotFoundError,
    ArchiveError,
    CommitInDoubt,
    Corruption,
    DuplicateFact,
    FactConflict,
    FactNotFoundError,
    InvalidInputError,
    LegacyFormat,
    LockTimeout,
    MemoryConflictError,
    MemoryCorruptionError,
    MemoryManagerError,
    MigrationError,
    NotACustomAgent,
    RestoreConflict,
    RevisionConflict,
    SearchIndexError,
    UnsupportedFormat,
)


class ExitCode(IntEnum):
    """Is what the process returns."""

    OK = 0
    FAILED = 1
    INVALID = 2
    NOT_FOUND = 3
    CONFLICT = 4
    CORRUPT = 5
    LOCKED = 6
    IN_DOUBT = 7
    INDEX = 8
    DENIED = 9
    INTERRUPTED = 130


class UsageError(Exception):
    """Says that a command was not given what it needs; nothing was done."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class Declined(Exception):
    """Says that a person answered a question with no; nothing was done."""

    def __str__(self) -> str:
        return "the answer was no: nothing was done"


class OutputFailed(OSError):
    """Says that a result could not be written where it should go; what the command did stays done."""

    def __str__(self) -> str:
        return f"{self.strerror}: {self.filename}"


class CannotListen(OSError):
    """Says that a server cannot listen where it should; the store has nothing to do with it."""

    def __str__(self) -> str:
        return f"cannot listen on {self.filename}: {self.strerror}"


class StoreDenied(OSError):
    """Says that this process may not use the storage root: whose it is, and the command that helps."""


class Report(NamedTuple):
    """Is an error as the user gets to see it."""

    type: str
    message: str
    hint: str
    code: ExitCode

    def document(self) -> dict[str, object]:
        """Returns the report as the JSON document of a failed command."""
        error = {"type": self.type, "message": self.message, "hint": self.hint}
        return {"error": {key: value for key, value in error.items() if value}}


class _Row(NamedTuple):
    """Tells what becomes of one kind of error; `told` gets the error and the storage root, if known."""

    code: ExitCode
    hint: str | Callable[[Any], str]
    told: Callable[[Any, str | None], str] = lambda error, _: str(error)


_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agent_name": "the agent name",
        "category": "the category",
        "changes": "the changes",
        "confidence": "the confidence",
        "content": "the content",
        "id": "the fact id",
        "limit": "--limit",
        "manifest_filename": "DEERMEM_MANIFEST_FILENAME",
        "memory_data": "the document",
        "query": "the query",
        "source": "the source",
        "storage_path": "the storage path",
        "title": "the title",
        "topics": "a topic",
        "user_id": "the user id",
    }
)
_FIELD_HINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agent_name": "without --agent a command means the default agent",
        "id": "`deermem list` shows the ids",
        "DEERMEM_STORAGE_CLASS": "nothing was done; the class has to be installed beside deermem",
        "storage_path": "name a directory with --storage-path or DEERMEM_DATA_DIR",
        "user_id": "name the user with --user-id or DEERMEM_USER_ID, or use --no-user",
    }
)
_MEND: Final = "nothing was changed; mend the file, or see with `deermem check` what a repair would do"
NOT_MIGRATED: Final = "is of version 1, not migrated yet"
_DISK_HINTS: Final[Mapping[int, str]] = MappingProxyType(
    {
        errno.ENOSPC: "make room, and run it again",
        errno.EROFS: "of what can only be read, `deermem backup` saves a copy that can be restored elsewhere",
    }
)


def _is_taken(error: FactConflict) -> bool:
    """Tells whether a fact was to be new, and is not."""
    return error.expected is None and error.actual is not None


def _told_of_input(error: InvalidInputError, _: str | None) -> str:
    return f"{_FIELDS.get(error.field, error.field)} {error.reason}"


def _told_of_file(error: Corruption | UnsupportedFormat | MigrationError, root: str | None) -> str:
    return str(error) if root is None else f"{root}/{error}"


def _told_of_disk(error: OSError, root: str | None) -> str:
    """Names the file; a call that is relative to an open directory leaves only its last component."""
    names = [str(name) for name in (error.filename, error.filename2) if name not in (None, "")]
    where = " -> ".join(names)
    if root is not None and not any(os.path.isabs(name) for name in names):
        where = f"{where} below {root}" if where else root
    reason = error.strerror or str(error) or type(error).__name__
    return f"{reason}: {where}" if where else reason


def _hint_of_disk(error: OSError) -> str:
    return _DISK_HINTS.get(error.errno or 0, "")


def _told_of_bug(error: BaseException, _: str | None) -> str:
    return f"this should not have happened: {type(error).__name__}: {error}".rstrip(": ")


# The closest class in an error's line of ancestors decides.
_TABLE: Final[Mapping[type[BaseException], _Row]] = MappingProxyType(
    {
        UsageError: _Row(ExitCode.INVALID, lambda error: error.hint),
        Declined: _Row(ExitCode.FAILED, ""),
        InvalidInputError: _Row(
            ExitCode.INVALID, lambda error: _FIELD_HINTS.get(error.field, ""), _told_of_input
        ),
        DuplicateFact: _Row(
            ExitCode.CONFLICT,
            lambda error: (
                f"`deermem update {error.fact_id}` changes the fact that is there"
                if error.fact_id
                else "`deermem update` changes the fact that is there"
            ),
            lambda error, _: f"the same text is stored already, as {error.fact_id}",
        ),
        FactNotFoundError: _Row(ExitCode.NOT_FOUND, "`deermem list --all-agents` shows what there is"),
        AgentNotFoundError: _Row(ExitCode.NOT_FOUND, "`deermem status` names the agents"),
        NotACustomAgent: _Row(ExitCode.CONFLICT, "`deermem clear --agent` deletes an agent's facts"),
        RevisionConflict: _Row(
            ExitCode.CONFLICT, "`deermem status` shows the revision; read again, then repeat the change"
        ),
        FactConflict: _Row(
            ExitCode.CONFLICT,
            lambda error: (
                f"`deermem update {error.fact_id}` changes it"
                if _is_taken(error)
                else f"`deermem get {error.fact_id}` shows the fact; read it again, then repeat the change"
            ),
            lambda error, _: f"there is a fact {error.fact_id} already" if _is_taken(error) else str(error),
        ),
        LockTimeout: _Row(
            ExitCode.LOCKED, "nothing was written; try again, or wait longer with DEERMEM_LOCK_TIMEOUT"
        ),
        Corruption: _Row(ExitCode.CORRUPT, lambda error: error.hint or _MEND, _told_of_file),
        UnsupportedFormat: _Row(
            ExitCode.CORRUPT, "nothing was changed; use the release that wrote the file", _told_of_file
        ),
        LegacyFormat: _Row(
            ExitCode.CORRUPT,
            "nothing was changed; `deermem migrate` makes it version 2",
            lambda error, root: f"{error.path if root is None else f'{root}/{error.path}'} {NOT_MIGRATED}",
        ),
        MigrationError: _Row(ExitCode.CORRUPT, "the source was kept", _told_of_file),
        ArchiveError: _Row(ExitCode.CORRUPT, "nothing of it was written; use another backup"),
        RestoreConflict: _Row(
            ExitCode.CONFLICT,
            "nothing was written; `--on-conflict skip` leaves them, `--on-conflict overwrite` replaces them",
        ),
        CommitInDoubt: _Row(
            ExitCode.IN_DOUBT, "once the disk works, `deermem status` completes it and shows the outcome"
        ),
        SearchIndexError: _Row(ExitCode.INDEX, "the facts are safe"),
        MemoryManagerError: _Row(ExitCode.FAILED, ""),
        MemoryConflictError: _Row(ExitCode.CONFLICT, "read again, then repeat the change"),
        MemoryCorruptionError: _Row(ExitCode.CORRUPT, lambda error: error.hint or _MEND),
        KeyboardInterrupt: _Row(ExitCode.INTERRUPTED, "", lambda *_: "interrupted"),
        OutputFailed: _Row(ExitCode.FAILED, "what the command did stays done"),
        CannotListen: _Row(
            ExitCode.FAILED,
            "name another address with --host, or another port with --port; 0 takes a free one",
        ),
        StoreDenied: _Row(ExitCode.DENIED, "", lambda error, _: str(error)),
        OSError: _Row(ExitCode.FAILED, _hint_of_disk, _told_of_disk),
        ModuleNotFoundError: _Row(
            ExitCode.FAILED,
            'if it is one of ours: pip install "deermem[cli]"',
            lambda error, _: f"the Python module {error.name} is missing",
        ),
        BaseException: _Row(ExitCode.FAILED, "please report it, with what you typed", _told_of_bug),
    }
)


def exit_code_of(error: type[BaseException]) -> ExitCode:
    """Returns the code that a kind of error leaves the process with."""
    return _row_of(error).code


def _hint_of_place(error: BaseException, storage_root: str | None) -> str:
    """Says where a fact's file belongs that lies in the wrong shard; empty for any other error."""
    from deermem.format.layout import fact_id_of, is_shard, shard_of

    parts = error.path.split("/") if isinstance(error, Corruption) else []
    if len(parts) < 4 or parts[-3] != "facts" or not is_shard(parts[-2]):
        return ""
    fact_id = fact_id_of(parts[-1])
    if fact_id is None or shard_of(fact_id) == parts[-2]:
        return ""
    place = "/".join((*([storage_root] if storage_root else []), *parts[:-2], shard_of(fact_id), parts[-1]))
    if os.path.lexists(place):
        return f"nothing was changed; {place} is there already: move one of them out of the store"
    return f"nothing was changed; move it to {place}"


def report_of(error: BaseException, storage_root: str | None = None) -> Report:
    """Tells what an error means to the user.

    Args:
        error: What a command raised.
        storage_root: Where the command worked, so that paths can be told in full.
    """
    row = _row_of(type(error))
    hint = row.hint if isinstance(row.hint, str) else row.hint(error)
    hint = _hint_of_place(error, storage_root) or hint
    return Report(type(error).__name__, row.told(error, storage_root), hint, row.code)


def _row_of(error: type[BaseException]) -> _Row:
    return next(_TABLE[kind] for kind in error.__mro__ if kind in _TABLE)
