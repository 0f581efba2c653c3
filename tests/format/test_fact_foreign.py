"""Files that somebody else wrote or edited load if they mean the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from deermem.format.fact_markdown import encode_fact
from deermem.model.fact import ExtraField, Fact, Source
from deermem.model.identity import Scope
from tests.format.fact_documents import FACT_ID, NOW, PLAN_EXAMPLE, SCOPE, bucket_scope, load

PLAN_FACT = Fact(
    id=FACT_ID,
    scope=SCOPE,
    content="Project uses Python 3.12.",
    title="Runtime constraint",
    revision=1,
    created_at=NOW,
    updated_at=NOW,
    category="constraint",
    topics=("python", "runtime"),
    confidence=0.95,
    source=Source("conversation", "thread_123"),
)
FRONT, BODY = PLAN_EXAMPLE.split("\n---\n", 1)


def with_line(old: str, new: str) -> str:
    """Returns the plan's example with one line exchanged."""
    assert f"\n{old}\n" in PLAN_EXAMPLE
    return PLAN_EXAMPLE.replace(f"\n{old}\n", f"\n{new}\n" if new else "\n")


def test_the_example_of_the_plan_loads_as_printed() -> None:
    assert load(PLAN_EXAMPLE) == PLAN_FACT


SOURCE = "source:\n  type: conversation\n  threadId: thread_123"
HEADING = "# Runtime constraint"
LINES = FRONT.split("\n")[1:]
EQUIVALENT = {
    "CRLF": PLAN_EXAMPLE.replace("\n", "\r\n"),
    "byte-order mark": "\ufeff" + PLAN_EXAMPLE,
    "byte-order mark and CRLF": "\ufeff" + PLAN_EXAMPLE.replace("\n", "\r\n"),
    "leading blank lines": "\n \n\t\n" + PLAN_EXAMPLE,
    "leading CRLF lines": "\r\n\r\n" + PLAN_EXAMPLE,
    "blanks after the fences": PLAN_EXAMPLE.replace("---\n", "--- \t\n"),
    "CRLF in front matter only": FRONT.replace("\n", "\r\n") + "\r\n---\r\n" + BODY,
    "CRLF below the opening fence only": "---\n" + "\r\n".join(LINES) + "\r\n---\r\n" + BODY,
    "another order": "\n".join(["---", *LINES[8:], *reversed(LINES[:8]), "---", BODY]),
    "comments": PLAN_EXAMPLE.replace("\nid", "\n# a comment\n\nid").replace("alice", "alice # who"),
    "block list": with_line("topics: [python, runtime]", "topics:\n- python\n- runtime"),
    "quotes": with_line("topics: [python, runtime]", "topics: ['python',\n  \"runtime\"]"),
    "no version": with_line("schemaVersion: 2", ""),
    "no status": with_line("status: active", ""),
    "quoted status": with_line("status: active", "status: 'active'"),
    "no consolidatedFrom": with_line("consolidatedFrom: []", ""),
    "null consolidatedFrom": with_line("consolidatedFrom: []", "consolidatedFrom:"),
    "another float": with_line("confidence: 0.95", "confidence: +95e-2"),
    "hexadecimal revision": with_line("revision: 1", "revision: 0x1"),
    "capitals in the agent": with_line("agent_name: research-agent", "agent_name: Research-AGENT"),
    "standard tag": with_line("id: fact_ab12", "id: !!str fact_ab12"),
    "anchor": with_line("user_id: alice", "user_id: &user alice"),
    "source as a string": PLAN_EXAMPLE.replace(SOURCE, "source: thread_123"),
    "source without a type": PLAN_EXAMPLE.replace(SOURCE, "source: {threadId: thread_123}"),
    "no line feed at the end": PLAN_EXAMPLE.rstrip("\n"),
    "white space at the end": PLAN_EXAMPLE + "\n \n\n",
    "no blank line before the heading": PLAN_EXAMPLE.replace("---\n\n#", "---\n#"),
    "no blank line after the heading": PLAN_EXAMPLE.replace(f"{HEADING}\n\n", f"{HEADING}\n"),
    "blanks in the heading": PLAN_EXAMPLE.replace(HEADING, "#   Runtime constraint  "),
    "dumped by PyYAML": f"---\n{yaml.safe_dump(yaml.safe_load(FRONT), default_flow_style=False)}---\n{BODY}",
}


@pytest.mark.parametrize("name", EQUIVALENT)
def test_a_document_that_means_the_same_loads(name: str) -> None:
    fact = load(EQUIVALENT[name])
    dates_as_found = replace(PLAN_FACT, created_at=fact.created_at, updated_at=fact.updated_at)
    assert fact == (dates_as_found if name == "dumped by PyYAML" else PLAN_FACT)


