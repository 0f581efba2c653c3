"""The fast reader declines or agrees with the full parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.fact_canonical import read_canonical
from deermem.format.fact_markdown import decode_text, encode_fact
from deermem.model.fact import ExtraField, Fact
from deermem.model.identity import FactId
from tests.format.fact_documents import (
    FACT_ID,
    PATH,
    SCOPE,
    TRICKY_TEXTS,
    everything,
    hostile_texts,
    load,
    mutations,
    simple_fact,
)

CANONICAL = [
    encode_fact(fact).decode()
    for fact in (
        simple_fact(),
        simple_fact(title="T", source="thread_1", topics=("a b", "é", "no"), category="mine", confidence=1.0),
        simple_fact(
            consolidated_from=("fact_1",),
            source="manual",
            expected_valid_days=3,
            source_error="e",
            confirmation_count=2,
            extra=(ExtraField("note", '"v w"'), ExtraField("m", '"1"'), ExtraField("k", "true")),
        ),
    )
]
VALUES = {
    "id": ["fact_ab12", '"fact_ab12"', "Fact_ab12", "'fact_ab12'"],
    "schemaVersion": ["2", "2.0", "02", "0x2", '"2"', "3", "1", ""],
    "category": ["goal", "other", "mine", '"goal"', "null", "Null", "", "Goal"],
    "topics": [
        "[]",
        "[a, b]",
        '["a", "no"]',
        "[a,b]",
        "[ a ]",
        "[a, ]",
        '[""]',
        '[" "]',
        "a",
        "[null]",
        "[[a]]",
    ],
    "confidence": ["0.5", "1.0", "1", ".5", "0.50", "5e-1", '"0.5"', "1.5", "-0.0", ".nan", "true"],
    "status": ["active", '"active"', "deleted", "null"],
    "user_id": ["alice", '"alice"', "bob", "null", "Alice", "~", '" "', "alice "],
    "agent_name": ["research-agent", '"research-agent"', "Research-Agent", "other", "__default__", ""],
    "source": [
        "\n  type: manual\n  threadId: null",
        "\n  threadId: a\n  type: conversation",
        "manual",
        "thread",
    ],
    "createdAt": ['"2026-07-19T00:00:00Z"', "2026-07-19T00:00:00Z", '"2026-02-30T00:00:00Z"', '"2026-07-19"'],
    "updatedAt": ['"2026-07-19T00:00:00Z"', '"2026-07-19T00:00:00.5Z"', '"2026-13-19T00:00:00Z"', '""'],
    "revision": ["1", "12", "01", "0", "+1", "1.0", '"1"', "9" * 15, "9" * 17, "null"],
    "consolidatedFrom": ["[]", "[fact_1]", "[fact_1, a b]", "null", '["a, b", c]'],
    "consolidatedAt": ['"2026-07-19T00:00:00Z"', "2026-07-19", '"0000-01-01T00:00:00Z"'],
    "expected_valid_days": ["3", "0", "null", "1e1"],
    "sourceError": ["wrong", '"so wrong"', "null", '""', '" "', "yes", '"a\\nb"', '"a\tb"'],
    "confirmationCount": ["3", "0", "03"],
    "mood": ["good", "true", "null", "Null", '"good"', "1", "[a]", "no", '"', "a: b", "a #b"],
    "y": ["n"],
}
SOURCES = [
    f"\n  type: {kind}\n  threadId: {thread}"
    for kind in ("conversation", "manual", "import", "mine", '"manual"')
    for thread in ("null", "t", '"t"', "~", '""', "Null", "1e3", '"1e3"', "a\n  more: b")
]


@st.composite
def nearly_canonical(draw: st.DrawFn) -> str:
    """Returns a document in the canonical order, with a few values that the writer would not choose."""
    odd = draw(st.sets(st.sampled_from(sorted(VALUES)), max_size=3))
    optional = [
        "consolidatedAt",
        "expected_valid_days",
        "sourceError",
        "confirmationCount",
        "mood",
        "y",
    ]
    left_out = draw(st.sets(st.sampled_from([*optional, *draw(st.permutations(sorted(VALUES)))[:1]])))
    lines = []
    for key, values in VALUES.items():
        if key in left_out:
            continue
        choices = SOURCES + values if key == "source" else values
        separator = ":" if choices[0].startswith("\n") else ": "
        value = draw(st.sampled_from(choices)) if key in odd else values[0]
        lines.append(f"{key}{separator}{value}" if not value.startswith("\n") else f"{key}:{value}")
    title = draw(st.sampled_from(["T", " T", "T ", "a\tb", "x" * 160, "x" * 161, "", "# a", "\ufeff"]))
    content = draw(st.sampled_from(["c", " c", "c\n", "", "=======", "c\r", "---", "# h", "\x85c"]))
    return "---\n" + "\n".join(lines) + f"\n---\n\n# {title}\n\n{content}\n"


def slow(document: str, fact_id: FactId = FACT_ID) -> Fact | None:
    try:
        return decode_text(document, PATH, SCOPE, fact_id)
    except (Corruption, UnsupportedFormat):
        return None


def assert_quick_declines_or_agrees(document: str, fact_id: FactId = FACT_ID) -> None:
    quick = read_canonical(document, SCOPE, fact_id)
    if quick is not None:
        full = slow(document, fact_id)
        assert full is not None
        assert everything(quick) == everything(full)


@given(nearly_canonical())
def test_the_fast_reader_agrees_on_documents_that_are_nearly_canonical(document: str) -> None:
    assert_quick_declines_or_agrees(document)


@given(st.sampled_from(CANONICAL).flatmap(mutations))
def test_the_fast_reader_agrees_on_mutated_documents(document: str) -> None:
    assert_quick_declines_or_agrees(document)


def test_the_fast_reader_takes_the_document_that_the_odd_ones_vary() -> None:
    lines = [f"{name}:{'' if name == 'source' else ' '}{values[0]}" for name, values in VALUES.items()]
    document = "---\n" + "\n".join(lines) + "\n---\n\n# T\n\nc\n"
    assert read_canonical(document, SCOPE, FACT_ID) is not None


@pytest.mark.parametrize("key", [key for key in VALUES if key != "source"])
def test_the_fast_reader_agrees_on_every_single_odd_value(key: str) -> None:
    for text in (*VALUES[key], *TRICKY_TEXTS, *(f'"{text}"' for text in TRICKY_TEXTS)):
        lines = [
            f"{name}: {text if name == key else values[0]}" if name != "source" else f"source:{values[0]}"
            for name, values in VALUES.items()
        ]
        assert_quick_declines_or_agrees("---\n" + "\n".join(lines) + "\n---\n\n# T\n\nc\n")


@pytest.mark.parametrize("category", ["other", "goal"])
@pytest.mark.parametrize("extension", ["mine", "goal", "other", '" mine "', '"no"', "null", '""', '"goal"'])
def test_the_fast_reader_agrees_on_categories(category: str, extension: str) -> None:
    lines = f"category: {category}\ncategoryExtension: {extension}\n"
    assert_quick_declines_or_agrees(CANONICAL[0].replace("category: context\n", lines))


@pytest.mark.parametrize("source", SOURCES)
def test_the_fast_reader_agrees_on_every_source(source: str) -> None:
    document = CANONICAL[0].replace("source:\n  type: unknown\n  threadId: null", f"source:{source}")
    assert document != CANONICAL[0] or "unknown" in source
    assert_quick_declines_or_agrees(document)


@pytest.mark.parametrize("document", CANONICAL)
def test_the_fast_reader_takes_canonical_documents(document: str) -> None:
    assert read_canonical(document, SCOPE, FACT_ID) == slow(document) != None  # noqa: E711


@given(hostile_texts, st.sampled_from(CANONICAL))
def test_the_fast_reader_agrees_on_any_body(body: str, document: str) -> None:
    assert_quick_declines_or_agrees(document[: document.index("\n---\n") + 5] + body)
    assert_quick_declines_or_agrees(document + body + "\n")


@pytest.mark.parametrize("name", ["null", "Null", "-", "---", "0123", "1e3", "_", "true", "no", "-a", "a-"])
@pytest.mark.parametrize("written", ["{}", '"{}"'])
def test_the_fast_reader_agrees_on_ids(name: str, written: str) -> None:
    document = CANONICAL[0].replace("id: fact_ab12", f"id: {written.format(name)}", 1)
    assert_quick_declines_or_agrees(document, FactId(name))


@pytest.mark.parametrize("length", [99, 100, 101, 1_023, 1_024, 1_025, 2_000])
def test_the_fast_reader_agrees_on_long_keys_and_values(length: int) -> None:
    long = "k" * length
    for lines in (f"{long}: a", f"a: {long}", f'a: "{long}"', f"sourceError: {long}"):
        assert_quick_declines_or_agrees(CANONICAL[0].replace("From: []\n", f"From: []\n{lines}\n"))
    assert_quick_declines_or_agrees(CANONICAL[0].replace("topics: []", f'topics: [{long}, "{long}"]'))


def test_the_fast_reader_checks_the_limits_that_the_full_parser_checks() -> None:
    for text in ("a" * 4_001, "é" * 2_001):
        document = CANONICAL[0].replace("topics: []", f'topics: ["{text}"]')
        assert read_canonical(document, SCOPE, FACT_ID) is None
        with pytest.raises(Corruption, match="topics: is larger than 4,000 bytes"):
            load(document)


def test_the_fast_reader_knows_a_user_by_the_bucket() -> None:
    raw = SCOPE.of("a@b.c", "research-agent")
    bucket = SCOPE.of(raw.user.bucket, "research-agent")
    fact = simple_fact()
    document = encode_fact(fact).decode().replace("user_id: alice", 'user_id: "a@b.c"')
    for scope in (raw, bucket):
        quick = read_canonical(document, scope, FACT_ID)
        assert quick is not None
        assert quick.scope is scope
