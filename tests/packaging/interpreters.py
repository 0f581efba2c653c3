"""The Pythons that the package is installed on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_ASK = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"


@cache
def interpreters() -> dict[str, str]:
    """Returns what is there of each version: of `PYTHONS`, else of the search path, else this one."""
    named = os.environ.get("PYTHONS", "").split()
    searched = [path for version in VERSIONS if (path := shutil.which(f"python{version}"))]
    found: dict[str, str] = {}
    for path in [*named, *searched, sys.executable]:
        try:
            asked = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, text=True, check=False)
        except OSError:
            continue
        if asked.returncode == 0:
            found.setdefault(asked.stdout.strip(), path)
    return found
