"""Stores of version 1 for the tests of migrating them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.stores import bucket_path

FACT: dict[str, Any] = {
    "id": "fact_a",
    "content": "Likes tea.",
    "category": "preference",
    "confidence": 0.9,
    "createdAt": "2025-03-01T10:00:00Z",
    "source": "thread_1",
}
OTHER: dict[str, Any] = {**FACT, "id": "fact_b", "content": "Works on compilers.", "category": "context"}
WORK = {"workContext": {"summary": "Builds compilers.", "updatedAt": "2025-03-01T10:00:00Z"}}


def document(*facts: Any, **fields: Any) -> dict[str, Any]:
    """Returns a document of version 1."""
    return {
        "version": "1.0",
        "lastUpdated": "2025-03-02T10:00:00Z",
        "user": WORK,
        "history": {},
        "facts": list(facts),
        **fields,
    }


def agent_document(*facts: Any, **fields: Any) -> dict[str, Any]:
    """Returns an agent's document of version 1, without summaries of its own."""
    return document(*facts, **{"user": {}, **fields})


def put(root: Path, content: Any, agent: str | None = None, user_id: str | None = "alice") -> Path:
    """Writes a document where version 1 kept it; returns the file."""
    bucket = bucket_path(root, user_id)
    path = bucket / "memory.json" if agent is None else bucket / "agents" / agent / "memory.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path


def backup_of(path: Path) -> Path:
    """Returns where the backup of a version-1 file belongs."""
    return path.with_name(f"{path.name}.v1.bak")
