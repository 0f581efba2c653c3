"""Where the benchmarks can run."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _posix() -> None:
    if os.name == "nt":
        pytest.skip("the benchmarks lock and measure with calls of POSIX")
