"""`resolve`: the one place that decides what a change set comes to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deermem import (
    ABSENT,
    ANYTHING,
    AtRevision,
    ChangeSet,
    Delete,
    Fact,
    FactConflict,
    FactDraft,
    InvalidInputError,
    ManifestConflict,
    SummaryPatch,
    Unchanged,
    Upsert,
)
from deermem.model import changes as changes_module
from deermem.model.changes import Precondition
from deermem.model.fact import ExtraField
from deermem.model.identity import DEFAULT_AGENT, AgentName, FactId
from deermem.model.manifest import NO_MANIFEST, Manifest
from deermem.model.resolution import NO_FENCES, Before, Fences, check_precondition, resolve
from tests.model.strategies import DRAFTS, IDS, LATER, NOW, SCOPE, TEXT, fact

CODER = AgentName("coder")
X, Y = FactId("x"), FactId("y")


def before(
    *facts: Fact,
    revision: int = 5,
    absent: tuple[str, ...] = (),
    fences: Fences = NO_FENCES,
    listed: dict[AgentName, tuple[FactId, ...]] | None = None,
) -> Before:
    known: dict[Any, Fact | None] = {(DEFAULT_AGENT, FactId(name)): None for name in absent}
    known |= {(one.scope.agent, one.id): one for one in facts}
    return Before(SCOPE.user, Manifest(revision, NOW), known, listed or {}, fences)


def upsert(fact_id: str, expect: Precondition = ABSENT, content: str = "new") -> Upsert:
    return Upsert(DEFAULT_AGENT, FactDraft(content, id=FactId(fact_id)), expect)


@given(st.dictionaries(IDS, DRAFTS, max_size=4), st.integers(0, 9))
def test_new_facts_are_written_at_revision_1_and_the_manifest_advances_by_one(
    drafts: dict[FactId, FactDraft], revision: int
) -> None:
    upserts = tuple(Upsert(DEFAULT_AGENT, replace(draft, id=key)) for key, draft in drafts.items())
    resolution = resolve(ChangeSet(upserts=upserts), before(revision=revision, absent=tuple(drafts)), LATER)
    assert [one.id for one in resolution.written] == list(drafts)
    assert {one.revision for one in resolution.written} <= {1}
    assert {one.updated_at for one in resolution.written} <= {LATER}
    assert resolution.manifest.revision == revision + bool(drafts)
    assert resolution.fences is None


def test_what_changes_nothing_keeps_the_manifest_object_itself() -> None:
    state = before(fact("x", "same"), absent=("y",))
    same = upsert("x", AtRevision(1), "same")
    patch = SummaryPatch.parse({"user": {"topOfMind": ""}})
    resolution = resolve(ChangeSet((same,), (Delete(DEFAULT_AGENT, Y),), patch), state, LATER)
    assert resolution.manifest is state.manifest
    assert (resolution.written, resolution.deleted) == ((), ())
    assert [one.id for one in resolution.unchanged] == ["x"]


def test_unknown_fields_of_the_manifest_are_carried_over() -> None:
    state = before(absent=("x",))
    extra = (ExtraField("mine", "1"),)
    manifest = replace(state.manifest, extra=extra)
    resolution = resolve(ChangeSet((upsert("x"),)), replace(state, manifest=manifest), LATER)
    assert resolution.manifest.extra == extra


PRESENT = fact("x", "text")
HOLDS: list[tuple[Precondition, Fact | None, bool]] = [
    (ANYTHING, None, True),
    (ANYTHING, PRESENT, True),
    (ABSENT, None, True),
    (ABSENT, PRESENT, False),
    (AtRevision(1), PRESENT, True),
    (AtRevision(2), PRESENT, False),
    (AtRevision(1), None, False),
    (Unchanged(PRESENT), PRESENT, True),
    (Unchanged(PRESENT), replace(PRESENT), True),
    (Unchanged(PRESENT), None, False),
    (Unchanged(PRESENT), replace(PRESENT, revision=2), False),
    (Unchanged(PRESENT), replace(PRESENT, created_at=LATER), False),
    (Unchanged(PRESENT), replace(PRESENT, content="other"), False),
    (Unchanged(PRESENT), replace(PRESENT, confidence=0.9), False),
]


@pytest.mark.parametrize(
    ("expect", "present", "holds"), HOLDS, ids=[f"{n}-{type(row[0]).__name__}" for n, row in enumerate(HOLDS)]
)
def test_a_precondition_holds_or_is_a_conflict(
    expect: Precondition, present: Fact | None, holds: bool
) -> None:
    if holds:
        check_precondition(expect, X, present)
        return
    with pytest.raises(FactConflict) as conflict:
        check_precondition(expect, X, present)
    assert conflict.value.actual == (None if present is None else present.revision)
    if isinstance(expect, Unchanged):
        assert conflict.value.expected_text == "text"
        assert conflict.value.actual_text == (None if present is None else present.content)


@pytest.mark.parametrize("expected", [0, 4, 6])
def test_a_stale_base_is_a_conflict_unless_every_fact_has_a_precondition(expected: int) -> None:
    state = before(fact("x"), absent=("y",))
    for upserts, deletes in (((), (Delete(DEFAULT_AGENT, X),)), ((upsert("y", ANYTHING),), ())):
        changes = ChangeSet(upserts, deletes, expected_manifest_revision=expected, may_rebase=True)
        with pytest.raises(ManifestConflict) as conflict:
            resolve(changes, state, LATER)
        assert (conflict.value.expected, conflict.value.actual) == (expected, 5)


@given(st.integers(0, 6), st.booleans(), st.integers(0, 6), st.integers(0, 6))
def test_a_point_operation_is_accepted_exactly_if_it_is_fresh_or_rebases_over_no_fence(
    expected: int, may_rebase: bool, agent_fence: int, fence_of_all: int
) -> None:
    fences = Fences(min(fence_of_all, 5), {DEFAULT_AGENT: min(agent_fence, 5)})
    changes = ChangeSet((upsert("x"),), expected_manifest_revision=expected, may_rebase=may_rebase)
    fresh = expected == 5
    rebased = may_rebase and expected < 5 and fences.of(DEFAULT_AGENT) <= expected
    state = before(absent=("x",), fences=fences)
    if fresh or rebased:
        assert resolve(changes, state, LATER).manifest.revision == 6
    else:
        with pytest.raises(ManifestConflict):
            resolve(changes, state, LATER)


def test_the_fence_of_one_agent_does_not_hold_for_another() -> None:
    fences = NO_FENCES.raised([CODER], False, 4)
    assert (fences.of(CODER), fences.of(DEFAULT_AGENT)) == (4, 0)
    fences = fences.raised([DEFAULT_AGENT], False, 6)
    assert (fences.of(CODER), fences.of(DEFAULT_AGENT)) == (4, 6)
    fences = fences.raised([], True, 9)
    assert (fences.of(CODER), fences.of(DEFAULT_AGENT), dict(fences.agents)) == (9, 9, {})


def test_a_clear_deletes_what_is_listed_and_raises_its_fence_to_the_new_revision() -> None:
    state = before(listed={DEFAULT_AGENT: (X, Y)})
    resolution = resolve(ChangeSet(clears=frozenset([DEFAULT_AGENT])), state, LATER)
    assert resolution.deleted == ((DEFAULT_AGENT, X), (DEFAULT_AGENT, Y))
    assert resolution.cleared == (DEFAULT_AGENT,)
    assert resolution.fences is not None
    assert resolution.fences.of(DEFAULT_AGENT) == 6
    assert resolution.manifest.revision == 6


def test_a_clear_of_a_user_about_whom_nothing_was_stored_commits_nothing() -> None:
    state = Before(SCOPE.user, NO_MANIFEST, {}, {}, NO_FENCES)
    for changes in (ChangeSet(clears=frozenset([CODER])), ChangeSet(clear_all=True)):
        assert resolve(changes, state, LATER).manifest is NO_MANIFEST


def test_a_summary_patch_that_changes_nothing_commits_nothing() -> None:
    state = before()
    patch = SummaryPatch.parse({"user": {"workContext": {"summary": "w", "updatedAt": NOW}}})
    first = resolve(ChangeSet(summaries=patch), state, LATER)
    assert first.manifest.revision == 6
    again = resolve(ChangeSet(summaries=patch), replace(state, manifest=first.manifest), LATER)
    assert again.manifest is first.manifest


@given(
    st.lists(st.sampled_from(["x", "y", "z"]), max_size=4),
    st.lists(st.sampled_from(["x", "y", "z"]), max_size=4),
)
def test_a_change_set_names_each_fact_at_most_once(upserted: list[str], deleted: list[str]) -> None:
    upserts = tuple(upsert(name) for name in upserted)
    deletes = tuple(Delete(DEFAULT_AGENT, name) for name in deleted)
    named = [*upserted, *deleted]
    if len(set(named)) < len(named):
        with pytest.raises(InvalidInputError, match=r"^changes: name the fact"):
            ChangeSet(upserts, deletes)
    else:
        changes = ChangeSet(upserts, deletes)
        assert changes.fact_keys() == tuple((DEFAULT_AGENT, FactId(name)) for name in named)


def test_a_change_set_cannot_both_clear_an_agent_and_name_a_fact_of_it() -> None:
    for clears, clear_all in ((frozenset([DEFAULT_AGENT]), False), (frozenset[AgentName](), True)):
        with pytest.raises(InvalidInputError) as refusal:
            ChangeSet((upsert("x"),), clears=clears, clear_all=clear_all)
        assert refusal.value.field == "changes"
    assert ChangeSet((upsert("x"),), clears=frozenset([CODER])).agents() == {DEFAULT_AGENT, CODER}


@pytest.mark.parametrize("revision", [-1, True, "5", 5.5])
def test_an_expected_manifest_revision_is_a_number_that_can_have_been_read(revision: Any) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        ChangeSet((upsert("x"),), expected_manifest_revision=revision, may_rebase=True)
    assert refusal.value.field == "expected_manifest_revision"


def test_a_fact_without_an_id_cannot_be_named() -> None:
    with pytest.raises(InvalidInputError) as refusal:
        ChangeSet((Upsert(DEFAULT_AGENT, FactDraft("text")),))
    assert refusal.value.field == "id"


@pytest.mark.parametrize("agent", ["Coder", "../x", "", "a_b", 5])
def test_an_agent_that_no_directory_can_have_is_refused(agent: Any) -> None:
    for make in (
        lambda: Upsert(agent, FactDraft("t", id=X)),
        lambda: Delete(agent, X),
        lambda: ChangeSet(clears=frozenset([agent])),
    ):
        with pytest.raises(InvalidInputError) as refusal:
            make()
        assert refusal.value.field == "agent_name"


def test_a_change_set_has_a_limit_of_facts_and_of_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MAX_CHANGES", 2)
    monkeypatch.setattr(changes_module, "MAX_CHANGE_BYTES", 10)
    ChangeSet((upsert("x", content="12345"), upsert("y", content="67890")))
    for upserts in ([upsert("a"), upsert("b"), upsert("c")], [upsert("a", content="12345678901")]):
        with pytest.raises(InvalidInputError) as refusal:
            ChangeSet(tuple(upserts))
        assert refusal.value.field == "changes"


@given(TEXT)
def test_resolving_does_not_depend_on_the_order_of_calls(content: str) -> None:
    state = before(fact("x"), absent=("y",))
    changes = ChangeSet((upsert("x", AtRevision(1), content), upsert("y", content=content)))
    assert resolve(changes, state, LATER) == resolve(changes, state, LATER)
