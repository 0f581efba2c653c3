"""Whether a store can be used, before a server says that it serves it."""

from __future__ import annotations

import logging

from deermem.cli.exits import StoreDenied
from deermem.storage.ownership import foreign_owner, unusable_users, why_unusable

_log = logging.getLogger(__name__)


def check_store(root: str, *, writes: bool = True) -> None:
    """Refuses a storage root that this process may not use; logs which users' directories it may not.

    A server that started all the same would answer every request with an error that only its log explains.

    Args:
        root: The storage root; one that does not exist is fine where it can be made.
        writes: Whether the server is to write.

    Raises:
        StoreDenied: Says who owns what, who this process is, and which command helps.
    """
    if reason := why_unusable(root, writes=writes):
        raise StoreDenied(reason)
    denied = unusable_users(root, writes=writes)
    if denied:
        _log.warning(
            "directories of users that cannot be used: %d, the first of them: %s",
            len(denied),
            foreign_owner(denied[0], is_root=False) or denied[0],
        )
