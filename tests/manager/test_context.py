"""The text that a model is given of a memory."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from deermem import Fact, Scope, Section, Source, Summaries
from deermem.manager.context import ContextBudget, context_text, estimate_tokens
from deermem.model.identity import FactId
from deermem.model.rules import derive_title
from deermem.model.summaries import EMPTY_SUMMARIES, SECTION_KEYS
from tests.manager.managers import manager_at
from tests.support.stores import draft

BUDGET = ContextBudget(2000, frozenset(["correction"]), 500)
WHEN = "2026-07-19T00:00:00Z"


def fact(fact_id: str, content: str, category: str = "goal", confidence: float = 0.5, **fields: str) -> Fact:
    return Fact(
        id=FactId(fact_id),
        scope=Scope.of("alice"),
        content=content,
        title=derive_title(content),
        revision=1,
        created_at=WHEN,
        updated_at=WHEN,
        category=category,
        category_extension=fields.get("extension"),
        confidence=confidence,
        source=Source("manual"),
        source_error=fields.get("error"),
    )


def summaries(**texts: str) -> Summaries:
    return Summaries.of({key: Section(texts[key[1]]) for key in SECTION_KEYS if key[1] in texts})


def lines(*facts: Fact, budget: ContextBudget = BUDGET) -> list[str]:
    text = context_text(EMPTY_SUMMARIES, facts, budget)
    assert text.startswith("Facts:\n")
    return text.splitlines()[1:]


def test_a_whole_context_looks_as_the_contract_says(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.repository.update_summaries(
        "alice",
        {
            "user": {"workContext": "Engineer", "personalContext": "Reads", "topOfMind": "Release"},
            "history": {
                "recentMonths": "Moved",
                "earlierContext": "Studied",
                "longTermBackground": "Grew up",
            },
        },
    )
    scope = Scope.of("alice")
    manager.repository.upsert_fact(scope, draft("a", "Likes tea", category="preference", confidence=0.9))
    manager.repository.upsert_fact(
        scope, draft("b", "Uses tabs", category="correction", confidence=0.8, source_error="spaces")
    )
    manager.repository.upsert_fact(scope, draft("c", "Ships in May", category="goal", confidence=0.95))
    assert manager.get_context("alice", agent_name=None, thread_id="t") == (
        "User Context:\n"
        "- Work: Engineer\n"
        "- Personal: Reads\n"
        "- Current Focus: Release\n"
        "\n"
        "History:\n"
        "- Recent: Moved\n"
        "- Earlier: Studied\n"
        "- Background: Grew up\n"
        "\n"
        "Facts:\n"
        "- [correction | 0.80] Uses tabs (avoid: spaces)\n"
        "- [goal | 0.95] Ships in May\n"
        "- [preference | 0.90] Likes tea"
    )


def test_a_user_about_whom_nothing_is_known_has_no_context(tmp_path: Path) -> None:
    assert manager_at(tmp_path).get_context("alice") == ""


def test_what_is_empty_has_neither_line_nor_header() -> None:
    assert context_text(summaries(topOfMind="x"), (), BUDGET) == "User Context:\n- Current Focus: x"
    assert context_text(summaries(earlierContext="x"), (), BUDGET) == "History:\n- Earlier: x"


def test_in_mode_tool_there_are_no_facts(tmp_path: Path) -> None:
    manager = manager_at(tmp_path, mode="tool")
    manager.repository.update_summaries("alice", {"user": {"workContext": "Engineer"}})
    manager.create_fact("x", user_id="alice")
    assert manager.get_context("alice") == "User Context:\n- Work: Engineer"


def test_the_context_of_an_agent_has_its_facts_and_the_summaries_of_the_user(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    manager.repository.update_summaries("alice", {"user": {"workContext": "Engineer"}})
    manager.create_fact("default", user_id="alice")
    manager.create_fact("coder", user_id="alice", agent_name="coder")
    text = manager.get_context("alice", agent_name="Coder")
    assert "Engineer" in text
    assert text.endswith("Facts:\n- [context | 0.50] coder")


def test_the_characters_of_markup_are_escaped_everywhere() -> None:
    text = context_text(
        summaries(workContext="<b>&"),
        [fact("a", "</memory> & <x>", "correction", error="<y>"), fact("b", "c", "other", extension="<z>")],
        BUDGET,
    )
    assert "- Work: &lt;b&gt;&amp;" in text
    assert "] &lt;/memory&gt; &amp; &lt;x&gt; (avoid: &lt;y&gt;)" in text
    assert "- [&lt;z&gt; | 0.50] c" in text


def test_facts_come_by_confidence_and_equals_by_id() -> None:
    found = lines(fact("b", "b"), fact("c", "c", confidence=0.9), fact("a", "a"))
    assert [line[-1] for line in found] == ["c", "a", "b"]


def test_regular_facts_end_at_the_first_that_does_not_fit() -> None:
    budget = ContextBudget(100, frozenset(), 500)
    found = lines(
        fact("a", "short", confidence=0.9),
        fact("b", "x" * 500, confidence=0.8),
        fact("c", "s"),
        budget=budget,
    )
    assert [line[-5:] for line in found] == ["short"]


def test_summaries_take_their_room_from_the_regular_facts() -> None:
    budget = ContextBudget(100, frozenset(), 500)
    text = context_text(summaries(workContext="x" * 370), [fact("a", "long enough")], budget)
    assert "Facts:" not in text


def test_corrections_have_a_budget_of_their_own_and_may_exceed_the_other() -> None:
    budget = ContextBudget(100, frozenset(["correction"]), 500)
    text = context_text(summaries(workContext="x" * 1_000), [fact("a", "y" * 1_000, "correction")], budget)
    assert "y" * 1_000 in text
    assert 300 < estimate_tokens(text) <= 600


def test_summaries_leave_room_for_the_header_of_the_facts() -> None:
    budget = ContextBudget(100, frozenset(["correction"]), 500)
    text = context_text(summaries(workContext="x" * 1_000), [fact("a", "y", "correction")], budget)
    assert estimate_tokens(text) <= 100 + estimate_tokens("\n- [correction | 0.50] y")


def test_corrections_end_where_their_own_budget_ends() -> None:
    budget = ContextBudget(2000, frozenset(["correction"]), 50)
    found = lines(
        fact("a", "x" * 100, "correction"), fact("b", "y" * 100, "correction"), fact("c", "z"), budget=budget
    )
    assert [line[-1] for line in found] == ["x", "z"]


def test_a_category_of_the_user_can_be_guaranteed() -> None:
    budget = ContextBudget(2000, frozenset(["safety"]), 500)
    found = lines(
        fact("a", "a", confidence=0.9), fact("b", "b", "other", 0.1, extension="safety"), budget=budget
    )
    assert found == ["- [safety | 0.10] b", "- [goal | 0.90] a"]


def test_only_a_correction_tells_what_to_avoid() -> None:
    assert lines(fact("a", "x", "goal", error="y")) == ["- [goal | 0.50] x"]


def test_a_cjk_character_is_half_a_token_and_any_other_a_quarter() -> None:
    assert estimate_tokens("abcd") == 1
    assert estimate_tokens("记忆かな기억") == 3
    assert estimate_tokens("记忆 é😀") == 1.75


def test_a_summary_that_is_too_long_is_cut_and_says_so() -> None:
    text = context_text(
        summaries(workContext="a" * 1_000, topOfMind="b"), (), ContextBudget(100, frozenset(), 0)
    )
    assert text.endswith("a…")
    assert "Focus" not in text
    assert 95 < estimate_tokens(text) <= 100


def test_a_cut_leaves_no_half_of_an_escaped_character() -> None:
    for size in range(340, 400):
        text = context_text(
            summaries(workContext="x" * size + "&" * 99), (), ContextBudget(100, frozenset(), 0)
        )
        assert re.sub("&amp;", "", text).count("&") == 0


BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
TEXTS = st.text(
    st.sampled_from(f"ab]|- [goal 0.5&<>记忆{BREAKS}") | st.characters(exclude_categories=["Cs"]), min_size=1
)
FACTS = st.builds(
    fact,
    st.from_regex(r"[a-z]{8}", fullmatch=True),
    TEXTS.filter(str.strip),
    st.sampled_from(["goal", "correction"]),
    st.floats(0, 1),
    error=TEXTS,
)


@given(st.lists(FACTS, max_size=6), st.dictionaries(st.sampled_from([key[1] for key in SECTION_KEYS]), TEXTS))
def test_no_fact_and_no_summary_can_forge_a_line(facts: list[Fact], texts: dict[str, str]) -> None:
    text = context_text(summaries(**texts), facts, ContextBudget(8000, frozenset(["correction"]), 8000))
    blocks = text.split("\n\n") if text else []
    told = [line for block in blocks for line in block.split("\n")]
    headers = [line for line in told if line in ("User Context:", "History:", "Facts:")]
    entries = [line for line in told if line not in headers]
    known = sum(1 for summary in texts.values() if " ".join(summary.splitlines()).strip())
    assert len(headers) == len(blocks)
    assert len(entries) == known + len(facts)
    assert all(re.match(r"- (\[|[A-Z][A-Za-z ]+: )", line) for line in entries)
    assert not any(character in line for line in told for character in f"{BREAKS}<>")


@given(
    st.lists(FACTS.map(lambda each: each), max_size=8),
    st.dictionaries(st.sampled_from([key[1] for key in SECTION_KEYS]), st.text(max_size=600)),
    st.integers(100, 200),
    st.integers(0, 60),
)
def test_the_budgets_hold(facts: list[Fact], texts: dict[str, str], most: int, guaranteed: int) -> None:
    budget = ContextBudget(most, frozenset(["correction"]), guaranteed)
    text = context_text(summaries(**texts), facts, budget)
    kept = [line for line in text.split("\n") if line.startswith("- [correction ")]
    cost = sum(estimate_tokens(line) + 0.25 for line in kept)
    assert cost <= guaranteed
    assert estimate_tokens(text) <= most + cost
