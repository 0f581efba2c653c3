"""Which users there are."""

from __future__ import annotations

from deermem.format.layout import USERS
from deermem.model.identity import is_bucket_name
from deermem.storage.bucket import trusted
from deermem.storage.port import FileSystem


def list_buckets(file_system: FileSystem) -> tuple[str, ...]:
    """Returns the names of all user buckets, sorted; other entries of `users` are left out."""
    with trusted():
        try:
            root = file_system.open_root()
        except FileNotFoundError:
            return ()
        with root:
            try:
                users = root.child(USERS)
            except FileNotFoundError:
                return ()
            with users:
                entries = users.identities().items()
                return tuple(sorted(name for name, file in entries if file is None and is_bucket_name(name)))
