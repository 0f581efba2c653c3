"""Doors into a store of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from deermem import DeerMem
from tests.integrations.mcp.doors import Door, serving


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Returns the storage root."""
    return tmp_path / "store"


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    """Returns each transport in turn."""
    return str(request.param)


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    """Returns the handshake of older protocols, and what a client does by itself."""
    return str(request.param)


@pytest.fixture
def door(transport: str, root: Path) -> Iterator[Door]:
    """Returns a door over each transport."""
    if transport == "stdio":
        yield Door(root)
        return
    with DeerMem({"storage_path": str(root)}) as manager, serving(manager) as url:
        yield Door(root, url=url)


@pytest.fixture
def every_door(door: Door, era: str) -> Door:
    """Returns a door over each transport, for each beginning of the protocol."""
    return Door(door.root, era, door.url)


@pytest.fixture
def web(root: Path) -> Iterator[Door]:
    """Returns a door over HTTP."""
    with DeerMem({"storage_path": str(root)}) as manager, serving(manager) as url:
        yield Door(root, url=url)


@pytest.fixture
def other(root: Path) -> Iterator[DeerMem]:
    """Returns another program that uses the store."""
    with DeerMem({"storage_path": str(root)}) as manager:
        yield manager
