"""File systems on image files, mounted through loop devices."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

_MEGABYTE: Final = 1 << 20


class Kind(NamedTuple):
    """Says how a file system is made."""

    megabytes: int
    command: tuple[str, ...]


# The smallest images that the tools make without being talked into it.
KINDS: Final = {
    "ext4": Kind(64, ("mkfs.ext4", "-q", "-F")),
    "xfs": Kind(300, ("mkfs.xfs", "-q", "-f")),
    "btrfs": Kind(128, ("mkfs.btrfs", "-q", "-f")),
}


def keep_in_memory(place: Path) -> None:
    """Keeps what is written to a directory in memory, since waiting for the machine's disk proves nothing."""
    run("mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", str(place))


def make_image(path: Path, kind: str) -> None:
    """Makes an image with an empty file system on it."""
    path.touch()
    os.truncate(path, KINDS[kind].megabytes * _MEGABYTE)
    run(*KINDS[kind].command, str(path))


def copy_image(image: Path, copy: Path) -> None:
    """Copies an image; its holes stay holes."""
    run("cp", "--sparse=always", str(image), str(copy))


@contextmanager
def mounted(image: Path, kind: str) -> Iterator[Path]:
    """Mounts an image beside it, and so lets the file system recover itself."""
    point = image.with_name(f"{image.name}.mounted")
    point.mkdir(exist_ok=True)
    if kind == "btrfs":
        # It remembers images that it saw, and would refuse an earlier state of one.
        run("btrfs", "device", "scan", "--forget")
    run("mount", "-o", "loop", "-t", kind, str(image), str(point))
    try:
        yield point
    finally:
        run("umount", str(point))


def run(*command: str) -> None:
    """Runs a command; what it says is the error if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
