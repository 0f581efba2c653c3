"""What is written is read back, by the store and by other YAML readers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import ruamel.yaml
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deermem.format.fact_canonical import read_canonical
from deermem.format.fact_markdown import encode_fact
from deermem.format.strict_json import dump_compact
from deermem.model.fact import ExtraField, Fact, Source
from tests.format.fact_documents import (
    FACT_ID,
    NOW,
    PLAN_EXAMPLE,
    SCOPE,
    TRICKY_CONTENTS,
    TRICKY_TEXTS,
    contents,
    everything,
    facts,
    load,
    simple_fact,
)

OTHER_READERS: dict[str, Callable[[str], Any]] = {
    "YAML 1.1": yaml.safe_load,
    "YAML 1.2": ruamel.yaml.YAML(typ="safe", pure=True).load,
}


@given(facts())
def test_every_fact_survives_the_file(fact: Fact) -> None:
    again = load(encode_fact(fact), fact.scope, fact.id)
    assert again == fact
    assert again.scope is fact.scope
    assert load(encode_fact(again), fact.scope, fact.id) == fact


@given(contents)
def test_content_survives_exactly(content: str) -> None:
    fact = simple_fact(content=content)
    assert load(encode_fact(fact)).content == content.strip()


@pytest.mark.parametrize("content", TRICKY_CONTENTS, ids=ascii)
def test_content_that_looks_like_something_else_survives(content: str) -> None:
    fact = simple_fact(content=f"{content}\nlast line")
    assert load(encode_fact(fact)) == fact


@pytest.mark.parametrize("text", [text for text in TRICKY_TEXTS if text.strip()], ids=ascii)
def test_text_fields_that_look_like_something_else_survive(text: str) -> None:
    fact = simple_fact(
        category=text,
        topics=(text, text),
        source=Source("conversation", text, (ExtraField(text, dump_compact(text)),)),
        consolidated_from=(text,),
        source_error=text,
        extra=(ExtraField(text, dump_compact([text, {text: text}])),),
    )
    assert load(encode_fact(fact)) == fact


@pytest.mark.parametrize("reader", OTHER_READERS)
@given(facts())
def test_other_readers_see_the_same_values(reader: str, fact: Fact) -> None:
    front = encode_fact(fact).decode().split("\n---\n", 1)[0].removeprefix("---\n")
    seen = OTHER_READERS[reader](front)
    assert comparable(seen) == comparable(expected_front_matter(fact))
    assert list(seen) == list(expected_front_matter(fact))


def expected_front_matter(fact: Fact) -> dict[str, Any]:
    optional = {
        "consolidatedAt": fact.consolidated_at,
        "expected_valid_days": fact.expected_valid_days,
        "sourceError": fact.source_error,
        "lastConfirmedAt": fact.last_confirmed_at,
        "confirmationCount": fact.confirmation_count,
    }
    return {
        "id": fact.id,
        "schemaVersion": 2,
        "category": fact.category,
        **({} if fact.category_extension is None else {"categoryExtension": fact.category_extension}),
        "topics": list(fact.topics),
        "confidence": fact.confidence,
        "status": "active",
        "user_id": fact.scope.user.raw,
        "agent_name": fact.scope.agent,
        "source": {"type": fact.source.type, "threadId": fact.source.thread_id, **loaded(fact.source.extra)},
        "createdAt": fact.created_at,
        "updatedAt": fact.updated_at,
        "revision": fact.revision,
        "consolidatedFrom": list(fact.consolidated_from),
        **{key: value for key, value in optional.items() if value is not None},
        **loaded(fact.extra),
    }


def loaded(extra: tuple[ExtraField, ...]) -> dict[str, Any]:
    return {field.key: json.loads(field.json) for field in extra}


def comparable(value: Any) -> Any:
    """Returns a value whose equality also holds for NaN, and tells 1, 1.0 and True apart."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else (type(value).__name__, value)


def test_a_document_has_the_keys_in_the_order_of_the_plan() -> None:
    fact = simple_fact(
        title="Runtime constraint",
        category="constraint",
        topics=("python", "runtime"),
        confidence=0.95,
        source="thread_123",
    )
    dates_quoted = PLAN_EXAMPLE.replace(NOW, f'"{NOW}"')
    assert encode_fact(fact).decode() == dates_quoted


def test_optional_keys_follow_and_unknown_ones_come_last() -> None:
    fact = simple_fact(
        category="mine",
        source_error="wrong",
        consolidated_from=("fact_1",),
        consolidated_at=NOW,
        expected_valid_days=30,
        last_confirmed_at=NOW,
        confirmation_count=2,
        extra=(ExtraField("mood", '"good"'), ExtraField("aliases", '["a","1e3"]')),
    )
    lines = encode_fact(fact).decode().splitlines()
    assert lines[3:5] == ["category: other", "categoryExtension: mine"]
    assert lines[lines.index("revision: 1") + 1 : lines.index("---", 1)] == [
        "consolidatedFrom: [fact_1]",
        'consolidatedAt: "2026-07-19T00:00:00Z"',
        "expected_valid_days: 30",
        "sourceError: wrong",
        'lastConfirmedAt: "2026-07-19T00:00:00Z"',
        "confirmationCount: 2",
        "mood: good",
        'aliases: [a, "1e3"]',
    ]


def test_text_of_every_language_stays_readable_in_the_file() -> None:
    document = encode_fact(simple_fact(topics=("编程", "شاي", "🦌"), source="日本")).decode()
    assert 'topics: ["编程", "شاي", "🦌"]\n' in document
    assert 'threadId: "日本"\n' in document


def test_what_editors_and_readers_break_lines_at_is_escaped() -> None:
    document = encode_fact(simple_fact(topics=("a\x85b\u2028c\u2029d\ufeffe\x00f\x9fg\ufffeh\U0001ffffi\n",)))
    assert b'topics: ["a\\x85b\\u2028c\\u2029d\\ufeffe\\x00f\\x9fg\\ufffeh\\U0001ffffi\\n"]\n' in document


def test_a_fact_of_the_user_without_an_id_has_a_null_user() -> None:
    fact = simple_fact()
    for text in ("null", "~", ""):
        document = PLAN_EXAMPLE.replace("user_id: alice", f"user_id: {text}")
        assert load(document, scope=fact.scope.of(None, "research-agent")).scope.user.raw is None


def test_a_given_title_survives_and_a_derived_one_is_written_too() -> None:
    assert load(encode_fact(simple_fact(title="C #"))).title == "C #"
    assert load(encode_fact(simple_fact(content="# One\ntwo"))).title == "One"


@given(st.floats(0, 1))
def test_confidence_survives_exactly(confidence: float) -> None:
    assert load(encode_fact(simple_fact(confidence=confidence))).confidence == confidence


def test_an_ordinary_fact_takes_the_fast_way() -> None:
    fact = simple_fact(
        topics=("python", "編集"),
        category="mine",
        source="0123",
        consolidated_from=("fact_1", "fact_2"),
        source_error="it's wrong",
        extra=(ExtraField("mood", '"good"'), ExtraField("legacyId", '"a:b"'), ExtraField("seen", "true")),
    )
    document = encode_fact(fact).decode()
    quick = read_canonical(document, SCOPE, FACT_ID)
    assert quick is not None
    assert everything(quick) == everything(load(document))


def test_facts_in_memory_share_what_many_have_in_common() -> None:
    one, two = (
        load(encode_fact(simple_fact(content=text, category="goal", source="manual"))) for text in "ab"
    )
    assert one.category is two.category
    assert one.status is two.status
    assert one.source is two.source
    assert one.created_at is one.updated_at
