"""The file that a command writes its result to."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import BinaryIO

from deermem.cli.exits import UsageError


def result_file(path: str, *, force: bool) -> AbstractContextManager[BinaryIO]:
    """Gives a new file, which gets its name when the block ends; its owner alone can read it.

    Raises:
        UsageError: The name is taken, and nobody said that it may be.
    """
    from deermem.storage.filesystem.private_file import new_private_file

    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} is there already", "add --force to replace it")
    return new_private_file(path, overwrite=force)
