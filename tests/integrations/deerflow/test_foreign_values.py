"""Values that DeerFlow takes and writes: none of them costs a memory anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deermem.format.layout import shard_of
from deermem.model.identity import FactId
from tests.integrations.deerflow.library import fact

AGENT = "writer"
WHO = {"user_id": "alice", "agent_name": AGENT}


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ({"category": " "}, {"category": "context"}),
        ({"category": "project"}, {"category": "other", "categoryExtension": "project"}),
        ({"createdAt": ""}, {}),
        ({"createdAt": "yesterday"}, {}),
        ({"lastConfirmedAt": "yesterday"}, {"lastConfirmedAt": None}),
        ({"consolidatedAt": "yesterday"}, {"consolidatedAt": None}),
        ({"topics": ["", "tea"]}, {"topics": ["tea"]}),
        ({"topics": None, "sourceError": ""}, {"topics": [], "sourceError": None}),
        ({"title": "two\nlines"}, {"title": "two"}),
        ({"source": None}, {"source": {"type": "unknown", "threadId": None}}),
        ({"expected_valid_days": 30, "confidence": 1}, {"expected_valid_days": 30, "confidence": 1.0}),
    ],
    ids=repr,
)
def test_what_says_nothing_is_left_out(storage: Any, said: dict[str, Any], stored: dict[str, Any]) -> None:
    storage.apply_changes({"upserts": [fact("fact_0"), fact("fact_1", **said)]}, **WHO)
    read = storage.get_fact("fact_1", **WHO)
    assert {key: read.get(key) for key in stored} == stored
    assert read["createdAt"].startswith("20")


_LONG_TITLE = f"{'x' * 100} {'y' * 58}…"


def as_deerflow_writes(tmp_path: Path, storage: Any, body: str) -> None:
    """Puts a document in place of a stored fact's, with the front matter of DeerFlow's."""
    storage.upsert_fact(fact("fact_1"), **WHO)
    shard = shard_of(FactId("fact_1"))
    file = tmp_path / "users" / "alice" / "agents" / AGENT / "facts" / shard / "fact_1.md"
    file.write_text(
        "---\nid: fact_1\nconfidence: 0.8\ncreatedAt: '2026-08-01T00:00:00Z'\n"
        f"updatedAt: '2026-08-01T00:00:00Z'\nrevision: 1\n"
        f"user_id: alice\nagent_name: {AGENT}\n---\n\n{body}\n",
        "utf-8",
    )


@pytest.mark.parametrize(
    ("body", "content", "title"),
    [
        ("# a\tb\n\na\tb", "a\tb", "a b"),
        ("# a\tb\n\na\tb\nand more", "a\tb\nand more", "a b"),
        (f"# {'x' * 100}\t{'y' * 59}\n\n{'x' * 100}\t{'y' * 90}", f"{'x' * 100}\t{'y' * 90}", _LONG_TITLE),
        ("# a\tb\n\nsomething else", "# a\tb\n\nsomething else", "a b"),
        ("# Own\n\na\tb", "a\tb", "Own"),
    ],
)
def test_a_heading_that_repeats_a_first_line_with_a_tab_is_no_content(
    storage: Any, tmp_path: Path, body: str, content: str, title: str
) -> None:
    as_deerflow_writes(tmp_path, storage, body)
    (read,) = storage.reload(AGENT, user_id="alice")["facts"]
    assert (read["content"], read["title"]) == (content, title)
