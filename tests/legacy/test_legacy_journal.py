"""The predecessor's journal: what is read, and what is refused before it could name a wrong file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deermem import Corruption
from deermem.format.journal_json import Image, Journal, encode_journal
from deermem.format.legacy_journal import decode_legacy_journal, is_legacy_journal
from tests.legacy.samples import GERMAN, LISBON
from tests.legacy.stores import OPERATION, canonical_path, journal_document


def journal(**changes: Any) -> dict[str, Any]:
    return {**journal_document("prepared", [GERMAN, LISBON], [GERMAN]), **changes}


def decode(document: Any) -> Any:
    return decode_legacy_journal(json.dumps(document).encode(), ".memory.journal.json")


def test_a_journal_is_read() -> None:
    found = decode(journal())
    assert (found.operation, found.committed, found.agent) == (OPERATION, False, "__default__")
    assert (found.expected_revision, found.next_revision) == (4, 5)
    assert found.fact_ids == (GERMAN, LISBON)
    assert found.old_paths == {GERMAN: tuple(canonical_path(GERMAN).split("/"))}


def test_a_committed_journal_is_told_from_a_prepared_one() -> None:
    assert decode(journal(state="committed")).committed


def test_a_change_of_summaries_alone_needs_no_agent() -> None:
    found = decode(journal(agentName=None, factIds=[], oldEntries={}))
    assert (found.agent, found.fact_ids, found.old_paths) == (None, (), {})


def test_the_agent_may_be_in_any_case() -> None:
    entries = {GERMAN: {"path": canonical_path(GERMAN, "research")}}
    assert decode(journal(agentName="Research", oldEntries=entries)).agent == "research"


def test_our_own_journal_is_not_the_predecessors() -> None:
    image = Image.of(("memory.json",), f"{OPERATION}.0", b"{}")
    own = json.loads(encode_journal(Journal(OPERATION, 4, 5, (), image, ())))
    assert not is_legacy_journal(own)
    assert is_legacy_journal(journal())


@pytest.mark.parametrize(
    "changes", [{"format": 2}, {"state": "redo"}, {"state": None}, {"state": ["prepared"]}]
)
def test_what_is_no_journal_of_the_predecessor_is_refused(changes: dict[str, Any]) -> None:
    assert not is_legacy_journal(journal(**changes))
    with pytest.raises(Corruption, match="is no journal of the predecessor"):
        decode(journal(**changes))


@pytest.mark.parametrize(
    "operation", ["..", ".", "", "a/b", "a\\b", "/a", "a\x00", "a\n", None, 7, "x" * 200]
)
def test_an_operation_that_is_no_plain_name_is_refused(operation: object) -> None:
    with pytest.raises(Corruption, match="operationId"):
        decode(journal(operationId=operation))


@pytest.mark.parametrize(
    "path",
    [
        canonical_path(LISBON),
        canonical_path(GERMAN, "research"),
        "agents/__default__/facts/00/fact_1a2b3c4d.md",
        f"../{canonical_path(GERMAN)}",
        f"/{canonical_path(GERMAN)}",
        canonical_path(GERMAN).replace("agents", "Agents"),
        "memory.json",
        "config.yaml",
        None,
        7,
    ],
)
def test_a_path_that_is_not_that_of_its_fact_is_refused(path: object) -> None:
    with pytest.raises(Corruption, match="oldEntries"):
        decode(journal(oldEntries={GERMAN: {"path": path}}))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"agentName": None}, "agentName"),
        ({"agentName": "../x"}, "agentName"),
        ({"agentName": 7}, "agentName"),
        ({"factIds": None}, "factIds"),
        ({"factIds": "fact_a"}, "factIds"),
        ({"factIds": [GERMAN, "../x"]}, "factIds[1]"),
        ({"factIds": [GERMAN, 7]}, "factIds[1]"),
        ({"oldEntries": None}, "oldEntries"),
        ({"oldEntries": {GERMAN: canonical_path(GERMAN)}}, "oldEntries"),
        ({"oldEntries": {"../x": {"path": "x"}}}, "oldEntries"),
        ({"factIds": [LISBON]}, "oldEntries"),
        ({"expectedRevision": -1}, "expectedRevision"),
        ({"expectedRevision": True}, "expectedRevision"),
        ({"expectedRevision": "4"}, "expectedRevision"),
        ({"nextRevision": 7}, "nextRevision"),
    ],
)
def test_a_journal_that_breaks_a_rule_is_refused_and_the_key_is_named(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(Corruption) as caught:
        decode(journal(**changes))
    assert caught.value.reason.startswith(field)


def test_an_id_longer_than_version_2_allows_is_read_because_its_file_may_be_there() -> None:
    long = "x" * 252
    found = decode(journal(factIds=[GERMAN, long], oldEntries={long: {"path": canonical_path(long)}}))
    assert found.fact_ids == (GERMAN, long)
    assert list(found.old_paths) == [long]


def test_an_id_too_long_for_a_file_name_is_passed_over() -> None:
    assert decode(journal(factIds=[GERMAN, "x" * 300])).fact_ids == (GERMAN,)


def test_a_journal_that_is_no_json_or_too_large_is_corruption() -> None:
    for data in (b"", b"[]", b"{", b"\xff", b" " * 8_000_001):
        with pytest.raises(Corruption):
            decode_legacy_journal(data, ".memory.journal.json")
