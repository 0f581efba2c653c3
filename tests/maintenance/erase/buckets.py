"""Buckets that hold one of everything: what DeerMem owns of a user, and what belongs to the host."""

from __future__ import annotations

import json
from pathlib import Path

from deermem import MemoryRepository, Scope
from deermem.format.layout import fact_parts
from deermem.model.identity import DEFAULT_AGENT, FactId
from tests.support.stores import ALICE, CODER, bucket_path, draft

HOSTS = {
    "threads/t1/messages.json": b'{"turns": []}',
    "skills/review.md": b"# Review\n",
    "notes.txt": b"of the host",
    "memory.md": b"a note that begins like a name of ours",
    "memory notes 2.txt": b"another one",
    "agents/README.md": b"agents live here",
    "agents/coder/config.yaml": b"name: coder\n",
    "agents/coder/SOUL.md": b"Be brief.\n",
    "agents/coder/tools/list.txt": b"grep\n",
    "agents/not_an_agent/config.yaml": b"x: 1\n",
    "agents/coder/facts/ab/drawing.svg": b"<svg/>",
}
LEGACY = json.dumps({"version": "1.0", "facts": [{"id": "old", "content": "Old."}]}).encode()


def copy_of_a_fact(root: Path, fact_id: str) -> bytes:
    return (bucket_path(root) / Path(*fact_parts(DEFAULT_AGENT, FactId(fact_id)))).read_bytes()


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def fill(root: Path) -> MemoryRepository:
    """Makes the bucket of `alice` with everything in it that DeerMem may own, and other users beside it."""
    store = MemoryRepository(root)
    store.upsert_fact(Scope.of("bob"), draft("b"))
    store.upsert_fact(ALICE, draft("x"))
    store.upsert_fact(ALICE, draft("y"))
    store.upsert_fact(CODER, draft("c"))
    store.upsert_fact(Scope.of("alice", "idle"), draft("i"))
    store.clear(Scope.of("alice", "idle"))
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Secret."}}})
    fact = copy_of_a_fact(root, "x")
    for name, data in {
        "memory.json.v1.bak": LEGACY,
        "agents/coder/memory.json.v1.bak": LEGACY,
        "agents/writer/memory.json": LEGACY,
        "agents/coder/.metadata/usage.json": b"{}",
        "agents/coder/.metadata/deep/er.json": b"{}",
        ".recovery/" + "0" * 32 + ".1": b"staged by a dead writer",
        ".recovery/unknown": b"x",
        ".quarantine/2026-01-01/fact.md": fact,
        ".safety/2026-01-01/memory.json": b"{}",
        "memory.sync-conflict-20260101-120000-ABCDEFG.json": b"{}",
        "memory (conflicted copy).json": b"{}",
        "memory.json~": b"{}",
        ".memory.json.swp": b"{}",
        "memory.0123abcd.tmp": b"{}",
        "agents/__default__/facts/x 2.md": fact,
        "agents/__default__/facts/00/copied.md": fact,
        "agents/__default__/facts/ab 2/x.md": fact,
        "agents/__default__/facts/ab/x.sync-conflict-20260101-120000-ABCDEFG.md": fact,
    }.items():
        put(bucket_path(root) / name, data)
    return store


def add_host_files(root: Path) -> None:
    for name, data in HOSTS.items():
        put(bucket_path(root) / name, data)
