"""The rules of single values (contract section 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deermem import FactDraft, InvalidInputError, Source
from deermem.model.rules import (
    CATEGORIES,
    MAX_CONTENT_BYTES,
    MAX_TITLE,
    check_confidence,
    check_content,
    check_title,
    derive_title,
    split_category,
)
from tests.model.strategies import TEXT


def test_the_categories_are_those_of_the_contract() -> None:
    assert sorted(CATEGORIES) == (
        [
            "behavior",
            "constraint",
            "context",
            "correction",
            "decision",
            "goal",
            "identity",
            "other",
            "preference",
        ]
    )


@given(st.sampled_from(sorted(CATEGORIES)) | TEXT.map(str.strip))
def test_a_category_of_ones_own_is_kept_beside_other(category: str) -> None:
    stored, extension = split_category(category)
    assert stored in CATEGORIES
    assert (extension or stored) == category
    assert (extension is None) == (category in CATEGORIES)


def test_what_is_missing_has_its_default() -> None:
    draft = FactDraft("text", category=None, topics=None, source=None)  # type: ignore[arg-type]
    assert (draft.category, draft.confidence, draft.topics) == ("context", 0.5, ())
    assert draft.source == Source("unknown")


@pytest.mark.parametrize("good", [0, 1, 0.0, 1.0, 0.95, 5e-324, math.nextafter(1, 0), -0.0])
def test_a_confidence_is_a_finite_number_from_0_to_1(good: float) -> None:
    assert check_confidence(good) == good
    assert isinstance(check_confidence(good), float)
    assert math.copysign(1, check_confidence(good)) == 1


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        -math.inf,
        -0.1,
        1.0000001,
        2,
        10**400,
        True,
        False,
        "0.5",
        None,
        [],
        Decimal("0.5"),
        1j,
    ],
)
def test_any_other_confidence_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        check_confidence(bad)
    assert refusal.value.field == "confidence"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_content_loses_outer_white_space_and_nothing_else(text: str) -> None:
    if text.strip():
        assert check_content(text) == text.strip()
    else:
        with pytest.raises(InvalidInputError):
            check_content(text)


@pytest.mark.parametrize(
    "bad", ["", " \t\r\n\x0b\x0c\x85\u2028", "\ud800", "ok\udfff", None, 5, b"text", ["a"]]
)
def test_content_that_is_no_text_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        check_content(bad)
    assert refusal.value.field == "content"


@pytest.mark.parametrize("character", ["a", "é", "😀"])
def test_the_limit_of_content_counts_bytes(character: str) -> None:
    fits = MAX_CONTENT_BYTES // len(character.encode())
    assert len(check_content(character * fits)) == fits
    with pytest.raises(InvalidInputError, match="1,000,000 bytes"):
        check_content(character * (fits + 1))


@given(TEXT)
def test_a_derived_title_is_one_short_line_that_a_given_title_could_be(content: str) -> None:
    title = derive_title(content)
    assert 1 <= len(title) <= MAX_TITLE
    assert check_title(title) == title


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("first\nsecond", "first"),
        ("\n\n  first  \n", "first"),
        ("# heading\nbody", "heading"),
        ("### \nbody", "###"),
        ("a\r\nb", "a"),
        ("a\u2028b", "a"),
        ("a" * 160, "a" * 160),
        ("a" * 161, "a" * 159 + "…"),
        ("\x00\x01", "Untitled"),
        ("tab\there and more", "tab here and more"),
        ("\x1b[31mred\x07 and more\nsecond", "[31mred and more"),
        ("one\x00\ttwo\rthree", "one two"),
        ("a\x85b", "a"),
        ("a\x0cb", "a"),
    ],
)
def test_a_title_is_derived_from_the_first_line_with_text(content: str, title: str) -> None:
    assert derive_title(content) == title


BAD: list[tuple[str, str, Any]] = [
    ("title", "title", "a\nb"),
    ("title", "title", "a\u2028b"),
    ("title", "title", "a" * 161),
    ("title", "title", 5),
    ("category", "category", ""),
    ("category", "category", 5),
    ("category", "category", "c" * 4_001),
    ("topics", "topics", "python"),
    ("topics", "topics", [""]),
    ("topics", "topics", [None]),
    ("topics", "topics", ["t"] * 1_001),
    ("topics", "topics", 5),
    ("topics", "topics", ["\ud800"]),
    ("consolidated_from", "consolidatedFrom", "fact_a"),
    ("consolidated_from", "consolidatedFrom", [5]),
    ("source", "source", 5),
    ("source", "source", {"type": "manual"}),
    ("source", "source", "\ud800"),
    ("source", "source", "t" * 4_001),
    ("expected_valid_days", "expected_valid_days", 0),
    ("expected_valid_days", "expected_valid_days", 1.5),
    ("expected_valid_days", "expected_valid_days", True),
    ("confirmation_count", "confirmationCount", -1),
    ("confirmation_count", "confirmationCount", "3"),
    ("confirmation_count", "confirmationCount", 10**30),
    ("source_error", "sourceError", " "),
    ("source_error", "sourceError", 5),
    ("created_at", "createdAt", "soon"),
    ("consolidated_at", "consolidatedAt", 5),
    ("last_confirmed_at", "lastConfirmedAt", "2026-02-30"),
    ("id", "id", "a b"),
]


@pytest.mark.parametrize(
    ("argument", "field", "value"), BAD, ids=[f"{number}-{bad[1]}" for number, bad in enumerate(BAD)]
)
def test_a_draft_refuses_a_bad_value_by_the_name_of_its_field(
    argument: str, field: str, value: object
) -> None:
    arguments: dict[str, Any] = {"content": "text", argument: value}
    with pytest.raises(InvalidInputError) as refusal:
        FactDraft(**arguments)
    assert refusal.value.field == field
    assert str(refusal.value).startswith(field)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("manual", Source("manual")),
        ("consolidation", Source("consolidation")),
        ("import", Source("import")),
        ("unknown", Source("unknown")),
        ("", Source("unknown")),
        (None, Source("unknown")),
        ("thread_123", Source("conversation", "thread_123")),
        ("conversation", Source("conversation", "conversation")),
        ("Manual", Source("conversation", "Manual")),
    ],
)
def test_a_source_is_read_from_its_historical_string(text: str | None, source: Source) -> None:
    assert Source.parse(text) == source


@given(TEXT)
def test_a_source_comes_back_as_the_string_it_was_read_from(text: str) -> None:
    assert str(Source.parse(text)) == text


LISTS: list[Callable[[], Any]] = [lambda: ["a", "b"], lambda: ("a", "b"), lambda: iter(["a", "b"])]


@pytest.mark.parametrize("make", LISTS, ids=["list", "tuple", "iterator"])
def test_lists_become_tuples(make: Callable[[], Any]) -> None:
    assert FactDraft("x", topics=make()).topics == ("a", "b")
