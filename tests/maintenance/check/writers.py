"""Processes that write while a store is checked."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from pathlib import Path

from deermem import ANYTHING, ChangeSet, MemoryRepository, Scope, Upsert
from deermem.model.identity import DEFAULT_AGENT
from tests.support.stores import ALICE, draft


def keep_changing(pipe: Connection, root: Path, name: str, seconds: float) -> None:
    """Adds, changes, deletes and clears facts of old and new agents, and says how often."""
    store = MemoryRepository(root, lock_timeout=60)
    pipe.send("ready")
    pipe.recv()
    end = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < end:
        agent = Scope.of("alice", f"{name}-{rounds % 3}")
        store.upsert_fact(agent, draft(f"{name}-{rounds}"))
        upserts = tuple(
            Upsert(DEFAULT_AGENT, draft(f"{name}-{number}", f"{rounds}"), ANYTHING) for number in range(5)
        )
        store.apply_changes("alice", ChangeSet(upserts=upserts))
        store.delete_fact(ALICE, f"{name}-{rounds % 5}")
        if rounds % 4 == 3:
            store.clear(agent)
        rounds += 1
    pipe.send(rounds)
