"""What a request takes away from a whole memory can be taken back by the operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from deermem import MemoryRepository, Scope
from deermem.maintenance.taking_back import undo
from tests.gateway.servers import Client, contents, manager_at, running

HERE = Scope.of("default")
CAP = 10
BEST = 0.9

Request = Callable[[Client], httpx.Response]


def known(client: Client) -> dict[str, str]:
    return {"If-Match": client.get("/api/memory").headers["ETag"]}


def clear(client: Client) -> httpx.Response:
    return client.delete("/api/memory")


def clear_what_was_seen(client: Client) -> httpx.Response:
    return client.delete("/api/memory", headers=known(client))


def clear_the_agent_that_was_seen(client: Client) -> httpx.Response:
    tag = client.get("/api/memory", params={"agent": "coder"}).headers["ETag"]
    return client.delete("/api/memory", params={"agent": "coder"}, headers={"If-Match": tag})


def import_over_what_was_seen(client: Client) -> httpx.Response:
    return client.post("/api/memory/import", json={"facts": []}, headers=known(client))


def taken_back(root: Path) -> None:
    with MemoryRepository(root) as store:
        assert undo(store, HERE.user) is not None


@pytest.mark.parametrize(
    "request_",
    [clear, clear_what_was_seen, clear_the_agent_that_was_seen, import_over_what_was_seen],
    ids=lambda each: each.__name__,
)
def test_what_was_cleared_or_replaced_comes_back(tmp_path: Path, request_: Request) -> None:
    with running(manager_at(tmp_path)) as gateway, gateway.client() as client:
        client.create("Tea")
        assert client.post("/api/memory/facts?agent=coder", json={"content": "Tabs"}).status_code == 200
        assert request_(client).status_code == 200
        assert "Tea" not in contents(client.document()) or not contents(client.document("coder"))
        taken_back(tmp_path)
        assert contents(client.document()) == ["Tea"]
        assert contents(client.document("coder")) == ["Tabs"]


def create(client: Client) -> httpx.Response:
    return client.post("/api/memory/facts", json={"content": "new", "confidence": BEST})


def create_with_a_key(client: Client) -> httpx.Response:
    body = {"content": "new", "confidence": BEST}
    return client.post("/api/memory/facts", json=body, headers={"Idempotency-Key": "k"})


def create_on_what_was_seen(client: Client) -> httpx.Response:
    body = {"content": "new", "confidence": BEST}
    return client.post("/api/memory/facts", json=body, headers=known(client))


def create_a_batch(client: Client) -> httpx.Response:
    body = {"facts": [{"content": "new", "confidence": BEST}]}
    return client.post("/api/memory/facts/batch", json=body)


@pytest.mark.parametrize(
    "request_",
    [create, create_with_a_key, create_on_what_was_seen, create_a_batch],
    ids=lambda each: each.__name__,
)
def test_what_a_fact_drives_out_of_a_memory_above_its_cap_comes_back(
    tmp_path: Path, request_: Request
) -> None:
    with running(manager_at(tmp_path, max_facts=CAP + 5)) as gateway, gateway.client() as client:
        for number in range(CAP + 5):
            client.create(f"fact {number:02}")
        before = contents(client.document())
    with running(manager_at(tmp_path, max_facts=CAP)) as gateway, gateway.client() as client:
        assert request_(client).status_code == 200
        assert len(contents(client.document())) == CAP
        taken_back(tmp_path)
        assert contents(client.document()) == sorted([*before, "new"])
