"""Whose a directory is: a volume that belongs to another uid is a frequent reason why nothing works."""

from __future__ import annotations

import os


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
    command = f"chown -R {process} {path}"
    if writable:
        return (
            f"{path} belongs to uid {owner}, this process is uid {process}, and what one of them writes "
            f"the other cannot read: run as uid {owner}, or `{command}`"
        )
    return (
        f"{path} belongs to uid {owner}, this process is uid {process} and cannot write there: "
        f"run as uid {owner}, or `{command}`"
    )
