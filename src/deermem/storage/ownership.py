"""Whose a directory is: a volume that belongs to another uid is a frequent reason why nothing works."""

from __future__ import annotations

import os
import shlex
import stat
from itertools import islice
from typing import Final

from deermem.format.layout import USERS
from deermem.storage.mounts import mounted_at

_MAX_LOOKED_AT: Final = 10_000


def foreign_owner(path: str) -> str:
    """Says what to do about a directory of another uid than this process has; empty if there is nothing.

    Windows has no uids, and what does not exist belongs to nobody.
    """
    if os.name != "posix" or not os.path.lexists(path):
        return ""
    return ownership_warning(path, os.stat(path).st_uid, os.geteuid(), is_writable(path))


def is_writable(path: str) -> bool:
    """Tells whether this process may make files in a directory."""
    return os.access(path, os.W_OK | os.X_OK)


def ownership_warning(path: str, owner: int, process: int, writable: bool) -> str:
    """Says what it means that a directory belongs to one uid while the process has another."""
    if owner == process:
        return ""
    command = f"chown -R {process} {shlex.quote(path)}"
    if writable:
        return (
            f"{path} belongs to uid {owner}, this process is uid {process}, and what one of them writes "
            f"the other cannot read: run as uid {owner}, or `{command}`"
        )
    # Nobody should run as root because a volume is root's.
    remedy = f"run as uid {owner}, or `{command}`" if owner else f"as root, `{command}`"
    return f"{path} belongs to uid {owner}, this process is uid {process} and cannot write there: {remedy}"


def why_unusable(root: str, *, writes: bool = True) -> str:
    """Says why this process cannot use a storage root, and what to do; empty if it can, or can make it.

    Args:
        root: The storage root, which need not exist.
        writes: Whether to write there, too; a directory that does not exist can be read as an empty store.
    """
    nearest = root
    while not os.path.lexists(nearest) and os.path.dirname(nearest) != nearest:
        nearest = os.path.dirname(nearest)
    if nearest != root:
        return _why_denied(nearest, writes=True) if writes else ""
    users = os.path.join(root, USERS)
    return _why_denied(root, writes) or (_why_denied(users, writes) if os.path.isdir(users) else "")


def unusable_users(root: str, *, writes: bool = True) -> list[str]:
    """Returns the directories of users that this process cannot use; looks at the first 10,000."""
    try:
        with os.scandir(os.path.join(root, USERS)) as entries:
            found = [
                each.path for each in islice(entries, _MAX_LOOKED_AT) if each.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
    return sorted(path for path in found if not os.access(path, _rights(writes)))


def _rights(writes: bool) -> int:
    return os.R_OK | os.X_OK | (os.W_OK if writes else 0)


def _why_denied(path: str, writes: bool) -> str:
    if not os.path.isdir(path):
        return f"{path} is not a directory"
    if os.access(path, _rights(writes)):
        return ""
    mount = mounted_at(path)
    if writes and mount is not None and mount.read_only:
        return f"{mount.point} is mounted read-only"
    if foreign := foreign_owner(path):
        return foreign
    mode = stat.S_IMODE(os.stat(path).st_mode)
    return f"{path} cannot be used with its mode {mode:04o}: `chmod u+rwx {shlex.quote(path)}`"
