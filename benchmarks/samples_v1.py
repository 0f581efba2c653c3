"""Stores of version 1 to migrate, and the files of version 2 that they become."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from benchmarks.samples import NOW, fact_id, fact_of, manifest_bytes, write_file
from deermem import Scope
from deermem.format.fact_markdown import encode_fact
from deermem.format.layout import DEFAULT_MANIFEST, bucket_parts, fact_parts
from deermem.model.fact import Fact
from deermem.model.summaries import SECTIONS

_SUMMARY: Final = "Works on storage for small teams."


def scope_of(user: int) -> Scope:
    """Returns where a migrated user's facts lie."""
    return Scope.of(f"user{user:06}")


def build_version_1(root: Path, users: Iterable[int], facts: int) -> None:
    """Writes one `memory.json` of version 1 for each user, without a sync."""
    for user in users:
        scope = scope_of(user)
        bucket = root.joinpath(*bucket_parts(scope.user))
        bucket.mkdir(mode=0o700, parents=True)
        document = {
            "version": "1.0",
            "lastUpdated": NOW,
            **{
                group: {name: {"summary": _SUMMARY, "updatedAt": NOW} for name in names}
                for group, names in SECTIONS.items()
            },
            "facts": [_entry(fact) for fact in _facts(user, facts)],
        }
        write_file(bucket / DEFAULT_MANIFEST, json.dumps(document, indent=2).encode())


def files_of(user: int, facts: int) -> dict[Path, bytes]:
    """Returns the files of version 2 that a user's `memory.json` becomes, by path."""
    scope = scope_of(user)
    bucket = Path(*bucket_parts(scope.user))
    found = {
        bucket.joinpath(*fact_parts(scope.agent, fact.id)): encode_fact(fact) for fact in _facts(user, facts)
    }
    return {**found, bucket / DEFAULT_MANIFEST: manifest_bytes()}


def _facts(user: int, facts: int) -> list[Fact]:
    scope = scope_of(user)
    return [fact_of(number, fact_id(number), scope) for number in range(user * facts, (user + 1) * facts)]


def _entry(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.id,
        "content": fact.content,
        "category": fact.category,
        "confidence": fact.confidence,
        "createdAt": fact.created_at,
        "source": str(fact.source.thread_id),
        "topics": list(fact.topics),
    }
