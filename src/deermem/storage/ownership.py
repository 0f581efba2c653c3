"""Whose a directory is: a volume that belongs to another uid is a frequent reason why nothing works."""

from __future__ import annotations

import os
import shlex
import stat
from enum import Enum
from itertools import islice
from typing import Final

from deermem.format.layout import AGENTS, DEFAULT_MANIFEST, ERASED, LOCK, USERS
from deermem.storage.mounts import mounted_at

_MAX_LOOKED_AT: Final = 10_000
_ELSEWHERE: Final = "name a directory elsewhere with --storage-path or DEERMEM_DATA_DIR"
# A new volume has the first; any of the second shows that a directory is a store.
_NOTHING: Final = frozenset(["lost+found"])
_OF_STORE: Final = frozenset([USERS, DEFAULT_MANIFEST, AGENTS, ERASED, LOCK])


def foreign_owner(path: str, *, is_root: bool = True) -> str:
    """Says what to do about a directory of another uid than this process has; empty if there is nothing.

    Windows has no uids, and what does not exist belongs to nobody.

    Args:
        path: The directory.
        is_root: Whether it is a storage root, which may turn out to be a directory of something else.
    """
    if os.name != "posix" or not os.path.lexists(path):
        return ""
    holds = _contents(path) if is_root else Contents.STORE
    return ownership_warning(path, os.stat(path).st_uid, os.geteuid(), is_writable(path), holds)


def is_writable(path: str) -> bool:
    """Tells whether this process may make files in a directory."""
    return os.access(path, os.W_OK | os.X_OK)


class Contents(Enum):
    """Says what lies in a directory that is to be a storage root."""

    STORE = "a store, or nothing"
    UNKNOWN = "it cannot be listed"
    OTHER = "something else"


def _contents(path: str) -> Contents:
    try:
        names = set(os.listdir(path))
    except OSError:
        return Contents.UNKNOWN
    return Contents.STORE if names <= _NOTHING or names & _OF_STORE else Contents.OTHER


def ownership_warning(
    path: str, owner: int, process: int, writable: bool, holds: Contents = Contents.STORE
) -> str:
    """Says what it means that a directory belongs to one uid while the process has another.

    Nobody is told to give away a directory that holds other things than a store.
    """
    if owner == process:
        return ""
    state = f"{path} belongs to uid {owner}, this process is uid {process}"
    if holds is Contents.OTHER:
        denied = "" if writable else " and cannot write there"
        return f"{state}{denied}, and it holds other things than a store: name a directory of its own"
    command = f"`chown -R {process} {shlex.quote(path)}`"
    if holds is Contents.UNKNOWN:
        command += " if nothing but a store is in it"
    # Nobody should run as root because a volume is root's, nor give a service's store to root.
    remedy = f"run as uid {owner}, or {command}" if owner else f"as root, {command}"
    if not writable:
        return f"{state} and cannot write there: {remedy}"
    if not process:
        mend = f"`chown -R {owner} {shlex.quote(path)}`"
        remedy = f"run as uid {owner}, and mend what was written with {mend}"
    return f"{state}, and what one of them writes the other cannot read: {remedy}"


def denied_owner(path: str, root: str) -> str:
    """Says whose a file or directory of a store is that this process may not use, and what mends it.

    Args:
        path: What the system refuses.
        root: The storage root.

    Returns:
        A sentence; empty where nobody can tell.
    """
    if os.name != "posix":
        return ""
    try:
        found, whole = os.lstat(path), os.lstat(root)
    except OSError:
        return ""
    process = os.geteuid()
    if found.st_uid == process:
        mode, needed = stat.S_IMODE(found.st_mode), 0o700 if stat.S_ISDIR(found.st_mode) else 0o600
        if mode & needed == needed:
            return ""  # it is not the mode that shuts the owner out
        return f"{path} cannot be used with its mode {mode:04o}: `chmod u+rwX {shlex.quote(path)}`"
    command = f"chown -R {whole.st_uid} {shlex.quote(root)}"
    return f"{path} belongs to uid {found.st_uid}, this process is uid {process}: as root, `{command}`"


def closed_above(path: str) -> str:
    """Returns the first directory on the way to a path that this process may not enter; empty if none."""
    above: list[str] = []
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        above.append(path)
    return next(
        (each for each in reversed(above) if os.path.isdir(each) and not os.access(each, os.X_OK)), ""
    )


def why_unusable(root: str, *, writes: bool = True) -> str:
    """Says why this process cannot use a storage root, and what to do; empty if it can, or can make it.

    Args:
        root: The storage root, which need not exist.
        writes: Whether to write there, too; a directory that does not exist can be read as an empty store.
    """
    if closed := closed_above(root):
        return _why_closed(closed)
    nearest = root
    while not os.path.lexists(nearest) and os.path.dirname(nearest) != nearest:
        nearest = os.path.dirname(nearest)
    if nearest != root:
        return _why_not_made(root, nearest) if writes else ""
    users = os.path.join(root, USERS)
    return _why_denied(root, writes) or (
        _why_denied(users, writes, is_root=False) if os.path.isdir(users) else ""
    )


def _why_closed(path: str) -> str:
    if os.name != "posix":
        return f"{path} cannot be entered: {_ELSEWHERE}"
    owner, process = os.stat(path).st_uid, os.geteuid()
    return f"{path} belongs to uid {owner}, and this process, uid {process}, may not enter it: {_ELSEWHERE}"


def _why_not_made(root: str, nearest: str) -> str:
    """Says why a root cannot be made; what is to be given away is the new directory, never one above it."""
    if os.path.isdir(nearest) and is_writable(nearest):
        return ""
    mount = mounted_at(nearest)
    if os.name != "posix" or not os.path.isdir(nearest) or (mount is not None and mount.read_only):
        return _why_denied(nearest, writes=True)
    quoted, process = shlex.quote(root), os.geteuid()
    return (
        f"{root} does not exist, and this process, uid {process}, may not make it in {nearest}: as root, "
        f"`mkdir -p {quoted} && chown {process} {quoted}`, or {_ELSEWHERE}"
    )


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


def _why_denied(path: str, writes: bool, *, is_root: bool = True) -> str:
    if not os.path.isdir(path):
        return f"{path} is not a directory"
    if os.access(path, _rights(writes)):
        return ""
    mount = mounted_at(path)
    if writes and mount is not None and mount.read_only:
        return f"{mount.point} is mounted read-only"
    if foreign := foreign_owner(path, is_root=is_root):
        return foreign
    mode = stat.S_IMODE(os.stat(path).st_mode)
    return f"{path} cannot be used with its mode {mode:04o}: `chmod u+rwx {shlex.quote(path)}`"
