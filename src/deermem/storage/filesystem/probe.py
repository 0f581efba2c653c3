"""Tries on a storage root what the store relies on: locks, renames, syncs, time stamps, names.

Everything happens in a directory of its own in the root, which is removed at the end; user buckets are not
touched. What a second host sees cannot be found out from here; for that there is what is known of the type
of file system (`storage/mounts.py`).
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deermem.storage.filesystem.calls import NO_DIRECTORY_SYNC
from deermem.storage.lock_files import try_lock, unlock
from deermem.storage.mounts import Mount, lock_warning, mounted_at
from deermem.storage.ownership import foreign_owner, is_writable, why_unusable

PREFIX: Final = ".deermem-probe-"
_ABANDONED_SECONDS: Final = 3_600
# A time that shows which part of a time stamp is kept; an odd second, since FAT keeps even ones.
_SECOND: Final = 1_700_000_001
_FRACTION: Final = 123_456_789
_UNITS: Final = (1, 100, 1_000, 1_000_000, 10_000_000, 1_000_000_000)
_COARSE_NS: Final = 1_000_000_000
_LOST: Final = "a loss of power may undo what was written"

_log = logging.getLogger(__name__)
_told: set[str] = set()


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """Says what a storage root's file system does; `None` where it was not tried.

    Attributes:
        root: The storage root.
        skipped: Why nothing was tried; empty if it was.
        failure: What kept it from being tried to the end, if the disk or a permission did.
        locks: Whether two descriptors of one lock file exclude each other, and a closed one frees the lock.
        replaces: Whether a rename replaces the file that has the name.
        syncs_files: Whether a file can be synced.
        syncs_directories: Whether a directory can be; else new names are durable only when the system says.
        timestamp_ns: The distance of two modification times that are kept apart.
        ignores_case: Whether names that differ in case are one.
        mount: What the root lies on; known on Linux only.
        advice: What to do about the owner of the root; empty if nothing.
        seconds: How long it took.
    """

    root: str
    skipped: str = ""
    failure: str = ""
    locks: bool | None = None
    replaces: bool | None = None
    syncs_files: bool | None = None
    syncs_directories: bool | None = None
    timestamp_ns: int | None = None
    ignores_case: bool | None = None
    mount: Mount | None = None
    advice: str = ""
    seconds: float = 0.0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to mind, each in a sentence; empty if the store can rely on all it needs."""
        found = [
            (bool(self.failure), self.failure),
            (self.locks is False, "locks do not work here: two writers can overwrite each other"),
            (self.replaces is False, "a rename does not replace a file here: nothing can be stored safely"),
            (self.syncs_files is False, f"files cannot be synced here: {_LOST}"),
            (self.syncs_directories is False, f"directories cannot be synced here: {_LOST}"),
            (
                (self.timestamp_ns or 0) >= _COARSE_NS,
                "time stamps move in whole seconds here: more is read again than would be needed",
            ),
        ]
        texts = [f"{self.root}: {text}" for holds, text in found if holds]
        if self.mount is not None and (known := lock_warning(self.mount)):
            texts.append(f"{self.root} is on {self.mount.type}: {known}")
        return (*texts, *([self.advice] if self.advice else []))


def probe(root: str) -> ProbeReport:
    """Tries what the store relies on; takes some milliseconds on a local disk.

    A root that does not exist, or that this process may not write, is left alone.
    """
    start = time.perf_counter()
    mount, advice = mounted_at(root), foreign_owner(root)

    def untried(skipped: str, failure: str = "") -> ProbeReport:
        seconds = time.perf_counter() - start
        return ProbeReport(root, skipped, failure, mount=mount, advice=advice, seconds=seconds)

    if not os.path.lexists(root):
        nearest = _nearest(root)
        if is_writable(nearest):
            return untried("there is no such directory yet")
        advice = why_unusable(root)
        return untried("", f"it cannot be made, since {nearest} cannot be written")
    if mount is not None and mount.read_only:
        return untried(f"{mount.point} is mounted read-only")
    try:
        with _workshop(Path(root)) as directory:
            return ProbeReport(
                root,
                locks=_excludes(directory),
                replaces=_replaces(directory),
                syncs_files=_works(lambda: _sync(directory / "new")),
                syncs_directories=_syncs_directories(directory),
                timestamp_ns=_timestamp_unit(directory / "new"),
                ignores_case=os.path.lexists(directory / "NEW"),
                mount=mount,
                advice=advice,
                seconds=time.perf_counter() - start,
            )
    except OSError as error:
        return untried("", f"it cannot be written: {error.strerror}")


def warn_once(root: str) -> None:
    """Logs what a storage root lacks, the first time that this process looks at it."""
    if root in _told:
        return
    report = probe(root)
    if os.path.lexists(root) or report.failure:
        _told.add(root)
    for text in report.warnings:
        _log.warning("%s", text)


def _nearest(path: str) -> str:
    """Returns the nearest directory above a path that exists."""
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


@contextmanager
def _workshop(root: Path) -> Iterator[Path]:
    """Makes a directory to work in, and removes it, also those that killed probes have left."""
    for name in os.listdir(root):
        if name.startswith(PREFIX):
            with suppress(OSError):
                if time.time() - os.lstat(root / name).st_mtime > _ABANDONED_SECONDS:
                    _remove(root / name)
    directory = root / f"{PREFIX}{secrets.token_hex(8)}"
    os.mkdir(directory, 0o700)
    try:
        (directory / "new").write_bytes(b"new")
        yield directory
    finally:
        _remove(directory)


def _remove(directory: Path) -> None:
    """Removes a probe's directory; there are only files in it, and no link is followed."""
    if not stat.S_ISDIR(os.lstat(directory).st_mode):
        return
    for name in os.listdir(directory):
        with suppress(OSError):
            os.unlink(directory / name)
    with suppress(OSError):
        os.rmdir(directory)


def _excludes(directory: Path) -> bool:
    """Tells whether two descriptors of one lock file exclude each other.

    Each opening holds a lock of its own, so this says the same as two processes would.
    """
    path = directory / "lock"
    first = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        second = os.open(path, os.O_RDWR)
        try:
            if not try_lock(first) or try_lock(second):
                return False
            unlock(first)
            return try_lock(second)
        finally:
            os.close(second)
    except OSError:
        return False
    finally:
        os.close(first)


def _replaces(directory: Path) -> bool:
    try:
        (directory / "old").write_bytes(b"old")
        (directory / "next").write_bytes(b"next")
        os.replace(directory / "next", directory / "old")
        return (directory / "old").read_bytes() == b"next" and not os.path.lexists(directory / "next")
    except OSError:
        return False


def _works(call: Callable[[], None]) -> bool:
    try:
        call()
    except OSError:
        return False
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _syncs_directories(directory: Path) -> bool | None:
    """Tells whether a directory can be synced; Windows has no such call and keeps names by itself."""
    if os.name == "nt":
        return None
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno in NO_DIRECTORY_SYNC:
            return False
        raise
    finally:
        os.close(descriptor)
    return True


def _timestamp_unit(path: Path) -> int | None:
    """Returns how exactly a modification time is kept, in nanoseconds."""
    wanted = _SECOND * 1_000_000_000 + _FRACTION
    try:
        os.utime(path, ns=(wanted, wanted))
        kept = os.stat(path).st_mtime_ns
    except OSError:
        return None
    for unit in _UNITS:
        if kept == wanted // unit * unit:
            return unit
    return 2_000_000_000
