"""From draft to fact to the next revision of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from deermem import FactDraft, InvalidInputError, Scope
from deermem.model.fact import ExtraField, next_fact
from deermem.model.identity import FactId
from tests.model.strategies import DRAFTS, LATER, NOW, SCOPE, fact


@given(DRAFTS)
def test_a_new_fact_is_at_revision_1_and_created_now(draft: FactDraft) -> None:
    new = next_fact(draft, SCOPE, NOW, None)
    assert (new.revision, new.created_at, new.updated_at, new.status) == (1, NOW, NOW, "active")
    assert (new.id, new.scope, new.content) == (draft.id, SCOPE, draft.content)


@given(DRAFTS)
def test_a_fact_that_is_proposed_again_is_the_same_object(draft: FactDraft) -> None:
    new = next_fact(draft, SCOPE, NOW, None)
    assert next_fact(draft, SCOPE, LATER, new) is new
    assert next_fact(new.draft(), SCOPE, LATER, new) is new


@given(DRAFTS, DRAFTS)
def test_a_change_of_substance_adds_one_to_the_revision_and_keeps_the_creation_time(
    first: FactDraft, second: FactDraft
) -> None:
    before = next_fact(first, SCOPE, NOW, None)
    after = next_fact(replace(second, id=first.id), SCOPE, LATER, before)
    if after is before:
        assert after.same_meaning(before)
    else:
        assert not after.same_meaning(before)
        assert (after.revision, after.created_at, after.updated_at) == (2, NOW, LATER)


@given(DRAFTS)
def test_renewing_gives_the_same_meaning_a_revision_that_nobody_saw(draft: FactDraft) -> None:
    before = next_fact(draft, SCOPE, NOW, None)
    after = next_fact(draft, SCOPE, LATER, before, renewed_at=7)
    assert after.revision == 7
    assert after.same_meaning(before)


CHANGES: dict[str, Any] = {
    "content": "other",
    "title": "Mine",
    "category": "goal",
    "topics": ("t",),
    "confidence": 0.9,
    "source": "thread_2",
    "consolidated_from": ("a",),
    "consolidated_at": LATER,
    "expected_valid_days": 3,
    "source_error": "e",
    "last_confirmed_at": LATER,
    "confirmation_count": 2,
    "extra": (ExtraField("k", "1"),),
}


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_of_a_draft_is_of_substance(field: str) -> None:
    before = fact("x")
    after = next_fact(before.draft(**{field: CHANGES[field]}), SCOPE, LATER, before)
    assert after.revision == 2


def test_a_given_creation_time_counts_for_a_new_fact_only() -> None:
    draft = FactDraft("a", id=FactId("x"), created_at="2020-01-01T01:00:00+01:00")
    new = next_fact(draft, SCOPE, NOW, None)
    assert new.created_at == "2020-01-01T00:00:00Z"
    assert (
        next_fact(replace(draft, content="b", created_at=LATER), SCOPE, NOW, new).created_at == new.created_at
    )


def test_a_draft_without_an_id_is_no_fact_yet() -> None:
    with pytest.raises(InvalidInputError) as refusal:
        next_fact(FactDraft("text"), SCOPE, NOW, None)
    assert refusal.value.field == "id"


def test_a_fact_that_names_others_has_a_time_of_consolidation_and_keeps_it() -> None:
    new = fact("x", consolidated_from=("a",))
    assert new.consolidated_at == NOW
    changed = next_fact(new.draft(content="other"), SCOPE, LATER, new)
    assert changed.consolidated_at == NOW
    assert fact("x").consolidated_at is None


@pytest.mark.parametrize("foreign", ["2026-07-19T02:00:00+02:00", "2026-07-19", "2026-07-19T00:00:00.000Z"])
def test_another_way_to_write_a_moment_is_no_change(foreign: str) -> None:
    before = replace(fact("x"), last_confirmed_at=foreign, created_at=foreign, consolidated_at=foreign)
    assert next_fact(before.draft(), SCOPE, LATER, before) is before
    changed = next_fact(before.draft(content="other"), SCOPE, LATER, before)
    assert {changed.last_confirmed_at, changed.created_at, changed.consolidated_at} == {NOW}


def test_a_derived_title_is_derived_again_and_a_given_one_stays() -> None:
    derived, given_ = fact("x", "first"), fact("x", "first", title="Mine")
    assert next_fact(derived.draft(content="second"), SCOPE, LATER, derived).title == "second"
    assert next_fact(given_.draft(content="second"), SCOPE, LATER, given_).title == "Mine"


def test_a_title_that_ended_at_a_tab_in_an_earlier_release_still_counts_as_derived() -> None:
    stored = replace(fact("x", "tab\there"), title="tab")
    assert next_fact(stored.draft(content="second"), SCOPE, LATER, stored).title == "second"


def test_the_user_may_be_known_by_another_name_of_the_same_bucket() -> None:
    raw = Scope.of("a@b.c")
    by_bucket = Scope.of(raw.user.bucket)
    one = replace(fact("x"), scope=raw)
    assert one.same_meaning(replace(one, scope=by_bucket))
    assert not one.same_meaning(replace(one, scope=Scope.of("a@b.c", "coder")))
    assert not one.same_meaning(replace(one, scope=Scope.of("other")))
