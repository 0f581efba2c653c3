"""What the tests of the distributions share: one build of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.builds import build, copy_source


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source tree, as git keeps it."""
    return copy_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def sdist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive."""
    return build(source, tmp_path_factory.mktemp("sdist"), "sdist")


@pytest.fixture(scope="session")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    return build(source, tmp_path_factory.mktemp("wheel"), "wheel")
