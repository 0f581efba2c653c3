"""Storages below a directory of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.deerflow import library


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Any]:
    made = library.front_door.DeerMemStorage(library.config(tmp_path))
    yield made
    made.close()
