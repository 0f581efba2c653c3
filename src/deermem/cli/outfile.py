"""The files that a command is given: one that it reads, and one that it writes its result to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from deermem.cli.exits import UsageError


def given_file(path: str) -> BinaryIO:
    """Opens a file to read it; an error names it in full, since it need not be in the store."""
    return open(os.path.abspath(path), "rb")


@contextmanager
def result_file(path: str, *, force: bool) -> Iterator[BinaryIO]:
    """Gives a new file, which gets its name when the block ends; its owner alone can read it.

    Raises:
        UsageError: The name is taken, and nobody said that it may be; or its directory is missing.
        OSError: The file cannot be written. What the system refuses without a name is told of as this file,
            so the block must not use the disk for anything else.
    """
    from deermem.storage.filesystem.private_file import new_private_file

    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.lexists(parent):
        raise UsageError(f"there is no directory {parent}", "make it first, or name another file")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} is there already", "add --force to replace it")
    try:
        with new_private_file(path, overwrite=force) as stream:
            yield stream
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.path.abspath(path)) from None
