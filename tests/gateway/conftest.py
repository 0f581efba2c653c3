"""Gateways for tests: one that all share, each as another user, and one of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from deermem.gateway.auth import AuthSettings, Mode
from tests.gateway.servers import Client, Running, manager_at, running

SECRET = "a secret of this test run, as long as it must be".replace(" ", "-")
_users = count()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serves a store to whoever says who they are."""
    auth = AuthSettings(mode=Mode.PROXY, proxy_secret=SECRET)
    with running(manager_at(tmp_path_factory.mktemp("shared")), auth=auth) as gateway:
        yield gateway


@pytest.fixture
def client(shared: Running) -> Iterator[Client]:
    """Talks to the shared gateway as a user of the test's own."""
    user = f"user{next(_users)}"
    with shared.client(X_Forwarded_User=user, X_DeerMem_Proxy_Secret=SECRET) as client:
        client.bucket = shared.root / "users" / user
        yield client


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serves a store in mode `none` to tests of which none may write: Bob alone has a memory."""
    root = tmp_path_factory.mktemp("untouched")
    manager_at(root).create_fact("of bob", user_id="bob")
    with running(manager_at(root)) as gateway:
        yield gateway
    assert not (root / "users" / "default").exists()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Running]:
    """Serves an empty store to the one user of mode `none`."""
    with running(manager_at(tmp_path)) as gateway:
        yield gateway


@pytest.fixture
def local(gateway: Running) -> Iterator[Client]:
    """Talks to the gateway of the test's own."""
    with gateway.client() as client:
        yield client
