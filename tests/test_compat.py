"""The historical document of facts and snapshots (contract section 6)."""

from __future__ import annotations

import json

from deermem import FactDraft, Scope, Snapshot
from deermem.compat import delta_document, fact_document, snapshot_document
from deermem.model.changes import Delta
from deermem.model.fact import ExtraField, Fact, Source, next_fact
from deermem.model.identity import FactId
from deermem.model.manifest import Manifest
from deermem.model.summaries import Section, Summaries

NOW = "2026-07-19T00:00:00Z"
SCOPE = Scope.of("a@b.c", "Research-Agent")


def make_fact(scope: Scope = SCOPE, **fields: object) -> Fact:
    values = {"content": "Project uses Python 3.12.", "id": FactId("fact_ab12"), **fields}
    return next_fact(FactDraft(**values), scope, NOW, None)  # type: ignore[arg-type]  # the test says what it passes


def test_a_fact_has_the_historical_keys_and_no_null() -> None:
    assert fact_document(make_fact(topics=("python",), confidence=1)) == {
        "id": "fact_ab12",
        "title": "Project uses Python 3.12.",
        "content": "Project uses Python 3.12.",
        "category": "context",
        "topics": ["python"],
        "confidence": 1.0,
        "createdAt": NOW,
        "source": "unknown",
        "schemaVersion": 2,
        "status": "active",
        "scope": {"userId": "a@b.c", "agentName": "research-agent"},
        "revision": 1,
        "updatedAt": NOW,
        "consolidatedFrom": [],
    }


def test_every_optional_value_has_its_key() -> None:
    fact = make_fact(
        category="mood", consolidated_from=("fact_1",), expected_valid_days=3, source_error="wrong",
        last_confirmed_at=NOW, confirmation_count=2,
    )  # fmt: skip
    document = fact_document(fact)
    assert (document["category"], document["categoryExtension"]) == ("other", "mood")
    assert (document["consolidatedFrom"], document["consolidatedAt"]) == (["fact_1"], NOW)
    assert (document["expected_valid_days"], document["sourceError"]) == (3, "wrong")
    assert (document["lastConfirmedAt"], document["confirmationCount"]) == (NOW, 2)


def test_the_source_is_the_historical_string() -> None:
    assert fact_document(make_fact(source=Source("conversation", "thread_123")))["source"] == "thread_123"
    assert fact_document(make_fact(source=Source("manual")))["source"] == "manual"


def test_unknown_keys_are_kept_and_hide_no_known_one() -> None:
    fact = make_fact(extra=(ExtraField("mood", '{"a": [1, null]}'), ExtraField("id", '"forged"')))
    document = fact_document(fact)
    assert document["mood"] == {"a": [1, None]}
    assert document["id"] == "fact_ab12"


def test_the_memory_without_a_user_has_no_user_id() -> None:
    assert fact_document(make_fact(Scope.of(None)))["scope"] == {"agentName": "__default__"}


def test_a_document_shares_nothing_with_the_fact_or_another_document() -> None:
    fact = make_fact(topics=("a",))
    first, second = fact_document(fact), fact_document(fact)
    first["topics"].append("b")
    first["scope"]["userId"] = "x"
    assert second == fact_document(fact)


def test_a_snapshot_has_every_section_and_the_facts() -> None:
    summaries = Summaries.of({("user", "topOfMind"): Section("Deadline", NOW)})
    document = snapshot_document(Snapshot.of(SCOPE, Manifest(7, NOW, summaries), [make_fact()]))
    assert list(document) == ["version", "revision", "lastUpdated", "user", "history", "facts"]
    assert (document["version"], document["revision"], document["lastUpdated"]) == ("2.0", 7, NOW)
    assert document["user"]["topOfMind"] == {"summary": "Deadline", "updatedAt": NOW}
    assert document["history"]["recentMonths"] == {"summary": "", "updatedAt": ""}
    assert document["facts"] == [fact_document(make_fact())]
    assert json.loads(json.dumps(document)) == document


def test_a_delta_says_that_it_is_not_the_whole() -> None:
    delta = Delta(3, NOW, written=(make_fact(),), deleted=((SCOPE.agent, FactId("fact_1")),))
    assert delta_document(delta) == {
        "version": "2.0",
        "revision": 3,
        "lastUpdated": NOW,
        "complete": False,
        "upserted": [fact_document(make_fact())],
        "deleted": [{"id": "fact_1", "agentName": "research-agent"}],
    }
