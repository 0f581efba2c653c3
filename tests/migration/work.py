"""What other processes do in the tests of migrations; each function has a pipe to the test first."""

from __future__ import annotations

import random
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from deermem import MemoryRepository, Scope
from deermem.migration import migrate_users
from tests.support.stores import draft


def migrate_when_told(pipe: Connection, root: Path, users: Sequence[str], jobs: int) -> None:
    """Migrates users when it is told to, and says what became of each."""
    with MemoryRepository(root, lock_timeout=60) as store:
        pipe.send("ready")
        pipe.recv()
        outcomes = migrate_users(store, users, jobs=jobs)
        pipe.send({str(outcome.user): (outcome.status, outcome.reason) for outcome in outcomes})


def read_and_write_all(
    pipe: Connection, root: Path, users: Sequence[str], name: str, there: int, seed: int
) -> None:
    """Reads each user and writes a fact of its own, in an order of its own; says how many it wrote.

    Every read must show what the user had in version 1, migrated yet or not.
    """
    store = MemoryRepository(root, lock_timeout=60)
    order = [*users]
    random.Random(seed).shuffle(order)  # noqa: S311 - an order to repeat, and no secret
    pipe.send("ready")
    pipe.recv()
    for number, user in enumerate(order):
        scope = Scope.of(user)
        if number % 2:
            before = store.snapshot(scope)
            assert sum(fact.id.startswith("fact_") for fact in before.facts) == there, "not all are there"
        store.upsert_fact(scope, draft(f"{name}-written"))
        after = store.snapshot(scope)
        assert sum(fact.id.startswith("fact_") for fact in after.facts) == there, "not all are there"
        assert any(fact.id == f"{name}-written" for fact in after.facts)
    pipe.send(len(order))
