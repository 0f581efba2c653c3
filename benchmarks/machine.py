"""The machine that a run measures on."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

IN_MEMORY: Final = frozenset(["tmpfs", "ramfs", "ramdisk"])


def describe(folder: Path) -> dict[str, Any]:
    """Returns what somebody needs to know who compares two runs."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "deermem": version_of("deermem"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "file_system": file_system_of(folder),
    }


def version_of(package: str) -> str:
    """Returns the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def file_system_of(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Returns the type of the file system that a folder is on, `unknown` where the system is silent."""
    try:
        lines = mounts.read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    found = (Path(), "unknown")
    for line in lines:
        words = line.split()
        point = Path(words[4].encode("ascii", "replace").decode("unicode_escape"))
        # Of several mounts on one point the last one counts.
        if folder.resolve().is_relative_to(point) and len(point.parts) >= len(found[0].parts):
            found = (point, words[words.index("-") + 1])
    return found[1]


@contextmanager
def urgent(wanted: bool) -> Iterator[None]:
    """Lets this process and its children run before all ordinary ones, if wanted.

    On a machine with other work to do, a program that wakes up from a sync waits for its turn, which
    takes longer than the sync. What is then measured is the machine's load and not the store.

    Raises:
        PermissionError: The system does not let this user do that.
    """
    if not wanted:
        yield
        return
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


@contextmanager
def pinned() -> Iterator[None]:
    """Keeps this process on one processor, where the system can do that, and lets it go again."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def unpinned(wanted: bool) -> Iterator[None]:
    """Lets this process use all processors for a while, if wanted and where the system can do that."""
    if not wanted or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
