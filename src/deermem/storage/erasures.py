"""What stays of an erased user: one number, so that no writer brings back what it had read before."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from deermem.format.erasure_json import MAX_ERASURE_BYTES, decode_erasure, encode_erasure
from deermem.format.layout import ERASED, erasure_name
from deermem.model.identity import UserId
from deermem.storage.opening import trusted
from deermem.storage.port import FileSystem

_STAGED: Final = ".new"


def erased_at(file_system: FileSystem, user: UserId) -> int:
    """Returns the revision that the user's memory had when it was erased last, 0 if it never was.

    Raises:
        Corruption: The file that says so cannot be trusted.
    """
    name = erasure_name(user)
    try:
        with trusted(), file_system.open_root() as root, root.child(ERASED) as erasures:
            data, _ = erasures.read(name, MAX_ERASURE_BYTES)
    except FileNotFoundError:
        return 0
    return decode_erasure(data, f"{ERASED}/{name}")


def note_erasure(file_system: FileSystem, user: UserId, revision: int) -> None:
    """Notes durably that a user is erased at a revision; the caller holds the user's lock."""
    name = erasure_name(user)
    with trusted(), file_system.open_root() as root:
        root.make_child(ERASED)
        with root.child(ERASED) as erasures:
            with suppress(FileNotFoundError):
                erasures.unlink(name + _STAGED)
            erasures.create(name + _STAGED, encode_erasure(revision))
            erasures.rename(name + _STAGED, erasures, name)
            erasures.sync()
        root.sync()
