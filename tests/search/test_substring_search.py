"""The substring search finds text in any case, best confidence first."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deermem.errors import InvalidInputError
from deermem.model.fact import Fact
from deermem.model.identity import Scope
from deermem.model.manifest import NO_MANIFEST
from deermem.model.snapshot import Snapshot
from deermem.search.substring import MAX_QUERY_BYTES, substring_search
from deermem.testing.retrieval_samples import HERE, HOSTILE_TEXTS, OTHER_AGENT, make_fact


def snapshot(*facts: Fact, scope: Scope = HERE) -> Snapshot:
    return Snapshot.of(scope, NO_MANIFEST, facts)


def found(query: str, *facts: Fact, top_k: int = 10, **filters: object) -> list[str]:
    return [hit.fact.id for hit in substring_search([snapshot(*facts)], query, top_k, filters)]


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("GREEN", "drinks green tea"),
        ("  green\n", "drinks green tea"),
        ("een te", "drinks green tea"),
        ("STRASSE", "lives in the Lange Straße"),
        ("ß", "MASSE"),
        ("café", "likes the cafe\u0301"),
        ("cafe\u0301", "likes the CAFÉ"),
        ("ΣΟΦΟΣ", "σοφος"),
        ("绿茶", "喜欢喝绿茶"),
        ("a.c", "a.c"),
        ("tea\r\nbus", "tea\r\nbus"),
    ],
)
def test_a_query_is_found_in_any_case_and_any_composition(query: str, content: str) -> None:
    assert found(query, make_fact("x", content)) == ["x"]


@pytest.mark.parametrize(
    ("query", "content"), [("a.c", "abc"), ("tea green", "green tea"), ("e\u0301", "e"), ("%", "tea")]
)
def test_a_query_is_no_pattern_and_no_list_of_words(query: str, content: str) -> None:
    assert found(query, make_fact("x", content)) == []


def test_a_title_of_its_own_is_searched_too() -> None:
    assert found("diet", make_fact("x", "no meat", title="Diet")) == ["x"]


def test_the_best_confidence_comes_first_and_equals_are_in_the_order_of_ids() -> None:
    facts = [
        make_fact(name, "tea", confidence=confidence)
        for name, confidence in [("d", 0.0), ("c", 0.9), ("b", 0.5), ("a", 0.5), ("e", 1.0)]
    ]
    assert found("tea", *facts) == ["e", "c", "a", "b", "d"]


def test_filters_are_applied_before_top_k() -> None:
    sure = [make_fact(f"sure{n}", "tea", confidence=1.0) for n in range(5)]
    rare = make_fact("rare", "tea", category="hobby", confidence=0.0)
    assert found("tea", *sure, rare, top_k=1, category="hobby") == ["rare"]


def test_a_hit_has_the_confidence_as_score_and_says_that_it_is_a_substring() -> None:
    fact = make_fact("x", "tea", confidence=0.0)
    (hit,) = substring_search([snapshot(fact)], "tea", 1)
    assert hit.fact is fact
    assert (hit.score, hit.match_type) == (0.0, "substring")


def test_several_scopes_are_ranked_together() -> None:
    here = snapshot(make_fact("x", "tea", confidence=0.5))
    there = snapshot(make_fact("x", "tea", OTHER_AGENT, confidence=0.9), scope=OTHER_AGENT)
    hits = substring_search([here, there], "tea", 10)
    assert [hit.fact.scope for hit in hits] == [OTHER_AGENT, HERE]


@pytest.mark.parametrize("query", ["", "  \n", None, 7, b"tea", "\ud800", "x" * (MAX_QUERY_BYTES + 1)])
def test_a_query_that_is_no_text_is_refused(query: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        substring_search([], query, 10)
    assert caught.value.field == "query"


@pytest.mark.parametrize("top_k", [0, -1, 1_001, True, 1.0, "5", None])
def test_a_limit_out_of_range_is_refused(top_k: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        substring_search([], "tea", top_k)
    assert caught.value.field == "top_k"


def test_a_bad_filter_is_refused_although_there_is_nothing_to_filter() -> None:
    with pytest.raises(InvalidInputError):
        substring_search([], "tea", 10, {"colour": "green"})


@pytest.mark.parametrize("query", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_a_hostile_query_finds_just_itself(query: str) -> None:
    facts = [make_fact("plain", "drinks coffee"), make_fact("itself", f"drinks {query}.")]
    assert "itself" in found(query, *facts)
    assert "plain" not in found(query, *facts)


@given(
    contents=st.lists(st.tuples(st.text("abAB", min_size=1, max_size=6), st.sampled_from([0.0, 0.5, 1.0]))),
    query=st.text(string.ascii_letters[:2], min_size=1, max_size=2),
    top_k=st.integers(1, 12),
)
def test_it_finds_what_a_look_at_each_fact_finds(
    contents: list[tuple[str, float]], query: str, top_k: int
) -> None:
    facts = [make_fact(f"f{n}", text, confidence=sure) for n, (text, sure) in enumerate(contents)]
    expected = sorted((-fact.confidence, fact.id) for fact in facts if query.lower() in fact.content.lower())[
        :top_k
    ]
    assert found(query, *facts, top_k=top_k) == [fact_id for _, fact_id in expected]
