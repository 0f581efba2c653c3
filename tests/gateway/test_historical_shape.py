"""The answers, pinned: a change of `exchanges.txt` is a change for every front end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from deermem import DeerMem, MemoryRepository
from tests.gateway.servers import Client, running
from tests.golden.scenario import IMPORTED
from tests.support.stores import Clock

PINNED = Path(__file__).with_name("exchanges.txt")
FACTS = "/api/memory/facts"
# What changes from run to run, or with the client's library.
LEFT_OUT = {"date", "content-length"}

RICH = {
    **IMPORTED,
    "facts": [
        *IMPORTED["facts"],
        {
            "id": "fact_rich",
            "content": "Calls the staging area the sandbox.",
            "title": "Words",
            "category": "vocabulary",
            "topics": ["words", "deployment"],
            "source": "thread_3",
            "consolidatedFrom": ["fact_a", "fact_b"],
            "confirmationCount": 2,
            "lastConfirmedAt": "2025-02-01T10:00:00Z",
            "expected_valid_days": 365,
            "editor": {"color": "green"},
        },
    ],
}

Request = tuple[str, str, Any]
REQUESTS: list[Request] = [
    ("GET", "/api/memory", None),
    ("POST", "/api/memory/import", RICH),
    ("POST", FACTS, {"content": "Ships on Fridays.", "category": "goal", "confidence": 0.8}),
    ("POST", FACTS, {"content": "ships on fridays."}),
    ("POST", FACTS, {"content": "x", "confidence": 7}),
    ("PATCH", f"{FACTS}/fact_old", {"content": "Prefers blanks."}),
    ("PATCH", f"{FACTS}/fact_none", {"content": "x"}),
    ("POST", f"{FACTS}/batch", {"facts": [{"content": "One."}, {"content": "Two.", "category": "own"}]}),
    ("GET", f"{FACTS}/fact_fix", None),
    ("GET", f"{FACTS}?limit=1", None),
    ("PATCH", "/api/memory/summaries", {"user": {"personalContext": {"summary": "Has two cats."}}}),
    ("GET", "/api/memory/status", None),
    ("DELETE", f"{FACTS}/fact_fix", None),
    ("POST", f"{FACTS}?agent=Coder", {"content": "Uses ruff."}),
    ("GET", "/api/agents", None),
    ("DELETE", "/api/agents/coder", None),
    ("DELETE", "/api/memory", None),
]


def exchanges(client: Client) -> Iterator[str]:
    """Yields each request with its answer, as text."""
    for method, path, body in REQUESTS:
        answer = client.request(method, path, json=body)
        yield f"{method} {path}\n" + (f"{json.dumps(body)}\n" if body is not None else "") + told(answer)
    answer = client.post(FACTS, json={"content": "x"}, headers={"If-Match": '"m1-0"'})
    yield f'POST {FACTS}\nIf-Match: "m1-0"\n{told(answer)}'


def told(answer: httpx.Response) -> str:
    """Returns status, headers and body as text."""
    headers = [f"{name}: {value}" for name, value in sorted(answer.headers.items()) if name not in LEFT_OUT]
    body = [json.dumps(answer.json(), indent=2, ensure_ascii=False)] if answer.content else []
    return "\n".join(["", str(answer.status_code), *headers, *body, ""])


def test_the_answers_are_the_pinned_ones(tmp_path: Path) -> None:
    numbers = count(1)
    repository = MemoryRepository(tmp_path, clock=Clock(), new_token=lambda: f"{next(numbers):016x}" * 2)
    manager = DeerMem({"max_facts": 10}, repository=repository)
    with running(manager) as gateway, gateway.client() as client:
        text = ("\n" + "-" * 40 + "\n").join(exchanges(client))
    assert text == PINNED.read_text("utf-8")
