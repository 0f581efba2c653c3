"""What the tests of real kernels need, and why one is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def need_tools(*names: str) -> None:
    """Skips the test on a system that is not Linux, or where a program is missing."""
    if sys.platform != "linux":
        pytest.skip("needs Linux")
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}, which is not installed")


def need_mounts(*file_systems: str) -> None:
    """Skips the test where nothing can be mounted, or where the kernel lacks a file system."""
    need_tools("unshare", "mount", "umount")
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount file systems")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs mount namespaces, which are refused here")
    known = Path("/proc/filesystems").read_text("utf-8").split()
    for name in file_systems:
        if name not in known:
            pytest.skip(f"needs {name}, which this kernel does not know (or has not loaded)")


def need_devices(*paths: str) -> None:
    """Skips the test where a device is missing."""
    for path in paths:
        if not Path(path).exists():
            pytest.skip(f"needs {path}")
