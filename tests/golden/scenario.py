"""A memory as hosts know it: made by a fixed clock and with fixed ids, so that each document is the same."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

from deermem import DeerMem, FactDraft, MemoryRepository, Scope, Source
from tests.support.stores import Clock

USER = "alice@example.com"

IMPORTED: dict[str, Any] = {
    "version": "1.0",
    "lastUpdated": "2025-03-01T10:00:00Z",
    "user": {
        "workContext": {"summary": "Builds data pipelines.", "updatedAt": "2025-03-01T10:00:00Z"},
        "topOfMind": {"summary": "The move to Python 3.12.", "updatedAt": "2025-03-01T10:00:00Z"},
    },
    "history": {"recentMonths": {"summary": "Changed teams.", "updatedAt": "2025-03-01T10:00:00Z"}},
    "facts": [
        {
            "id": "fact_old",
            "content": "Prefers tabs.",
            "category": "preference",
            "confidence": 0.9,
            "createdAt": "2025-01-01T10:00:00Z",
            "source": "thread_1",
        },
        {
            "id": "fact_fix",
            "content": "Reports go out on paper.",
            "category": "correction",
            "confidence": 0.95,
            "createdAt": "2025-02-01T10:00:00Z",
            "source": "thread_2",
            "sourceError": "sending them by mail",
        },
    ],
}


def play(root: Path) -> dict[str, str]:
    """Returns what the manager answered, as text by name."""
    numbers = count(1)
    repository = MemoryRepository(root, clock=Clock(), new_token=lambda: f"{next(numbers):016x}" * 2)
    manager = DeerMem({"max_facts": 10}, repository=repository)
    told: dict[str, Any] = {"unknown": manager.get_memory(user_id=USER)}
    told["imported"] = manager.import_memory(IMPORTED, user_id=USER)
    told["created"], created = manager.create_fact("Ships on Fridays.", "goal", 0.8, user_id=USER)
    assert created is not None
    told["updated"] = manager.update_fact(created, "Ships on Mondays.", user_id=USER)
    repository.upsert_fact(Scope.of(USER), rich_fact())
    told["everything"] = manager.get_memory(user_id=USER)
    told["found"] = manager.search("monday", user_id=USER)
    told["deleted"] = manager.delete_fact("fact_rich", user_id=USER)
    told["agent"], _ = manager.create_fact("Uses ruff.", user_id=USER, agent_name="Coder")
    texts = {name: json.dumps(value, indent=2, ensure_ascii=False) + "\n" for name, value in told.items()}
    texts["context"] = manager.get_context(USER) + "\n"
    cleared = manager.clear_memory(user_id=USER)
    texts["cleared"] = json.dumps(cleared, indent=2, ensure_ascii=False) + "\n"
    return texts


def rich_fact() -> FactDraft:
    """Returns a draft with every optional field."""
    return FactDraft(
        "Calls the staging area the sandbox.",
        id="fact_rich",
        title="Words",
        category="vocabulary",
        topics=("words", "deployment"),
        confidence=0.5,
        source=Source.parse("thread_3"),
        consolidated_from=("fact_a", "fact_b"),
        source_error="production",
        expected_valid_days=365,
        last_confirmed_at="2025-02-01T10:00:00Z",
        confirmation_count=2,
    )
