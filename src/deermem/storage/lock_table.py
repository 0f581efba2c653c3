"""Who holds or awaits a lock file, where the system tells: on Linux, of the processes of this host."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_TABLE: Final = Path("/proc/locks")
_WAITING: Final = "->"
_KIND: Final = "FLOCK"


class LockEntry(NamedTuple):
    """Is one line of the table: a process that holds a lock on a file, or waits for it."""

    inode: int
    device: tuple[int, int]
    pid: int
    waiting: bool


def parse_locks(text: str) -> list[LockEntry]:
    """Reads `/proc/locks` (proc(5)); other kinds of locks and lines of another form are left out."""
    entries: list[LockEntry] = []
    for line in text.splitlines():
        words = line.split()
        waiting = _WAITING in words
        with suppress(ValueError, IndexError):
            kind, _, _, pid, file = [word for word in words[1:] if word != _WAITING][:5]
            major, minor, inode = file.split(":")
            if kind == _KIND:
                device = (int(major, 16), int(minor, 16))
                entries.append(LockEntry(int(inode), device, int(pid), waiting))
    return entries


def locks_on(inode: int, device: int | None, entries: Iterable[LockEntry]) -> list[LockEntry]:
    """Returns the entries of one file.

    Some file systems show processes another device than the table does; then the inode has to do.
    """
    same = [entry for entry in entries if entry.inode == inode]
    if device is None or not hasattr(os, "major"):
        return same
    pair = (os.major(device), os.minor(device))
    return [entry for entry in same if entry.device == pair] or same


def read_table() -> list[LockEntry] | None:
    """Returns all locks of this host's processes; `None` where the system does not tell."""
    try:
        return parse_locks(_TABLE.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None


def command_of(pid: int) -> str | None:
    """Returns the name of a process; `None` where the system does not tell."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
