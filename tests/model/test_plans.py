"""Plans: from a snapshot to the change set that follows from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deermem import (
    ChangeSet,
    DuplicateFact,
    Fact,
    FactDraft,
    FactNotFoundError,
    InvalidInputError,
    Section,
    Summaries,
    Unchanged,
)
from deermem.model import plans
from deermem.model.changes import ANYTHING
from deermem.model.identity import FactId
from deermem.model.summaries import SECTION_KEYS
from tests.model.strategies import CONFIDENCES, IDS, MANUAL, NOW, fact, snapshot

FACTS = st.dictionaries(IDS, CONFIDENCES, max_size=8).map(
    lambda confidences: [fact(key, f"text {key}", confidence=value) for key, value in confidences.items()]
)


def deleted(changes: ChangeSet) -> set[str]:
    return {delete.fact_id for delete in changes.deletes}


@given(FACTS, st.integers(1, 8))
def test_the_cap_evicts_what_is_over_it_and_nothing_that_is_better_than_what_stays(
    facts: list[Fact], cap: int
) -> None:
    evicted = plans.facts_over_cap(facts, cap)
    kept = [one for one in facts if one not in evicted]
    assert len(kept) == min(len(facts), cap)
    for out in evicted:
        for stays in kept:
            assert (-stays.confidence, stays.id) < (-out.confidence, out.id)


@given(FACTS, st.integers(1, 8))
def test_a_trim_deletes_the_evicted_as_they_were_seen(facts: list[Fact], cap: int) -> None:
    changes = plans.trim(snapshot(*facts), cap)
    assert deleted(changes) == {one.id for one in plans.facts_over_cap(facts, cap)}
    assert all(isinstance(delete.expect, Unchanged) for delete in changes.deletes)
    assert not changes.upserts


@given(FACTS, CONFIDENCES, st.integers(1, 8))
def test_creating_never_leaves_more_facts_than_the_cap_and_keeps_the_best(
    facts: list[Fact], confidence: float, cap: int
) -> None:
    draft = FactDraft("a new text", id=FactId("new-fact"), confidence=confidence)
    changes = plans.create(snapshot(*facts), draft, NOW, cap)
    left = {one.id for one in facts} - deleted(changes) | {one.key[1] for one in changes.upserts}
    assert len(left) == min(len(facts) + 1, cap)
    everything = {one.id: (-one.confidence, one.id) for one in facts}
    everything[FactId("new-fact")] = (-confidence, FactId("new-fact"))
    assert left == set(sorted(everything, key=lambda key: everything[key])[: len(left)])


def test_without_a_cap_everything_stays() -> None:
    changes = plans.create(snapshot(fact("a"), fact("b", "b")), FactDraft("c", id=FactId("c")), NOW, None)
    assert (len(changes.upserts), changes.deletes) == (1, ())


@pytest.mark.parametrize("content", ["text", "TEXT", "  Text \n", "tEXT\u2028"])
def test_the_same_text_is_refused_whatever_its_case_and_outer_space(content: str) -> None:
    with pytest.raises(DuplicateFact) as duplicate:
        plans.create(snapshot(fact("a")), FactDraft(content, id=FactId("b")), NOW, None)
    assert duplicate.value.fact_id == "a"


@pytest.mark.parametrize("content", ["text.", "te xt", "texts"])
def test_another_text_is_no_duplicate(content: str) -> None:
    assert plans.find_duplicate(snapshot(fact("a")), content) is None


def test_consolidation_names_its_origins_once_and_in_order() -> None:
    facts = snapshot(fact("a"), fact("b", "b"), fact("c", "c"))
    draft = FactDraft("all", id=FactId("all"), consolidated_from=("older", "b"), source=MANUAL)
    changes = plans.consolidate(facts, [FactId("b"), FactId("a"), FactId("b")], draft)
    merged = changes.upserts[0].draft
    assert merged.consolidated_from == ("older", "b", "a")
    assert merged.source.type == "consolidation"
    assert deleted(changes) == {"a", "b"}


def test_consolidation_may_go_into_one_of_the_facts_that_it_replaces() -> None:
    facts = snapshot(fact("a"), fact("b", "b"))
    changes = plans.consolidate(facts, [FactId("a"), FactId("b")], FactDraft("both", id=FactId("a")))
    assert changes.upserts[0].expect == Unchanged(facts.by_id[FactId("a")])
    assert deleted(changes) == {"b"}


def test_consolidation_of_an_absent_fact_is_refused() -> None:
    with pytest.raises(FactNotFoundError) as missing:
        plans.consolidate(snapshot(fact("a")), [FactId("z")], FactDraft("t", id=FactId("n")))
    assert missing.value.fact_id == "z"


def test_an_import_sets_the_facts_and_all_six_summaries() -> None:
    facts = snapshot(fact("gone"), fact("known", "old"))
    summaries = Summaries.of({("user", "topOfMind"): Section("t", NOW)})
    drafts = [FactDraft("new", id=FactId("known")), FactDraft("fresh", id=FactId("fresh"))]
    changes = plans.replace_all(facts, drafts, summaries)
    assert {one.key[1]: one.expect for one in changes.upserts} == {"known": ANYTHING, "fresh": ANYTHING}
    assert deleted(changes) == {"gone"}
    assert changes.summaries is not None
    assert dict(changes.summaries.sections) == {key: summaries[key] for key in SECTION_KEYS}


def test_an_import_that_names_an_id_twice_is_refused() -> None:
    drafts = [FactDraft("one", id=FactId("a")), FactDraft("two", id=FactId("a"))]
    with pytest.raises(InvalidInputError, match="more than once"):
        plans.replace_all(snapshot(), drafts, Summaries.of({}))
