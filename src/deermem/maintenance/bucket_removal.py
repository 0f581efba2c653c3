"""The steps of removing a user bucket from disk; the caller holds the user's lock.

Why each step stands where it stands is written down in `docs/internals/erasing-a-user.md`.
"""

from __future__ import annotations

import errno
import re
from contextlib import suppress
from typing import Final

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.journal_json import MAX_JOURNAL_BYTES, Parts, staged_name
from deermem.format.layout import FENCES, JOURNAL, LOCK, bucket_parts
from deermem.maintenance.belongings import Belongings
from deermem.model.rules import MAX_COUNT
from deermem.storage.bucket import Bucket
from deermem.storage.erasures import erased_at, note_erasure
from deermem.storage.port import FileSystem, UnexpectedFileType

# No version of the store reads this as a memory, nor acts on a journal beside it.
_UNREADABLE: Final = b'{"version": "erasing"}\n'
_NOT_EMPTY: Final = frozenset([errno.ENOTEMPTY, errno.EEXIST])
_REVISION: Final = re.compile(rb'"(?:everything|(?:next|expected|base)?[rR]evision)"\s*:\s*(\d{1,15})')
# The revision of a memory that cannot be read may be far above all that its files name.
_MARGIN: Final = 1_000_000


def make_unreadable(bucket: Bucket, operation: str) -> None:
    """Replaces a memory that cannot be cleared, so that nothing of it passes for a state meanwhile."""
    staged = staged_name(operation, 0)
    bucket.directory.create(staged, _UNREADABLE)
    try:
        bucket.directory.rename(staged, bucket.directory, bucket.manifest_name)
    except (IsADirectoryError, UnexpectedFileType):
        # A directory in place of memory.json cannot be read either.
        bucket.directory.unlink(staged)
    bucket.directory.sync()


def highest_revision(file_system: FileSystem, bucket: Bucket) -> int:
    """Returns a revision that no reader of a damaged memory has seen a later one than."""
    found = [0]
    unknown = True
    with suppress(Corruption, UnsupportedFormat):
        found.append(erased_at(file_system, bucket.user))
    with suppress(Corruption, UnsupportedFormat):
        revision = bucket.manifest_on_disk()[1]
        unknown = revision is None
        found.append(revision or 0)
    for name in (bucket.manifest_name, JOURNAL, FENCES):
        with suppress(FileNotFoundError, UnexpectedFileType):
            data, _ = bucket.directory.read(name, MAX_JOURNAL_BYTES)
            found += map(int, _REVISION.findall(data))
    return min(max(found) + (_MARGIN if unknown else 1), MAX_COUNT - 1)


def remove_files(file_system: FileSystem, bucket: Bucket, found: Belongings, revision: int) -> None:
    """Removes what was found, what says in which state the bucket is last of all."""
    note_revision(file_system, bucket, revision)
    _remove_all(bucket, found)
    for name in last_names(bucket.manifest_name):
        if (name,) in found.settled:
            with suppress(FileNotFoundError):
                bucket.directory.unlink(name)
            bucket.directory.sync()


def last_names(manifest_name: str) -> tuple[str, ...]:
    """Returns the files that say in which state a bucket is, in the order in which they may go.

    Beside a journal `memory.json` decides what becomes of it; and while `memory.json` names the revision of
    the clear, the fences alone keep late writers out.
    """
    return JOURNAL, manifest_name, FENCES


def note_revision(file_system: FileSystem, bucket: Bucket, revision: int) -> None:
    """Notes durably how far the memory had come, unless that is known."""
    known = 0
    with suppress(Corruption):
        known = erased_at(file_system, bucket.user)
    if revision > known:
        note_erasure(file_system, bucket.user, revision)


def remove_lock(file_system: FileSystem, bucket: Bucket) -> bool:
    """Removes the lock file, and the bucket if nothing is left in it; tells whether it is gone.

    From the first step on somebody else may have the lock, so nothing but that may follow.
    """
    with suppress(FileNotFoundError):
        bucket.directory.unlink(LOCK)
    parts = bucket_parts(bucket.user)
    if not parts:
        bucket.directory.sync()
        return False
    with file_system.open_root() as root, root.child(parts[0]) as users:
        try:
            users.remove_child(parts[1])
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise
            bucket.directory.sync()
            return False
        users.sync()
        return True


def _remove_all(bucket: Bucket, found: Belongings) -> None:
    """Removes files and links, then the directories that are empty, and makes that durable."""
    touched: dict[Parts, None] = {}
    for parts in (*found.files, *found.links):
        with suppress(FileNotFoundError), bucket.directory_at(parts[:-1]) as directory:
            touched[parts[:-1]] = None
            directory.unlink(parts[-1])
    for parts in found.directories:
        try:
            with bucket.directory_at(parts[:-1]) as directory:
                directory.remove_child(parts[-1])
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise
            continue
        touched.pop(parts, None)
        touched[parts[:-1]] = None
    for parts in touched:
        with bucket.directory_at(parts) as directory:
            directory.sync()