@pytest.mark.parametrize(
    ("line", "text", "user", "agent"),
    [
        ("user_id: alice", "user_id: 123", "123", "research-agent"),
        ("user_id: alice", "user_id: 0123", "0123", "research-agent"),
        ("user_id: alice", "user_id: 1e3", "1e3", "research-agent"),
        ("user_id: alice", "user_id: 2026-07-19", "2026-07-19", "research-agent"),
        ("user_id: alice", "user_id: true", "true", "research-agent"),
        ("user_id: alice", "user_id: 'null'", "null", "research-agent"),
        ("agent_name: research-agent", "agent_name: no", "alice", "no"),
        ("agent_name: research-agent", "agent_name: 0x1F", "alice", "0x1f"),
    ],
)
def test_names_that_look_typed_are_text(line: str, text: str, user: str, agent: str) -> None:
    scope = Scope.of(user, agent)
    assert load(with_line(line, text), scope).scope is scope


@pytest.mark.parametrize(
    "text", ["1e3", "0123", "no", "12:30:45", "2026-07-19", "0x1F", "1_000", ".inf", "True"]
)
def test_an_unquoted_text_is_taken_as_it_stands(text: str) -> None:
    fact = load(with_line("  threadId: thread_123", f"  threadId: {text}\nsourceError: {text}"))
    assert (fact.source.thread_id, fact.source_error) == (text, text)
    assert load(with_line("topics: [python, runtime]", f"topics: [{text}]")).topics == (text,)
    assert load(with_line("topics: [python, runtime]", f"topics: {text}")).topics == (text,)


def test_an_unquoted_id_is_taken_as_it_stands() -> None:
    assert load(with_line("id: fact_ab12", "id: 0123"), fact_id="0123").id == "0123"


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-19T08:15:30+02:00",
        "2026-07-19T08:15:30.123456Z",
        "2026-07-19T08:15:30",
        "2026-07-19 08:15:30",
        "2026-07-19",
        "'2026-07-19T08:15:30.5-11:30'",
    ],
)
def test_a_time_stamp_is_kept_as_found(text: str) -> None:
    fact = load(with_line(f"createdAt: {NOW}", f"createdAt: {text}"))
    assert fact.created_at == text.strip("'")
    assert load(encode_fact(fact)) == fact


def test_missing_values_have_defaults() -> None:
    document = f"""---
id: fact_ab12
user_id: alice
agent_name: research-agent
createdAt: {NOW}
updatedAt: {NOW}
revision: 3
---
Just text
"""
    assert load(document) == Fact(FACT_ID, SCOPE, "Just text", "Just text", 3, NOW, NOW)
    nulls = document.replace(
        "revision", "category:\ntopics: ~\nconfidence: null\nstatus:\nsource: Null\nrevision"
    )
    assert load(nulls) == load(document)


@pytest.mark.parametrize("text", ["''", "' '", "~", "[]", ""])
def test_no_topics_are_written_in_many_ways(text: str) -> None:
    assert load(with_line("topics: [python, runtime]", f"topics: {text}")).topics == ()


def test_a_missing_agent_is_the_default_agent() -> None:
    scope = Scope.of("alice")
    assert load(with_line("agent_name: research-agent", ""), scope).scope is scope
    assert load(with_line("agent_name: research-agent", "agent_name: __default__"), scope).scope is scope


def test_a_caller_that_knows_the_bucket_only_reads_facts_of_the_raw_id() -> None:
    document = with_line("user_id: alice", "user_id: a@b.c")
    bucket = Scope.of("a@b.c").user.bucket
    assert bucket is not None
    assert load(document, bucket_scope(bucket)).scope.user.bucket == bucket
    assert (
        load(with_line("user_id: alice", f"user_id: {bucket}"), Scope.of("a@b.c", "research-agent")).revision
        == 1
    )


@pytest.mark.parametrize(
    ("lines", "category", "extension"),
    [
        ("category: recipe", "other", "recipe"),
        ("category: other\ncategoryExtension: recipe", "other", "recipe"),
        ("category: recipe\ncategoryExtension: recipe", "other", "recipe"),
        ("category: other\ncategoryExtension: goal", "goal", None),
        ("category: other\ncategoryExtension: ''", "other", None),
        ("category: other", "other", None),
        ("category: ' goal '", "goal", None),
        ("category: Goal", "other", "Goal"),
        ("categoryExtension: recipe\ncategory: other", "other", "recipe"),
        ("category: 2026", "other", "2026"),
    ],
)
def test_a_category_of_the_users_own_becomes_an_extension(
    lines: str, category: str, extension: str | None
) -> None:
    fact = load(with_line("category: constraint", lines))
    assert (fact.category, fact.category_extension) == (category, extension)


@pytest.mark.parametrize("text", ["manual", "consolidation", "import", "unknown"])
def test_a_plain_source_as_a_string_is_that_source(text: str) -> None:
    document = PLAN_EXAMPLE.replace(
        "source:\n  type: conversation\n  threadId: thread_123", f"source: {text}"
    )
    assert load(document).source == Source(text)


def test_a_plain_source_keeps_its_thread() -> None:
    assert load(with_line("  type: conversation", "  type: manual")).source == Source("manual", "thread_123")


