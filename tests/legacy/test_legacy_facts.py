"""How single version-1 facts become facts (contract section 4)."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from deermem import Scope
from deermem.format.legacy_facts import generated_id
from deermem.model.fact import Source
from tests.legacy.documents import LAST_UPDATED, NOW, decode, fact_of, kept, read, refusal_of, short, stored
from tests.legacy.samples import GERMAN, LOOSE_FACTS, PLAIN_FACTS, REFUSED_FACTS, v1_document

HEX = set("0123456789abcdef")


def test_a_plain_fact_is_taken_over_as_it_is() -> None:
    fact = fact_of(decode(v1_document(PLAIN_FACTS[:1])))
    assert (fact.place, fact.titled, fact.draft.id, fact.draft.extra) == ("facts[0]", False, GERMAN, ())
    assert stored(fact).content == "Prefers answers in German."
    assert stored(fact).category == "preference"
    assert stored(fact).confidence == 0.95
    assert stored(fact).created_at == "2026-03-01T08:15:30.123456Z"
    assert stored(fact).source == Source("conversation", "thread_42")


@pytest.mark.parametrize("fact", LOOSE_FACTS, ids=lambda fact: str(fact["content"]).strip()[:30])
def test_a_loose_fact_migrates_without_help(fact: dict[str, Any]) -> None:
    assert fact_of(decode(v1_document([fact]))).draft.content == fact["content"].strip()


@pytest.mark.parametrize(("fact", "field"), REFUSED_FACTS)
def test_what_cannot_be_a_fact_is_refused_with_its_place_and_field(fact: Any, field: str) -> None:
    refusal = refusal_of(decode(v1_document([PLAIN_FACTS[0], fact])))
    assert (refusal.place, refusal.field) == ("facts[1]", field)
    assert decode({"facts": [json.loads(refusal.text)]}).facts == decode({"facts": [fact]}).facts


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (None, 0.5),
        (True, 0.5),
        (False, 0.5),
        ("high", 0.5),
        ("0.75", 0.75),
        (" .5 ", 0.5),
        ("1e-1", 0.1),
        ("1e999", 1.0),
        ("nan", 0.5),
        ("1_0", 0.5),
        ([0.9], 0.5),
        (85, 1.0),
        (-1, 0.0),
        (-0.0, 0.0),
        (0, 0.0),
        (1, 1.0),
        (10**150, 1.0),
        (-(10**150), 0.0),
        (math.nan, 0.5),
        (math.inf, 1.0),
        (-math.inf, 0.0),
    ],
    ids=short,
)
def test_confidence_becomes_a_number_between_0_and_1(written: object, read_as: float) -> None:
    confidence = fact_of(read(confidence=written)).draft.confidence
    assert (confidence, math.copysign(1, confidence)) == (read_as, 1)


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (None, {}),
        (0.9, {}),
        ("0.75", {}),
        (85, {"legacyConfidence": 85}),
        (True, {"legacyConfidence": True}),
        ("high", {"legacyConfidence": "high"}),
        (math.nan, {"legacyConfidence": "NaN"}),
        (-math.inf, {"legacyConfidence": "-Infinity"}),
    ],
)
def test_a_confidence_that_was_replaced_is_kept(written: object, left: dict[str, object]) -> None:
    assert kept(fact_of(read(confidence=written))) == left


@pytest.mark.parametrize("missing", [None, "", " "])
def test_a_missing_id_is_generated(missing: object) -> None:
    fact = fact_of(read(id=missing))
    assert fact.draft.id == generated_id(Scope.of("alice"), None, "One.")
    assert kept(fact) == {}


@pytest.mark.parametrize("id_", ["a:b", "事实", "x" * 129, "README", "a/b", "..", 7, ["a"], {"b": 1, "a": 2}])
def test_an_id_that_is_not_allowed_is_replaced_and_kept(id_: object) -> None:
    fact = fact_of(read(id=id_))
    assert fact.draft.id is not None
    assert (fact.draft.id[:5], len(fact.draft.id)) == ("fact_", 37)
    assert set(fact.draft.id[5:]) <= HEX
    assert kept(fact) == {"legacyId": id_}


def test_a_generated_id_depends_on_user_agent_original_id_and_content_alone() -> None:
    alice, mail = Scope.of("alice"), Scope.of("a@b.c")
    base = generated_id(alice, "a:b", "One.")
    assert generated_id(Scope.of("bob"), "a:b", "One.") != base
    assert generated_id(Scope.of("alice", "coder"), "a:b", "One.") != base
    assert generated_id(alice, "a:c", "One.") != base
    assert generated_id(alice, "a:b", "Two.") != base
    assert generated_id(mail, "a:b", "One.") == generated_id(Scope.of(mail.user.bucket), "a:b", "One.")
    assert generated_id(Scope.of(None), None, "One.") == "fact_6da2e80f60bd554a1d4b9576e04c917a"


def test_facts_without_an_id_that_say_the_same_become_one() -> None:
    twin = {"content": "Two.", "confidence": 0.9}
    document = decode(v1_document([twin, {**twin, "createdAt": "2026-01-01T00:00:00Z"}]))
    assert fact_of(document).place == "facts[0]"


def test_facts_without_an_id_that_differ_get_ids_of_their_own() -> None:
    facts = [{"content": "Two.", "confidence": number / 10} for number in (1, 2, 3, 2)]
    document = decode(v1_document(facts))
    assert [fact.draft.confidence for fact in document.facts] == [0.1, 0.2, 0.3]
    assert len({fact.draft.id for fact in document.facts}) == 3
    assert document.refusals == ()


def test_one_id_twice_with_the_same_meaning_becomes_one_fact() -> None:
    document = decode(v1_document([PLAIN_FACTS[0], PLAIN_FACTS[1], dict(reversed(PLAIN_FACTS[0].items()))]))
    assert [fact.place for fact in document.facts] == ["facts[0]", "facts[1]"]
    assert document.refusals == ()


def test_one_id_twice_with_another_meaning_is_refused_naming_both() -> None:
    document = decode(v1_document([PLAIN_FACTS[0], {**PLAIN_FACTS[0], "content": "Prefers French."}]))
    assert [fact.place for fact in document.facts] == ["facts[0]"]
    refusal = refusal_of(document)
    assert (refusal.place, refusal.field) == ("facts[1]", "id")
    assert "facts[0]" in refusal.reason
    assert "Prefers French." in refusal.text


def test_ids_that_differ_in_case_are_two_facts() -> None:
    document = decode(v1_document([{"id": "fact_a", "content": "One."}, {"id": "FACT_A", "content": "One."}]))
    assert [fact.draft.id for fact in document.facts] == ["fact_a", "FACT_A"]


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("2026-03-01T08:15:30Z", "2026-03-01T08:15:30Z"),
        ("2026-03-01T08:15:30.5+00:00Z", "2026-03-01T08:15:30.500000Z"),
        ("2026-03-01T10:15:30+02:00", "2026-03-01T08:15:30Z"),
        ("2026-03-01 08:15:30", "2026-03-01T08:15:30Z"),
        (" 2026-03-01 ", "2026-03-01T00:00:00Z"),
    ],
)
def test_a_time_of_creation_in_an_odd_shape_is_read(written: str, read_as: str) -> None:
    fact = fact_of(read(createdAt=written))
    assert (fact.draft.created_at, kept(fact)) == (read_as, {})


@pytest.mark.parametrize(
    "written", ["soon", 1772352930, "0000-00-00T00:00:00Z", True, {"at": 1}, "9" * 5_000]
)
def test_a_time_of_creation_that_cannot_be_read_is_that_of_the_document_and_is_kept(written: object) -> None:
    fact = fact_of(read(createdAt=written))
    assert (fact.draft.created_at, kept(fact)) == (LAST_UPDATED, {"legacyCreatedAt": written})


@pytest.mark.parametrize("last_updated", [None, "", "soon"])
def test_a_time_that_nothing_tells_is_now(last_updated: object) -> None:
    document = decode({"lastUpdated": last_updated, "facts": [{"content": "One."}]})
    assert (document.last_updated, stored(fact_of(document)).created_at) == ("", NOW)


@pytest.mark.parametrize(
    ("written", "read_as", "left"),
    [
        (None, Source(), {}),
        ("", Source(), {}),
        ("manual", Source("manual"), {}),
        ("thread_1", Source("conversation", "thread_1"), {}),
        ({"type": "manual", "threadId": None}, Source("manual"), {}),
        ({"type": "conversation", "threadId": "t"}, Source("conversation", "t"), {}),
        ({"threadId": "t"}, Source("conversation", "t"), {}),
        ({}, Source(), {}),
        (7, Source(), {"legacySource": 7}),
        (["manual"], Source(), {"legacySource": ["manual"]}),
        ("t" * 5_000, Source(), {"legacySource": "t" * 5_000}),
        (
            {"type": "tool", "threadId": "t"},
            Source("conversation", "t"),
            {"legacySource": {"type": "tool", "threadId": "t"}},
        ),
        ({"type": "manual", "threadId": 7}, Source(), {"legacySource": {"type": "manual", "threadId": 7}}),
    ],
)
def test_a_source_is_read_or_unknown_and_kept(
    written: object, read_as: Source, left: dict[str, object]
) -> None:
    fact = fact_of(read(source=written))
    assert (fact.draft.source, kept(fact)) == (read_as, left)


def test_unknown_keys_of_a_source_stay_in_it() -> None:
    fact = fact_of(read(source={"type": "manual", "threadId": None, "by": {"tool": 1}}))
    assert [(extra.key, extra.json) for extra in fact.draft.source.extra] == [("by", '{"tool":1}')]


@pytest.mark.parametrize(
    ("written", "read_as", "left"),
    [
        (None, ("context", None), {}),
        ("", ("context", None), {}),
        (" \t", ("context", None), {}),
        (" goal ", ("goal", None), {}),
        ("食べ物", ("other", "食べ物"), {}),
        (3, ("context", None), {"legacyCategory": 3}),
        (["goal"], ("context", None), {"legacyCategory": ["goal"]}),
        ("x" * 5_000, ("context", None), {"legacyCategory": "x" * 5_000}),
    ],
)
def test_a_category_is_read_or_context(
    written: object, read_as: tuple[str, str | None], left: dict[str, object]
) -> None:
    fact = fact_of(read(category=written))
    assert (stored(fact).category, stored(fact).category_extension) == read_as
    assert kept(fact) == left


def test_a_category_of_the_users_own_may_stand_beside_other() -> None:
    fact = stored(fact_of(read(category="other", categoryExtension="food")))
    assert (fact.category, fact.category_extension) == ("other", "food")
    fact = stored(both := fact_of(read(category="goal", categoryExtension="food")))
    assert (fact.category, fact.category_extension, kept(both)) == (
        "goal",
        None,
        {"legacyCategoryExtension": "food"},
    )


@pytest.mark.parametrize("name", ["topics", "consolidatedFrom"])
@pytest.mark.parametrize(
    ("written", "read_as", "is_kept"),
    [
        (None, (), False),
        ([], (), False),
        ("", (), False),
        ("one", ("one",), False),
        (["a", "b"], ("a", "b"), False),
        (["a", 3, None, " ", {"b": 1}], ("a",), True),
        ({"a": 1}, (), True),
        (7, (), True),
        (["x"] * 1_001, ("x",) * 1_000, True),
    ],
)
def test_lists_of_texts_take_what_they_can_hold(
    name: str, written: object, read_as: tuple[str, ...], is_kept: bool
) -> None:
    fact = fact_of(read(**{name: written}))
    assert {"topics": fact.draft.topics, "consolidatedFrom": fact.draft.consolidated_from}[name] == read_as
    assert kept(fact) == ({f"legacy{name[0].upper()}{name[1:]}": written} if is_kept else {})


def test_a_draft_says_nothing_of_times_that_nothing_tells() -> None:
    """A time of the run in it would make a difference to a fact that an earlier run wrote."""
    fact = fact_of(decode({"facts": [{"content": "One.", "consolidatedFrom": ["fact_old"]}]}))
    assert (fact.draft.created_at, fact.draft.consolidated_at) == (None, None)


def test_a_consolidated_fact_without_a_time_of_it_gets_that_of_its_creation() -> None:
    fact = fact_of(read(consolidatedFrom=["fact_old"], createdAt="2026-03-01T00:00:00Z"))
    assert fact.draft.consolidated_at == "2026-03-01T00:00:00Z"


@pytest.mark.parametrize(
    ("written", "read_as", "title_left"),
    [
        ("A title", "A title", None),
        (" A title ", "A title", None),
        ("First\nsecond\x00third", "First second third", "First\nsecond\x00third"),
        ("word " * 60, ("word " * 32).strip(), "word " * 60),
        (7, None, 7),
        ("\x00", None, "\x00"),
        ("", None, None),
        (None, None, None),
    ],
)
def test_a_title_becomes_one_short_line(written: object, read_as: str | None, title_left: object) -> None:
    fact = fact_of(read(title=written))
    assert (fact.draft.title, fact.titled) == (read_as, read_as is not None)
    assert kept(fact) == ({} if title_left is None else {"legacyTitle": title_left})


@pytest.mark.parametrize("name", ["expected_valid_days", "confirmationCount"])
@pytest.mark.parametrize(
    ("written", "read_as", "is_kept"),
    [
        (None, None, False),
        (30, 30, False),
        (30.0, 30, False),
        ("30", 30, False),
        (0, None, True),
        (-1, None, True),
        (True, None, True),
        (1.5, None, True),
        ("a month", None, True),
        (2**53 + 1, None, True),
    ],
    ids=short,
)
def test_counts_are_integers_of_at_least_1(
    name: str, written: object, read_as: int | None, is_kept: bool
) -> None:
    fact = fact_of(read(**{name: written}))
    found = {
        "expected_valid_days": fact.draft.expected_valid_days,
        "confirmationCount": fact.draft.confirmation_count,
    }
    key = {"expected_valid_days": "legacyExpectedValidDays", "confirmationCount": "legacyConfirmationCount"}[
        name
    ]
    assert (found[name], kept(fact)) == (read_as, {key: written} if is_kept else {})


@pytest.mark.parametrize("written", [{"said": "3.11"}, 7, "x" * 5_000])
def test_an_error_of_the_source_that_is_no_short_text_is_kept(written: object) -> None:
    fact = fact_of(read(sourceError=written))
    assert (fact.draft.source_error, kept(fact)) == (None, {"legacySourceError": written})


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"revision": 1, "updatedAt": "2026-03-01T00:00:00Z", "schemaVersion": 1, "status": "active"}, {}),
        ({"revision": 3}, {"legacyRevision": 3}),
        ({"updatedAt": "2026-04-01"}, {"legacyUpdatedAt": "2026-04-01T00:00:00Z"}),
        ({"updatedAt": "soon"}, {"legacyUpdatedAt": "soon"}),
        ({"schemaVersion": "1"}, {"legacySchemaVersion": "1"}),
        ({"scope": {"userId": "alice", "agentName": "__default__"}}, {}),
        ({"scope": {"userId": "bob"}}, {"legacyScope": {"userId": "bob"}}),
        ({"user_id": "alice", "agent_name": "__default__"}, {}),
        ({"user_id": "bob", "agent_name": 7}, {"legacyUserId": "bob", "legacyAgentName": 7}),
        ({"agent_name": "coder"}, {"legacyAgentName": "coder"}),
    ],
)
def test_what_version_2_keeps_its_own_account_of_is_kept_where_it_tells_something(
    fields: dict[str, object], left: dict[str, object]
) -> None:
    assert kept(fact_of(read(createdAt="2026-03-01T00:00:00Z", **fields))) == left


def test_unknown_keys_are_kept_in_their_order_before_what_was_replaced() -> None:
    fact = fact_of(read(zebra=1, title=7, apple={"b": [None, 2.5], "a": True}))
    assert list(kept(fact).items()) == [
        ("zebra", 1),
        ("apple", {"b": [None, 2.5], "a": True}),
        ("legacyTitle", 7),
    ]


def test_what_is_kept_never_takes_the_place_of_an_unknown_key() -> None:
    assert kept(fact_of(read(title=7, legacyTitle="own"))) == {"legacyTitle": "own", "legacyTitle_": 7}


@pytest.mark.parametrize(
    ("written", "read_as"),
    [(10**99, 10**99), (10**200, "1" + "0" * 200), (math.inf, "Infinity"), (math.nan, "NaN")],
)
def test_numbers_that_no_json_of_the_store_can_hold_are_kept_as_text(written: float, read_as: object) -> None:
    assert kept(fact_of(read(size={"of": [written]}))) == {"size": {"of": [read_as]}}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"content": "\ud800"}, "content"),
        ({"content": "x" * 1_000_001}, "content"),
        ({"content": math.nan}, "content"),
        ({"title": "\ud800"}, "title"),
        ({"category": "\ud800"}, "category"),
        ({"topics": ["\ud800"]}, "topics"),
        ({"source": "\ud800"}, "source"),
        ({"id": "\ud800"}, "id"),
        ({"color": "\ud800"}, "color"),
        ({"\ud800": 1}, "\\ud800"),
        ({"color": {"\ud800": 1}}, "color"),
        ({"color": list(range(9_001))}, "color"),
        ({"createdAt": "\ud800"}, "createdAt"),
        ({"color": "x" * 300_000}, "extra"),
        ({"status": False}, "status"),
        ({"status": "deleted"}, "status"),
        ({"schemaVersion": 3}, "schemaVersion"),
    ],
)
def test_what_a_fact_document_cannot_hold_refuses_the_fact_and_names_the_field(
    fields: dict[str, object], field: str
) -> None:
    refusal = refusal_of(read(**fields))
    assert (refusal.place, refusal.field) == ("facts[0]", field)
    assert refusal.text.startswith('{"id":')
    refusal.text.encode("utf-8")


def test_a_value_nested_too_deeply_refuses_the_fact_alone() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    document = decode(v1_document([{"id": "fact_deep", "content": "One.", "color": deep}, PLAIN_FACTS[0]]))
    assert (refusal_of(document).field, len(document.facts)) == ("color", 1)


def test_blanks_around_the_content_go_and_all_else_stays() -> None:
    content = "# A heading\r\n---\nof\x85all\u2028kinds\x0c\x00"
    assert fact_of(read(content=f" \n{content}")).draft.content == content
