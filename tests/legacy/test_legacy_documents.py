"""The parts of a version-1 document that are no facts, references, and what is refused as a whole."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from deermem import Corruption, UnsupportedFormat
from deermem.format.legacy_json import MAX_LEGACY_BYTES, MAX_LEGACY_PARTS
from deermem.format.legacy_v1 import LegacyReference, decode_legacy, is_legacy_manifest
from deermem.model.summaries import EMPTY_SECTION, EMPTY_SUMMARIES, Section
from tests.legacy.documents import NOW, SCOPE, decode, refusal_of, short
from tests.legacy.samples import PLAIN_FACTS, summaries, v1_document, v2_document

DIGEST = "0f" * 32


@pytest.mark.parametrize("version", [None, "", "1", "1.0", 1, 1.0], ids=short)
def test_every_spelling_of_version_1_is_read(version: object) -> None:
    document = {**v1_document(PLAIN_FACTS), "version": version}
    assert is_legacy_manifest(document)
    assert len(decode(document).facts) == 2


def test_a_document_without_a_version_is_of_version_1() -> None:
    assert is_legacy_manifest({})
    assert decode({}).version == ""


def test_version_2_is_legacy_only_with_facts_in_it() -> None:
    assert not is_legacy_manifest(v2_document(4))
    assert is_legacy_manifest({**v2_document(4), "facts": None})
    assert decode({**v2_document(4), "facts": PLAIN_FACTS}).revision == 4


def test_version_2_without_facts_is_read_for_its_summaries() -> None:
    assert decode(v2_document(4, topOfMind="Bees.")).summaries["user", "topOfMind"].summary == "Bees."


@pytest.mark.parametrize(
    "version", ["3.0", "2.1", "v2", "1.1", 2, 2.0, True, [], {"a": 1}, math.nan, "x" * 500]
)
def test_another_version_is_not_read(version: object) -> None:
    document = {**v1_document(PLAIN_FACTS), "version": version}
    assert not is_legacy_manifest(document)
    with pytest.raises(UnsupportedFormat) as caught:
        decode(document)
    assert len(caught.value.found) <= 100


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"{", "is not JSON"),
        (b'{"a":"\xff"}', "is not UTF-8 at byte 6"),
        (b'{"facts":1,"facts":2}', "two values for 'facts'"),
        (b'{"facts":' + b"[" * 300 + b"]" * 300 + b"}", "is nested too deeply"),
        (b'{"a":' * 100_000, "is nested too deeply"),
        (b'{"facts":[' + b"[]," * MAX_LEGACY_PARTS + b"0]}", "has more than 1,000,000 parts"),
        (b" " * (MAX_LEGACY_BYTES + 1), "is larger than"),
    ],
    ids=short,
)
def test_what_is_no_json_object_within_the_limits_is_corruption(data: bytes, reason: str) -> None:
    with pytest.raises(Corruption, match=reason):
        decode_legacy(data, "memory.json", SCOPE, NOW)


def test_a_string_without_an_end_costs_one_pass() -> None:
    with pytest.raises(Corruption, match="is not JSON"):
        decode_legacy(b'{"a":"' + b'\\"' * 1_000_000, "memory.json", SCOPE, NOW)


def test_text_full_of_commas_and_brackets_is_not_taken_for_parts() -> None:
    facts = [{"id": f"fact_{number}", "content": "[{,[" * 100_000} for number in range(3)]
    assert len(decode(v1_document(facts)).facts) == 3


def test_thousands_of_facts_that_differ_under_one_generated_id_are_kept_in_one_pass() -> None:
    facts = [{"content": "One.", "confidence": number / 4_000} for number in range(4_000)]
    assert len({fact.draft.id for fact in decode(v1_document(facts)).facts}) == 4_000


def test_a_hundred_thousand_keys_are_read_in_one_pass() -> None:
    keys = {f"key{number}": number for number in range(100_000)}
    document = decode({"facts": [{"content": "One.", **keys}], "user": {**keys, "workContext": keys}, **keys})
    assert document.facts == ()
    assert document.refusals[-1].place == "facts[0]"


def test_a_byte_order_mark_is_no_part_of_the_document() -> None:
    assert decode_legacy(b"\xef\xbb\xbf{}", "memory.json", SCOPE, NOW) == decode({})


def test_a_number_too_large_for_a_float_is_kept_as_its_text() -> None:
    document = decode_legacy(b'{"size":1e999,"small":1e9}', "memory.json", SCOPE, NOW)
    assert [extra.json for extra in document.extra] == ['"1e999"', "1000000000.0"]


def test_a_key_twice_with_the_same_value_is_read() -> None:
    data = b'{"facts":[{"id":"fact_a","content":"One.","content":"One."}]}'
    assert len(decode_legacy(data, "memory.json", SCOPE, NOW).facts) == 1


@pytest.mark.parametrize(
    ("written", "number", "left"),
    [
        (None, 0, {}),
        (0, 0, {}),
        (7, 7, {}),
        ("7", 7, {}),
        (7.0, 7, {}),
        (-1, 0, {"legacyRevision": -1}),
        ("many", 0, {"legacyRevision": "many"}),
        (2**53, 0, {"legacyRevision": 2**53}),
    ],
    ids=short,
)
def test_a_revision_is_read_or_kept(written: object, number: int, left: dict[str, object]) -> None:
    document = decode({"revision": written})
    assert document.revision == number
    assert {extra.key: json.loads(extra.json) for extra in document.extra} == left


def test_a_time_of_the_last_change_that_cannot_be_read_is_kept() -> None:
    document = decode({"lastUpdated": "in March"})
    assert (document.last_updated, document.extra[0].key, document.extra[0].json) == (
        "",
        "legacyLastUpdated",
        '"in March"',
    )


def test_unknown_keys_at_the_top_are_kept_in_their_order() -> None:
    document = decode({"zebra": {"a": [1]}, "version": "1.0", "apple": None})
    assert [(extra.key, extra.json) for extra in document.extra] == [
        ("zebra", '{"a":[1]}'),
        ("apple", "null"),
    ]


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, list(range(9_001))])
def test_an_unknown_key_that_memory_json_cannot_hold_is_refused(value: object) -> None:
    refusal = refusal_of(decode({"own": value}))
    assert (refusal.place, refusal.field, json.loads(refusal.text)) == ("own", "", value)
    refusal.text.encode("utf-8")


@pytest.mark.parametrize("key", ["\ud800", "x" * 200])
def test_a_refusal_keeps_the_key_that_its_place_cannot_show(key: str) -> None:
    refusal = refusal_of(decode({key: "\ud800"}))
    assert json.loads(refusal.text) == {key: "\ud800"}
    refusal.place.encode("utf-8")


def test_summaries_are_taken_over() -> None:
    found = decode(v1_document([], workContext="Builds.", earlierContext="Read.")).summaries
    assert found["user", "workContext"] == Section("Builds.", "2026-03-28T10:30:00Z")
    assert found["history", "earlierContext"] == Section("Read.", "2026-03-28T10:30:00Z")
    assert found["user", "topOfMind"] == EMPTY_SECTION


@pytest.mark.parametrize(
    "document",
    [{}, {"user": None, "history": None}, {"user": {}, "history": {"recentMonths": None}}, summaries()],
)
def test_missing_and_null_summaries_are_empty(document: dict[str, Any]) -> None:
    assert decode(document).summaries == EMPTY_SUMMARIES
    assert decode(document).refusals == ()


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("A text.", Section("A text.")),
        ({"summary": "A text."}, Section("A text.")),
        ({"summary": None, "updatedAt": None}, Section()),
        ({"summary": "A", "updatedAt": "2026-03-01T10:00:00+02:00"}, Section("A", "2026-03-01T08:00:00Z")),
        ({"summary": "A", "updatedAt": "soon"}, Section("A", "", '{"legacyUpdatedAt":"soon"}')),
        ({"summary": "A", "weight": 2}, Section("A", "", '{"weight":2}')),
    ],
)
@pytest.mark.parametrize("name", ["workContext", "ownSection"])
def test_a_section_of_an_odd_shape_is_read(name: str, written: object, read_as: Section) -> None:
    document = decode({"user": {name: written}})
    assert document.summaries["user", name] == read_as
    assert document.refusals == ()


@pytest.mark.parametrize(
    ("user", "place", "field"),
    [
        (["a"], "user", ""),
        ("text", "user", ""),
        ({"workContext": ["a"]}, "user.workContext", ""),
        ({"workContext": 7}, "user.workContext", ""),
        ({"workContext": {"summary": ["a"]}}, "user.workContext", "summary"),
        ({"workContext": {"summary": "\ud800"}}, "user.workContext", "summary"),
        ({"workContext": {"summary": "x" * 100_001}}, "user.workContext", "summary"),
        ({"workContext": {"summary": "A", "own": "\ud800"}}, "user.workContext.own", ""),
        ({"ownSection": ["a"]}, "user.ownSection", ""),
    ],
)
def test_a_section_that_cannot_be_one_is_refused_with_its_place(user: Any, place: str, field: str) -> None:
    document = decode({"user": user, "history": {"recentMonths": "kept"}})
    refusal = refusal_of(document)
    assert (refusal.place, refusal.field) == (place, field)
    value = {"user": user}
    for key in place.split("."):
        value = value[key]
    assert json.loads(refusal.text) == value
    assert document.summaries["history", "recentMonths"].summary == "kept"


def test_a_section_whose_name_has_a_lone_surrogate_is_refused_alone() -> None:
    document = decode({"user": {"\ud800": "A", "ownSection": "B"}})
    assert json.loads(refusal_of(document).text) == {"\ud800": "A"}
    assert document.summaries["user", "ownSection"] == Section("B")


def test_a_summary_stays_when_a_key_beside_it_is_refused() -> None:
    document = decode({"user": {"workContext": {"summary": "A", "own": "\ud800", "weight": 2}}})
    assert document.summaries["user", "workContext"] == Section("A", "", '{"weight":2}')


def test_unknown_keys_that_do_not_fit_into_memory_json_are_refused() -> None:
    document = decode({**summaries(workContext="A"), "own": "x" * 5_000_000})
    assert (refusal_of(document).place, document.extra) == ("own", ())
    assert document.summaries["user", "workContext"].summary == "A"


def test_unknown_sections_that_do_not_fit_into_memory_json_are_refused() -> None:
    own = {f"own{number}": "x" * 90_000 for number in range(60)}
    document = decode({"user": {"workContext": "A", **own}})
    assert [refusal.place for refusal in document.refusals] == [f"user.{name}" for name in own]
    assert all("x" * 90_000 in refusal.text for refusal in document.refusals)
    assert document.summaries["user", "workContext"] == Section("A")


@pytest.mark.parametrize("facts", ["text", 7, True])
def test_facts_that_are_neither_list_nor_object_are_refused(facts: object) -> None:
    refusal = refusal_of(decode({"facts": facts}))
    assert (refusal.place, json.loads(refusal.text)) == ("facts", facts)


def test_a_map_of_facts_becomes_references() -> None:
    document = decode(
        {
            "version": "2.0",
            "facts": {
                "fact_a": {
                    "path": "facts/fa/fact_a.md",
                    "revision": 2,
                    "contentHash": f"sha256:{DIGEST.upper()}",
                },
                "fact_b": {"path": "fact_b.md"},
            },
        }
    )
    assert document.refusals == ()
    assert document.references == (
        LegacyReference("facts.fact_a", document.references[0].fact_id, ("facts", "fa", "fact_a.md"), DIGEST),
        LegacyReference("facts.fact_b", document.references[1].fact_id, ("fact_b.md",), None),
    )


@pytest.mark.parametrize(
    "path",
    [
        "../fact_a.md",
        "facts/../fact_a.md",
        "/facts/fact_a.md",
        "./fact_a.md",
        "facts//fact_a.md",
        "facts/",
        "facts\\fact_a.md",
        "C:/fact_a.md",
        "facts/a\x00.md",
        "facts/a\n",
        "..\n",
        "",
        None,
        7,
        "x/" * 5_000 + "x",
    ],
)
def test_a_reference_that_could_lead_out_of_the_bucket_is_refused(path: object) -> None:
    refusal = refusal_of(decode({"facts": {"fact_a": {"path": path}}}))
    assert (refusal.place, refusal.field) == ("facts.fact_a", "path")


@pytest.mark.parametrize(
    ("key", "entry", "field"),
    [
        ("fact_a", "facts/fact_a.md", ""),
        ("a:b", {"path": "facts/a.md"}, "id"),
        ("x" * 200, {"path": "facts/a.md"}, "id"),
        ("fact_a", {"path": "a.md", "contentHash": "md5:00"}, "contentHash"),
        ("fact_a", {"path": "a.md", "contentHash": 7}, "contentHash"),
    ],
)
def test_an_entry_that_is_no_reference_is_refused(key: str, entry: object, field: str) -> None:
    refusal = refusal_of(decode({"facts": {key: entry}}))
    assert refusal.field == field
    assert json.loads(refusal.text) == (entry if len(key) <= 100 else {key: entry})