@pytest.mark.parametrize("number", ["0", "1", "0.0", "1.0", "1.", ".5", "1e-3", "-0.0"])
def test_any_way_to_write_a_number_is_a_confidence(number: str) -> None:
    assert load(with_line("confidence: 0.95", f"confidence: {number}")).confidence == abs(float(number))


@pytest.mark.parametrize(
    ("body", "title", "content"),
    [
        ("text\nmore\n", "text", "text\nmore"),
        ("## Second level\n\ntext\n", "Second level", "## Second level\n\ntext"),
        ("#no heading\ntext\n", "no heading", "#no heading\ntext"),
        ("# Only a heading\n", "Only a heading", "Only a heading"),
        ("#\tTab\ntext", "Tab", "text"),
        ("# One\n# Two\ntext", "One", "# Two\ntext"),
        ("#\n\ntext\n", "text", "text"),
        ("# \ntext\n", "text", "text"),
        (f"# {'x' * 161}\ntext", "x" * 159 + "…", f"# {'x' * 161}\ntext"),
        ("# a\x0cb\ntext", "a", "# a\x0cb\ntext"),
        ("text\n# Heading\n", "text", "text\n# Heading"),
        ("# T\r\n\r\na\r\nb\r\n", "T", "a\r\nb"),
        ("---\nid: x\n---\n", "---", "---\nid: x\n---"),
    ],
)
def test_heading_and_content_are_told_apart(body: str, title: str, content: str) -> None:
    fact = load(f"{FRONT}\n---\n{body}")
    assert (fact.title, fact.content) == (title, content)


def test_in_a_file_with_crlf_line_ends_the_content_has_line_feeds() -> None:
    assert load((PLAN_EXAMPLE + "\n\nmore\rtext\n").replace("\n", "\r\n")).content == (
        "Project uses Python 3.12.\n\n\nmore\rtext"
    )


def test_in_a_file_with_line_feeds_the_content_keeps_its_crlf() -> None:
    assert load(PLAN_EXAMPLE + "\r\nmore\r\n").content == "Project uses Python 3.12.\n\r\nmore"


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
def test_former_line_breaks_in_front_matter_are_text_as_in_yaml_1_2(character: str) -> None:
    for text in (f"a{character}b", f'"a {character} b"', f"'a{character}b'"):
        fact = load(with_line("topics: [python, runtime]", f"topics:\n- {text}\nmood: {text}"))
        assert fact.topics == (text.strip("'\""),)
        assert fact.extra[0].yaml == f"mood: {text}\n"
        assert load(encode_fact(fact)) == fact


def test_private_characters_beside_former_line_breaks_stay_what_they_are() -> None:
    document = with_line("topics: [python, runtime]", 'topics: ["\ue000\u2028", "\\ue001\x85", "\\UE002"]')
    assert load(document.replace("UE002", "U0000E002")).topics == ("\ue000\u2028", "\ue001\x85", "\ue002")


def test_a_few_aliases_are_followed() -> None:
    fact = load(with_line("topics: [python, runtime]", "topics: &t [python, &r runtime]\nmore: [*t, *r]"))
    assert fact.topics == ("python", "runtime")
    assert fact.extra == (ExtraField("more", '[["python","runtime"],"runtime"]'),)


def test_the_front_matter_may_be_a_flow_mapping() -> None:
    document = f"---\n{{id: fact_ab12, user_id: alice, agent_name: research-agent, createdAt: '{NOW}',\n"
    document += f'  updatedAt: "{NOW}", revision: 1, "mood": {{"good":true}}}}\n---\ntext\n'
    assert load(document).extra == (ExtraField("mood", '{"good":true}'),)


def test_both_loaders_of_pyyaml_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deermem.format.yaml_tree._LOADER", yaml.BaseLoader)
    assert load(PLAN_EXAMPLE) == PLAN_FACT
    assert load(PLAN_EXAMPLE.replace("\n", "\r\n")) == PLAN_FACT


UNSAID = {
    "category: constraint": ("category: ' '", {"category": "context"}),
    "topics: [python, runtime]": ("topics: ['', python, ' ']", {"topics": ("python",)}),
    f"createdAt: {NOW}": ("createdAt: ''", {}),
    f"updatedAt: {NOW}": ("updatedAt: ''", {}),
}


@pytest.mark.parametrize("said", UNSAID)
def test_what_the_predecessor_was_not_given_and_wrote_as_an_empty_text_is_missing(said: str) -> None:
    written, expected = UNSAID[said]
    assert load(with_line(said, written)) == replace(PLAN_FACT, **expected)  # type: ignore[arg-type]


def test_a_fact_without_any_time_has_the_same_one_at_every_read() -> None:
    document = with_line(f"createdAt: {NOW}", "createdAt: ''").replace(f"updatedAt: {NOW}", "updatedAt: ''")
    fact = load(document)
    assert (fact.created_at, fact.updated_at) == ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z")
    assert load(encode_fact(fact).decode()) == fact
