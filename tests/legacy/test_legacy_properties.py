"""Whatever a version-1 file holds: nothing is lost, all of it can be written, and always the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from deermem import Corruption, Scope, UnsupportedFormat
from deermem.format.fact_markdown import decode_fact, encode_fact
from deermem.format.legacy_journal import LegacyJournal, decode_legacy_journal
from deermem.format.legacy_v1 import LegacyDocument, decode_legacy
from deermem.format.manifest_json import decode_manifest, encode_manifest
from deermem.model.identity import FactId
from deermem.model.manifest import Manifest
from tests.legacy.documents import DOCUMENTS, JSON, NOW, SCOPE, decode, document_bytes_of, stored
from tests.legacy.samples import Document


@given(JSON | st.dictionaries(st.sampled_from(["version", "facts", "user", "history"]), JSON))
def test_any_json_is_a_document_or_a_typed_error(value: Any) -> None:
    try:
        found: LegacyDocument | None = decode(value)
    except (Corruption, UnsupportedFormat):
        found = None
    assert found is None or isinstance(found, LegacyDocument)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_document_or_a_typed_error(data: bytes) -> None:
    for read in (
        lambda: decode_legacy(data, "memory.json", SCOPE, NOW),
        lambda: decode_legacy_journal(data, "journal"),
    ):
        try:
            found: LegacyDocument | LegacyJournal | None = read()
        except (Corruption, UnsupportedFormat):
            found = None
        assert found is None or isinstance(found, LegacyDocument | LegacyJournal)


@given(DOCUMENTS)
def test_every_fact_is_accounted_for(document: Document) -> None:
    found = decode(document)
    facts = document["facts"]
    places = [fact.place for fact in found.facts] + [reference.place for reference in found.references]
    refused = [refusal.place for refusal in found.refusals if refusal.place.startswith("facts")]
    assert len(set(places + refused)) == len(places + refused)
    if isinstance(facts, dict):
        assert len(places + refused) == len(facts)
        return
    meanings = {meaning(stored(fact)) for fact in found.facts}
    for number, fact in enumerate(facts):
        if f"facts[{number}]" not in places + refused:  # a twin of one that is there
            [alone] = decode({**document, "facts": [fact]}).facts
            # Of several that differ under one generated id, the others have another id each.
            assert meaning(stored(alone))[1:] in {other[1:] for other in meanings}


def meaning(fact: Any) -> tuple[Any, ...]:
    return (
        fact.id,
        fact.content,
        fact.confidence,
        fact.category,
        fact.category_extension,
        fact.topics,
        fact.extra,
    )


@given(DOCUMENTS)
def test_every_fact_can_be_written_and_reads_the_same(document: Document) -> None:
    for fact in decode(document).facts:
        before = stored(fact)
        data = encode_fact(before)
        after = decode_fact(data, path=fact.place, scope=SCOPE, fact_id=FactId(before.id))
        assert after.same_meaning(before)
        assert (after.created_at, after.updated_at) == (before.created_at, before.updated_at)


@given(DOCUMENTS)
def test_what_is_not_a_fact_can_be_written_and_reads_the_same(document: Document) -> None:
    found = decode(document)
    manifest = Manifest(found.revision + 1, NOW, found.summaries, found.extra)
    assert decode_manifest(encode_manifest(manifest), "memory.json") == manifest


@given(DOCUMENTS)
def test_refusals_are_text_that_can_be_shown_and_kept(document: Document) -> None:
    for refusal in decode(document).refusals:
        json.loads(refusal.text.encode("utf-8"))
        assert f"{refusal.place}{refusal.field}{refusal.reason}".encode()


@given(DOCUMENTS)
def test_a_document_reads_the_same_twice(document: Document) -> None:
    assert decode(document) == decode(document)


@given(DOCUMENTS)
def test_a_user_gets_the_same_facts_under_the_raw_id_and_under_the_name_of_the_bucket(
    document: Document,
) -> None:
    raw = Scope.of("alice@example.com")
    bucket = Scope.of(raw.user.bucket)
    assert decode(document, raw) == decode(document, bucket)


@given(DOCUMENTS)
def test_ids_are_never_given_twice(document: Document) -> None:
    ids = [fact.draft.id for fact in decode(document).facts]
    assert len(set(ids)) == len(ids)


@given(DOCUMENTS)
def test_what_was_migrated_migrates_to_the_same_again(document: Document) -> None:
    """A second run on the source finds the facts of the first: ids do not depend on the time."""
    again = decode(document, now="2027-01-01T00:00:00Z")
    assert [fact.draft.id for fact in again.facts] == [fact.draft.id for fact in decode(document).facts]


@given(DOCUMENTS)
def test_unknown_keys_are_kept_or_refused(document: Document) -> None:
    found = decode(document)
    known = {"version", "revision", "lastUpdated", "user", "history", "facts"}
    there = {extra.key for extra in found.extra} | {refusal.place for refusal in found.refusals}
    for key in document.keys() - known:
        assert key.encode("utf-8", "backslashreplace").decode() in there


def test_the_bytes_of_the_samples_are_those_of_the_predecessor() -> None:
    assert document_bytes_of({"ä": float("nan")}) == b'{\n  "\xc3\xa4": NaN\n}'
