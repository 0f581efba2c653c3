"""Whatever a version-1 document holds: the historical document says the same, and the way back is exact."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from deermem import DeerMem, MemoryRepository
from deermem.compat import fact_document, snapshot_document
from tests.legacy.documents import DOCUMENTS, decode, document_bytes_of, stored
from tests.legacy.samples import Document
from tests.support.stores import ALICE, bucket_path

# Each example is a few transactions on a disk.
FEW = settings(max_examples=25)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
WORDS = TEXT.filter(lambda text: text.strip() != "")
STAMPS = st.datetimes().map(lambda moment: f"{moment.replace(microsecond=0).isoformat()}Z")
KNOWN_CATEGORIES = (
    "preference",
    "correction",
    "context",
    "goal",
    "behavior",
    "identity",
    "constraint",
    "decision",
    "other",
)
LAST_UPDATED = "2026-03-28T10:30:00Z"
SECTIONS = {
    "user": ("workContext", "personalContext", "topOfMind"),
    "history": ("recentMonths", "earlierContext", "longTermBackground"),
}


def content_of(fact: Document) -> str:
    """Returns what a fact says, as the store keeps it."""
    return str(fact["content"]).strip()


LOOSE_FACTS: st.SearchStrategy[Document] = st.fixed_dictionaries(
    {"content": WORDS},
    optional={
        "id": st.from_regex(r"fact_[a-z0-9]{8}", fullmatch=True)
        | st.sampled_from(["note:1", "事实", "", None, 7]),
        "category": st.sampled_from(KNOWN_CATEGORIES) | WORDS | st.sampled_from([None, ""]),
        "confidence": st.sampled_from([None, True, "0.25", "high", 0, 1, 85, -1]) | st.floats(-1, 2),
        "topics": st.lists(WORDS, max_size=3) | WORDS,
        "source": st.sampled_from(["manual", "import", "unknown", "thread_1", None, 5]),
        "createdAt": STAMPS | st.sampled_from([None, ""]),
        "sourceError": WORDS,
        "confirmationCount": st.integers(1, 9),
        "color": st.none() | st.integers(-9, 9) | st.lists(TEXT, max_size=2),
    },
)
LOOSE_LISTS: st.SearchStrategy[list[Document]] = st.lists(LOOSE_FACTS, min_size=2, max_size=6).filter(
    lambda facts: len({content_of(fact) for fact in facts}) == len(facts) and ids_are_unique(facts)
)
LOOSE_DOCUMENTS: st.SearchStrategy[Document] = st.fixed_dictionaries(
    {
        "version": st.just("1.0"),
        "lastUpdated": st.just(LAST_UPDATED),
        "facts": LOOSE_LISTS,
        **{
            group: st.fixed_dictionaries(
                {},
                optional={
                    name: st.fixed_dictionaries({"summary": TEXT, "updatedAt": STAMPS}) for name in names
                },
            )
            for group, names in SECTIONS.items()
        },
    }
)


def ids_are_unique(facts: list[Document]) -> bool:
    ids = [fact["id"] for fact in facts if has_id(fact)]
    return len(set(ids)) == len(ids)


def has_id(fact: Document) -> bool:
    return isinstance(fact.get("id"), str) and fact["id"].startswith("fact_")


def confidence_of(value: Any) -> float:
    """Returns what the contract makes of a confidence."""
    if value == "0.25":
        return 0.25
    if value is None or isinstance(value, bool | str):
        return 0.5
    return float(min(max(value, 0), 1))


def expected_fact(fact: Document) -> Document:
    """Returns what the historical document must say of a fact, by the table of contract section 4."""
    category = (fact.get("category") or "context").strip()
    own = {} if category in KNOWN_CATEGORIES else {"category": "other", "categoryExtension": category}
    topics = fact.get("topics", [])
    source = fact.get("source")
    return {
        "content": fact["content"].strip(),
        "category": category,
        **own,
        "confidence": confidence_of(fact.get("confidence")),
        "topics": [topics] if isinstance(topics, str) else topics,
        "source": source if isinstance(source, str) else "unknown",
        "createdAt": fact.get("createdAt") or LAST_UPDATED,
        "revision": 1,
        **({"id": fact["id"]} if has_id(fact) else {}),
        **{key: fact[key] for key in ("sourceError", "confirmationCount", "color") if key in fact},
    }


@contextmanager
def store_of(data: bytes) -> Iterator[Path]:
    """Gives a storage root whose user has this `memory.json`."""
    with tempfile.TemporaryDirectory() as name:
        bucket_path(Path(name)).mkdir(parents=True)
        bucket_path(Path(name)).joinpath("memory.json").write_bytes(data)
        yield Path(name)


@given(LOOSE_DOCUMENTS)
@FEW
def test_the_historical_document_equals_the_old_one_up_to_the_documented_defaults(
    document: Document,
) -> None:
    with store_of(document_bytes_of(document)) as root:
        found = DeerMem({"storage_path": str(root)}).get_memory(user_id="alice")
    by_content = {fact["content"]: fact for fact in found["facts"]}
    assert len(found["facts"]) == len(document["facts"])
    for fact in document["facts"]:
        expected = expected_fact(fact)
        assert {key: by_content[expected["content"]].get(key) for key in expected} == expected
        if not has_id(fact) and fact.get("id"):
            assert by_content[expected["content"]]["legacyId"] == fact["id"]
    for group, names in SECTIONS.items():
        assert found[group] == {
            name: document[group].get(name, {"summary": "", "updatedAt": ""}) for name in names
        }


@given(DOCUMENTS)
@FEW
def test_of_any_document_everything_is_in_the_memory_or_in_quarantine_and_the_way_back_is_exact(
    document: Document,
) -> None:
    data = document_bytes_of(document)
    read = decode(document)
    with store_of(data) as root:
        store = MemoryRepository(root)
        report = store.migrate("alice", on_invalid="quarantine")
        before = [meaning(stored(fact)) for fact in read.facts]
        facts = store.snapshot(ALICE).facts
        assert sorted(map(meaning, facts)) == sorted(before)
        missing = len(read.references)  # there are no files where they lead to
        assert len(quarantined(root, report.quarantine)) == len(read.refusals) + missing
        assert not store.migrate("alice", on_invalid="quarantine").needed

        store.roll_migration_back("alice")
        assert bucket_path(root).joinpath("memory.json").read_bytes() == data
        again = store.migrate("alice", on_invalid="quarantine")
        assert again.revision > report.revision
        assert sorted(map(meaning, store.snapshot(ALICE).facts)) == sorted(before)


def quarantined(root: Path, path: str | None) -> list[Document]:
    """Returns what a migration kept aside."""
    if path is None:
        return []
    refused: list[Document] = json.loads((root / path).read_text("utf-8"))["refused"]
    return refused


def meaning(fact: Any) -> str:
    """Returns what a fact says; times of creation that the document does not give are those of the run."""
    document = fact_document(fact)
    return json.dumps({**document, "createdAt": "", "updatedAt": "", "consolidatedAt": ""}, sort_keys=True)


@given(DOCUMENTS)
@FEW
def test_a_migrated_document_reads_the_same_from_the_cache_and_from_the_disk(document: Document) -> None:
    with store_of(document_bytes_of(document)) as root:
        store = MemoryRepository(root)
        store.migrate("alice", on_invalid="quarantine")
        assert snapshot_document(store.snapshot(ALICE)) == snapshot_document(
            MemoryRepository(root).snapshot(ALICE)
        )
