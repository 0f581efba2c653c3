"""Single calls on open files, with what each system needs around them."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from deermem.storage.port import EntryKind, EntryStatus, FileIdentity, make_identity

# Answers of file systems that have no sync of directories at all (FUSE and some network mounts).
NO_DIRECTORY_SYNC: Final = frozenset([errno.EINVAL, errno.ENOTSUP])
# The same of the stronger sync of macOS, for files and directories.
NO_FULL_SYNC: Final = frozenset([errno.EINVAL, errno.ENOTSUP, errno.ENOTTY])


def identity_of(status: os.stat_result) -> FileIdentity | None:
    """Returns the identity that a status shows; `None` for what is no regular file."""
    if not stat.S_ISREG(status.st_mode):
        return None
    return make_identity((status.st_ino, status.st_size, status.st_mtime_ns))


def status_of(status: os.stat_result, directory_mode: int, file_mode: int) -> EntryStatus:
    """Returns what a status shows; links have no permissions of their own."""
    mode = status.st_mode
    excess = 0
    if stat.S_ISREG(mode):
        kind, excess = EntryKind.FILE, mode & 0o777 & ~file_mode
    elif stat.S_ISDIR(mode):
        kind, excess = EntryKind.DIRECTORY, mode & 0o777 & ~directory_mode
    else:
        kind = EntryKind.LINK if stat.S_ISLNK(mode) else EntryKind.OTHER
    return EntryStatus(kind, identity_of(status), excess)


def read_on(descriptor: int, data: bytes, limit: int) -> bytes:
    """Reads the rest of an open file, to its end or to one read beyond `limit`.

    For a file that grew or shrank under the reader, as one does that an editor writes in place.
    """
    parts = [data]
    total = len(data)
    while data and total <= limit:
        data = os.read(descriptor, 1 << 20)
        parts.append(data)
        total += len(data)
    return b"".join(parts)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all bytes, in as many calls as the system needs."""
    written = os.write(descriptor, data)
    view = memoryview(data)
    while written < len(data):
        written += os.write(descriptor, view[written:])


def start_writing_back(descriptor: int) -> None:
    """Lets the system begin to write what is to be synced soon; only a hint, where there is one."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def sync_data(descriptor: int) -> None:
    """Makes what was written to a descriptor durable."""
    if sys.platform == "darwin":
        import fcntl

        # fsync on macOS leaves the data in the drive's cache; some file systems lack the stronger call.
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:
            # A sync that failed must not be tried again: the second one may succeed without the data.
            if error.errno not in NO_FULL_SYNC:
                raise
        else:
            return
    os.fsync(descriptor)


def sync_directory(descriptor: int) -> None:
    """Makes the names in an open directory durable, where the file system can."""
    try:
        sync_data(descriptor)
    except OSError as error:
        if error.errno not in NO_DIRECTORY_SYNC:
            raise


def sync_directory_at(path: Path) -> None:
    """Makes the names in the directory at a path durable."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        sync_directory(descriptor)
    finally:
        os.close(descriptor)
