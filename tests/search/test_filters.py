"""Filters compare exact field values and refuse what they do not know."""

from __future__ import annotations

from typing import Any

import pytest

from deermem.errors import InvalidInputError
from deermem.model.fact import Fact
from deermem.search.filters import FILTER_NAMES, fact_filter, matches
from deermem.testing.retrieval_samples import make_fact

FACT = make_fact(
    "fact_1",
    "Drinks green tea.\nEvery day.",
    category="preference",
    topics=["tea", "morning"],
    confidence=0.0,
    source="thread-7",
)
OWN_CATEGORY = make_fact("fact_2", "Rows.", category="hobby", source="manual")


@pytest.mark.parametrize(
    ("fact", "filters"),
    [
        (FACT, {}),
        (FACT, {"id": "fact_1"}),
        (FACT, {"title": "Drinks green tea."}),
        (FACT, {"content": "Drinks green tea.\nEvery day."}),
        (FACT, {"category": "preference"}),
        (FACT, {"topics": "tea"}),
        (FACT, {"topics": ["morning", "tea"]}),
        (FACT, {"topics": []}),
        (FACT, {"confidence": 0}),
        (FACT, {"status": "active"}),
        (FACT, {"source": "thread-7"}),
        (FACT, {"revision": 1}),
        (FACT, {"created_at": "2026-07-19T00:00:00Z", "updated_at": "2026-07-19T00:00:00Z"}),
        (OWN_CATEGORY, {"category": "hobby"}),
        (OWN_CATEGORY, {"category": "other"}),
        (OWN_CATEGORY, {"source": "manual"}),
    ],
)
def test_a_fact_with_the_values_matches(fact: Fact, filters: dict[str, object]) -> None:
    assert matches(fact, filters)


@pytest.mark.parametrize(
    ("fact", "filters"),
    [
        (FACT, {"id": "fact_2"}),
        (FACT, {"id": "FACT_1"}),
        (FACT, {"title": "Drinks"}),
        (FACT, {"content": "Drinks green tea."}),
        (FACT, {"category": "other"}),
        (FACT, {"topics": "te"}),
        (FACT, {"topics": ["tea", "evening"]}),
        (FACT, {"confidence": 0.5}),
        (FACT, {"status": "deleted"}),
        (FACT, {"source": "conversation"}),
        (FACT, {"revision": 2}),
        (FACT, {"category": "preference", "topics": "evening"}),
        (OWN_CATEGORY, {"category": "preference"}),
    ],
)
def test_a_fact_with_other_values_does_not_match(fact: Fact, filters: dict[str, object]) -> None:
    assert not matches(fact, filters)


@pytest.mark.parametrize("name", ["", "agent", "createdAt", "__class__", 7, None])
def test_an_unknown_filter_is_refused_by_name(name: Any) -> None:
    with pytest.raises(InvalidInputError, match="is not one of category, confidence") as caught:
        fact_filter({name: "x"})
    assert caught.value.field == f"filters.{name}"


@pytest.mark.parametrize("name", FILTER_NAMES)
@pytest.mark.parametrize("value", [None, True, b"x", {}, [1]])
def test_a_value_of_the_wrong_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidInputError) as caught:
        fact_filter({name: value})
    assert caught.value.field == f"filters.{name}"


def test_topics_that_can_be_read_only_once_are_refused() -> None:
    with pytest.raises(InvalidInputError):
        fact_filter({"topics": iter(["tea"])})


@pytest.mark.parametrize("filters", [None, "category", [("category", "goal")]])
def test_filters_that_are_no_mapping_are_refused(filters: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        fact_filter(filters)
    assert caught.value.field == "filters"
