"""What a batch is checked for is part of its transaction, whoever else writes at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.servers import Client, body_of, contents, manager_at, refused, running
from tests.manager.managers import watched_manager
from tests.support.watched import Call

BATCH = "/api/memory/facts/batch"
DUPLICATE = "A fact with the same content already exists."
EVICTED = "Fact was not stored because the configured memory.max_facts capacity policy evicted it"
CAP = 10

Meanwhile = Callable[[], object]


def batch(*texts: str, confidence: float = 0.5) -> dict[str, Any]:
    return {"facts": [{"content": text, "confidence": confidence} for text in texts]}


@contextmanager
def gateway_at(root: Path, meanwhile: Meanwhile) -> Iterator[Client]:
    """Talks to a gateway; `meanwhile` runs between its next look at the facts and its lock."""
    manager, disk = watched_manager(root, max_facts=CAP)
    with running(manager) as gateway, gateway.client() as client:
        client.document()
        pending = [meanwhile]

        def look(call: Call) -> None:
            if call.kind == "lock_file" and pending:
                pending.pop()()

        disk.on_call = look
        yield client


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}], ids=["plain", "with a key"])
def test_a_text_that_comes_between_the_look_and_the_lock_is_not_stored_twice(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    other = manager_at(tmp_path)
    other.create_fact("first", user_id="default")
    with gateway_at(tmp_path, lambda: other.create_fact("Tea", user_id="default")) as client:
        refused(client.post(BATCH, json=batch("new", "tea "), headers=headers), 409, DUPLICATE)
        assert contents(client.document()) == ["Tea", "first"]


@pytest.mark.parametrize("confidence", [0.1, 0.9])
def test_facts_that_come_between_the_look_and_the_lock_count_for_the_cap(
    tmp_path: Path, confidence: float
) -> None:
    other = manager_at(tmp_path)
    other.create_fact("first", user_id="default")

    def fill() -> None:
        for number in range(CAP - 1):
            other.create_fact(f"of the other {number}", user_id="default")

    with gateway_at(tmp_path, fill) as client:
        answer = client.post(BATCH, json=batch("new", "newer", confidence=confidence))
        if confidence < 0.5:
            refused(answer, 409, EVICTED)
        else:
            assert {"new", "newer"} <= {*contents(body_of(answer))}
        assert len(client.document()["facts"]) == CAP


def test_batches_of_two_gateways_store_each_text_once_and_keep_the_cap(tmp_path: Path) -> None:
    def send(client: Client, number: int) -> httpx.Response:
        shared = [f"shared {place}" for place in (number % 8, number % 8 + 1)]
        return client.post(BATCH, json=batch(*shared, f"x{number}"))

    with (
        running(manager_at(tmp_path, max_facts=CAP)) as one,
        running(manager_at(tmp_path, max_facts=CAP)) as two,
        one.client() as first,
        two.client() as second,
        ThreadPoolExecutor(4) as threads,
    ):
        answers = list(threads.map(lambda number: send((first, second)[number % 2], number), range(32)))
        assert {answer.status_code for answer in answers} == {200, 409}
        for answer in answers:
            facts = answer.json().get("facts", [])
            assert len({fact["content"] for fact in facts}) == len(facts) <= CAP
        assert first.document() == second.document()
