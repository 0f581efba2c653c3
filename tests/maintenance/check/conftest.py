"""A sound store for each test, copied from one that is made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.maintenance.check.faults import fill


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that is copied."""
    root = tmp_path_factory.mktemp("sound") / "store"
    fill(root)
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """The storage root of a sound store, with time stamps and modes as a sound store has them."""
    return Path(shutil.copytree(template, tmp_path / "store"))
