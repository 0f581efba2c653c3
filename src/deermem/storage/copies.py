"""Durable copies that are made before something is replaced: backups of version 1, and what is set aside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from deermem.errors import MigrationError
from deermem.format.journal_json import Parts
from deermem.format.layout import BACKUP_SUFFIX
from deermem.format.legacy_json import MAX_LEGACY_BYTES
from deermem.storage.bucket import Bucket
from deermem.storage.journal import replace_file, sync_above
from deermem.storage.opening import trusted

_MAX_COPY_BYTES: Final = 500_000_000


@dataclass(frozen=True, slots=True)
class Superseded:
    """Is what a transaction takes the place of, beside what it was asked to change.

    `sources` are files of version 1, with their bytes: each is backed up first, and those of agents are
    removed. `leaving` are files to remove beside, of which there are copies. `base` is the `memory.json`
    that is replaced, if that is of version 1.
    """

    sources: tuple[tuple[Parts, bytes], ...] = ()
    leaving: tuple[Parts, ...] = ()
    base: bytes | None = None

    @classmethod
    def of(
        cls, sources: Iterable[tuple[Parts, bytes]], manifest_name: str, leaving: Iterable[Parts] = ()
    ) -> Superseded:
        """Collects files of version 1, the user's `memory.json` perhaps among them."""
        sources = tuple(sources)
        return cls(sources, tuple(leaving), dict(sources).get((manifest_name,)))

    def removed(self) -> set[Parts]:
        """Returns the files that go."""
        return {parts for parts, _ in self.sources if len(parts) > 1}.union(self.leaving)

    def digests(self) -> dict[str, str]:
        """Returns the SHA-256 of each file of version 1, by its path below the bucket."""
        return {"/".join(parts): sha256(data).hexdigest() for parts, data in self.sources}


NOTHING: Final = Superseded()


def backup_parts(source: Parts) -> Parts:
    """Returns where the backup of a version-1 file lies: beside it."""
    return (*source[:-1], source[-1] + BACKUP_SUFFIX)


def back_up(bucket: Bucket, operation: str, sources: Iterable[tuple[Parts, bytes]]) -> None:
    """Keeps version-1 files beside themselves, durably, before they are replaced (plan section 10).

    A backup that is there already is never overwritten.

    Raises:
        MigrationError: Another backup is there; nothing was changed.
        OSError: A backup could not be written; the sources are as they were.
    """
    for source, data in sources:
        check_backup(bucket, source, data)
        put(bucket, operation, backup_parts(source), data, beside_old=True)


def check_backup(bucket: Bucket, source: Parts, data: bytes) -> bool:
    """Makes sure that no other backup is in the way; tells whether this one is there already.

    Raises:
        MigrationError: There is one.
    """
    target = backup_parts(source)
    try:
        with bucket.directory_at(target[:-1]) as directory, trusted():
            found, _ = directory.read(target[-1], MAX_LEGACY_BYTES)
    except FileNotFoundError:
        return False
    if found != data:
        reason = "differs from the file that it would back up; move it away and migrate again"
        raise MigrationError(bucket.path_of(target), reason)
    return True


def put(bucket: Bucket, operation: str, target: Parts, data: bytes, *, beside_old: bool = False) -> None:
    """Writes a new file so that it is there as a whole and durable, or not at all.

    The caller holds the user's lock. Directories on the way are made. What is there with the same
    bytes is made durable once more: a writer may have been killed before it was.

    Args:
        bucket: The user's bucket.
        operation: 32 hex digits that no other transaction has.
        target: Where the file belongs.
        data: What it holds.
        beside_old: Whether the directory holds a file whose transaction made the way to it durable.

    Raises:
        FileExistsError: A file with other bytes is there; it was not touched.
    """
    parts = target[:-1]
    with bucket.directory_at(parts, make=True) as directory:
        if target[-1] in directory.names():
            with trusted():
                found, _ = directory.read(target[-1], _MAX_COPY_BYTES)
            if found != data:
                raise FileExistsError(f"{bucket.path_of(target)} is there already")
        else:
            replace_file(bucket, operation, directory, target[-1], data)
        directory.sync()
    if not beside_old:
        sync_above(bucket, parts, len(parts))
