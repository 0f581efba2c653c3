"""A manager and a tool of one user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deermem import DeerMem
from deermem.integrations.anthropic import DeerMemMemoryTool


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[DeerMem]:
    with DeerMem({"storage_path": str(tmp_path)}) as opened:
        yield opened


@pytest.fixture
def tool(manager: DeerMem) -> DeerMemMemoryTool:
    return DeerMemMemoryTool(manager, user_id="alice")
