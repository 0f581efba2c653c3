"""Which file system a directory lies on, and what that means for locks.

The judgements were measured, each with two hosts on one mount: whether a second host gets a lock that
the first one holds, and whether it reads what was just written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

_OCTAL: Final = re.compile(r"\\([0-7]{3})")

_LOCAL_LOCKS: Final = "locks do not reach other hosts here: use this store from one host only"
_UNKNOWN_LOCKS: Final = "locks may not reach other hosts here: use this store from one host only"
_CACHING: Final = "hosts see each other's changes late here, unless the mount is told not to cache"

# JuiceFS and GlusterFS share locks but serve stale names for about a second with their default options.
_WARNINGS: Final = {
    "fuse.sshfs": _LOCAL_LOCKS,
    "fuse.rclone": _LOCAL_LOCKS,
    "fuse.seaweedfs": _LOCAL_LOCKS,
    "fuse.fuse-nfs": _LOCAL_LOCKS,
    "fuse.glusterfs": _CACHING,
    "fuse.juicefs": _CACHING,
    "nfs": _UNKNOWN_LOCKS,
    "nfs4": _UNKNOWN_LOCKS,
    "cifs": _UNKNOWN_LOCKS,
    "smb3": _UNKNOWN_LOCKS,
    "9p": _UNKNOWN_LOCKS,
    "virtiofs": _UNKNOWN_LOCKS,
    "vboxsf": _UNKNOWN_LOCKS,
}
# Kernels read these from a device of this machine, or keep them in memory.
_LOCAL: Final = frozenset(
    ["bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"]
)
_LOCAL_BY_OPTION: Final = frozenset(["nolock", "local_lock=all", "local_lock=flock", "local_lock=posix"])


class Mount(NamedTuple):
    """Is one line of the system's table of mounts."""

    point: str
    type: str
    source: str
    options: tuple[str, ...]

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written."""
        return "ro" in self.options


def parse_mountinfo(text: str) -> list[Mount]:
    """Reads `/proc/self/mountinfo` (proc(5)); lines of another form are left out."""
    mounts: list[Mount] = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, about = before.split(), after.split()
        if separator and len(fields) >= 6 and len(about) >= 2:
            options = (*fields[5].split(","), *(about[2].split(",") if len(about) > 2 else ()))
            mounts.append(Mount(_unescaped(fields[4]), about[0], _unescaped(about[1]), options))
    return mounts


def mounted() -> list[Mount]:
    """Returns what is mounted; nothing where the system has no table of mounts."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return parse_mountinfo(file.read())
    except OSError:
        return []


def mounted_at(path: str) -> Mount | None:
    """Returns the mount that a directory lies on; `None` where the system has no table of mounts."""
    return mount_of(os.path.realpath(path), mounted())


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """Returns the mount that an absolute path lies on: the deepest, and of equals the last one made."""
    best: Mount | None = None
    for mount in mounts:
        covers = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if covers and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def is_local(path: str) -> bool:
    """Tells whether a directory lies on disks of this machine, see `lies_on_local_disks`."""
    return lies_on_local_disks(os.path.realpath(path), mounted())


def lies_on_local_disks(path: str, mounts: Sequence[Mount]) -> bool:
    """Tells whether an absolute path and all below it lie on disks that no other machine serves.

    `False` where the system does not tell, and for a file system that nothing is known of.
    """
    at = mount_of(path, mounts)
    below = path.rstrip("/") + "/"
    return (
        at is not None
        and at.type in _LOCAL
        and all(mount.type in _LOCAL for mount in mounts if mount.point.startswith(below))
    )


def lock_warning(mount: Mount) -> str | None:
    """Returns what to mind when several hosts use a store on this mount; `None` if nothing is known."""
    if mount.type in ("nfs", "nfs4") and not _LOCAL_BY_OPTION.isdisjoint(mount.options):
        return _LOCAL_LOCKS
    return _WARNINGS.get(mount.type)


def _unescaped(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
