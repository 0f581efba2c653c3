"""Summaries: patches per child key, and what a patch may hold."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deermem import InvalidInputError, Section, Summaries, SummaryPatch
from deermem.model.summaries import EMPTY_SUMMARIES, SECTION_KEYS
from tests.model.strategies import LATER, NOW

SECTIONS = st.dictionaries(
    st.sampled_from(SECTION_KEYS), st.builds(Section, st.text(max_size=5), st.just(NOW))
)


def test_the_six_sections_are_those_of_the_contract() -> None:
    assert SECTION_KEYS == (
        ("user", "workContext"),
        ("user", "personalContext"),
        ("user", "topOfMind"),
        ("history", "recentMonths"),
        ("history", "earlierContext"),
        ("history", "longTermBackground"),
    )


@given(SECTIONS, SECTIONS)
def test_a_patch_replaces_what_it_names_and_nothing_else(
    before: dict[tuple[str, str], Section], patch: dict[tuple[str, str], Section]
) -> None:
    merged = Summaries.of(before).merged(SummaryPatch(patch))
    assert dict(merged.sections) == {**dict.fromkeys(SECTION_KEYS, Section()), **before, **patch}


@given(SECTIONS)
def test_replacing_all_sets_the_six_sections(sections: dict[tuple[str, str], Section]) -> None:
    summaries = Summaries.of(sections)
    full = Summaries.of(dict.fromkeys(SECTION_KEYS, Section("old", NOW)))
    assert full.merged(SummaryPatch.replace_all(summaries)) == summaries


def test_a_section_without_a_time_gets_one_if_it_says_something() -> None:
    patch = SummaryPatch.parse(
        {"user": {"workContext": "w", "topOfMind": "", "personalContext": {"summary": "p"}}}
    )
    stamped = patch.stamped(LATER).sections
    assert stamped["user", "workContext"] == Section("w", LATER)
    assert stamped["user", "topOfMind"] == Section("", "")
    given_time = SummaryPatch.parse({"user": {"workContext": {"summary": "w", "updatedAt": NOW}}})
    assert given_time.stamped(LATER).sections["user", "workContext"] == Section("w", NOW)


@pytest.mark.parametrize("nothing", [None, "", {}, {"summary": None}, {"summary": "", "updatedAt": None}])
def test_a_section_may_be_emptied(nothing: Any) -> None:
    patch = SummaryPatch.parse({"user": {"workContext": {} if nothing is None else nothing}})
    assert patch.sections == {("user", "workContext"): Section()}


BAD: list[tuple[str, Any]] = [
    ("summaries", []),
    ("summaries", "text"),
    ("summaries", None),
    ("summaries.facts", {"facts": []}),
    ("summaries.user", {"user": "text"}),
    ("summaries.user", {"user": None}),
    ("summaries.user.recentMonths", {"user": {"recentMonths": "r"}}),
    ("summaries.user.workContext", {"user": {"workContext": 5}}),
    ("summaries.user.workContext.summary", {"user": {"workContext": {"summary": 5}}}),
    ("summaries.user.workContext.summary", {"user": {"workContext": {"summary": 0}}}),
    ("summaries.user.workContext.summary", {"user": {"workContext": {"summary": False}}}),
    ("summaries.user.workContext.summary", {"user": {"workContext": {"summary": []}}}),
    ("summaries.user.workContext.summary", {"user": {"workContext": "\ud800"}}),
    ("summaries.user.workContext.summary", {"user": {"workContext": "s" * 100_001}}),
    ("summaries.user.workContext.summary", {"user": {"workContext": "é" * 50_001}}),
    ("summaries.user.workContext.updatedAt", {"user": {"workContext": {"updatedAt": "soon"}}}),
    ("summaries.user.workContext.updatedAt", {"user": {"workContext": {"updatedAt": 0}}}),
    ("summaries.user.workContext.extra", {"user": {"workContext": {"summary": "", "extra": 1}}}),
]


@pytest.mark.parametrize(("field", "document"), BAD, ids=[f"{n}-{bad[0]}" for n, bad in enumerate(BAD)])
def test_a_patch_names_the_key_that_breaks_its_rule(field: str, document: Any) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        SummaryPatch.parse(document)
    assert refusal.value.field == field


WORK = ("user", "workContext")
BUILT_BY_HAND: dict[str, tuple[Any, Any]] = {
    "an unknown section": (("user", "hobbies"), Section("h")),
    "an unknown group": (("facts", "x"), Section("h")),
    "a key of text": ("user", Section("h")),
    "a large summary": (WORK, Section("s" * 100_001)),
    "a lone surrogate": (WORK, Section("\ud800")),
    "a summary that is no text": (WORK, Section(5)),  # type: ignore[arg-type]
    "a time that is none": (WORK, Section("w", "soon")),
    "a time that is no text": (WORK, Section("w", 5)),  # type: ignore[arg-type]
    "a text for a section": (WORK, "text"),
}


@pytest.mark.parametrize("name", BUILT_BY_HAND)
def test_a_patch_that_was_built_by_hand_keeps_the_same_rules(name: str) -> None:
    key, section = BUILT_BY_HAND[name]
    with pytest.raises(InvalidInputError, match=r"^summaries"):
        SummaryPatch({key: section})


def test_summaries_can_be_pickled() -> None:
    summaries = Summaries.of({("user", "workContext"): Section("w", NOW)})
    assert pickle.loads(pickle.dumps(summaries)) == summaries  # noqa: S301 - our own bytes
    assert EMPTY_SUMMARIES["history", "recentMonths"] == Section()
