"""A file outside the storage root that is written in one go and read by its owner alone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Final

from deermem.storage.filesystem.calls import sync_data, sync_directory_at

_MODE: Final = 0o600
_FLAGS: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


@contextmanager
def new_private_file(path: str, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Gives a file to write to, which gets its name when the block ends, durable and with mode 0600.

    Until then it has a name of its own beside that one; when the block raises, nothing is left.

    Args:
        path: The name that it gets; the directory has to be there.
        overwrite: Whether a file that has the name may be replaced.

    Raises:
        FileExistsError: The name is taken.
        OSError: The disk failed; what had the name before still has it.
    """
    final = os.path.abspath(path)
    _refuse_taken(final, overwrite)
    folder, name = os.path.split(final)
    temporary = os.path.join(folder, f".{name[:100]}.{token_hex(8)}.part")
    descriptor = os.open(temporary, _FLAGS, _MODE)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            sync_data(file.fileno())
        _refuse_taken(final, overwrite)
        os.replace(temporary, final)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_directory_at(Path(folder))


def _refuse_taken(path: str, overwrite: bool) -> None:
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
