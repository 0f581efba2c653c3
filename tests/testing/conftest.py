"""Gives the contracts a fast disk: what hundreds of planted faults do need not survive a loss of power."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")  # noqa: S108 - whoever makes a directory in it gives it a name that is not taken


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lets temporary roots lie in memory where the system has such a place."""
    tmp_path_factory.getbasetemp()  # what pytest keeps of past runs lies where it always does
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
        monkeypatch.setattr(tempfile, "tempdir", str(MEMORY))
