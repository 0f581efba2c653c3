"""Clear All takes version-1 files with it, whatever they hold (plan section 10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deermem import ManifestConflict, MemoryRepository, NotACustomAgent
from deermem.errors import LegacyFormat, UnsupportedFormat
from tests.migration.v1 import FACT, OTHER, agent_document, backup_of, document, put
from tests.support.stores import ALICE, CODER, bucket_path, draft, manifest, store_with

CONTRADICTING = agent_document(OTHER, user={"workContext": {"summary": "Paints."}})
INVALID = agent_document({**OTHER, "content": ""}, 7)


@pytest.mark.parametrize(
    "agents_file", [agent_document(OTHER), CONTRADICTING, INVALID], ids=["sound", "contradicting", "invalid"]
)
@pytest.mark.parametrize("own", [document(FACT), document(FACT, 7), None], ids=["v1", "invalid v1", "v2"])
def test_a_clear_all_takes_unread_files_of_version_1_with_it(
    tmp_path: Path, own: dict[str, Any] | None, agents_file: dict[str, Any]
) -> None:
    sources = []
    if own is None:
        store_with(tmp_path, "x")
    else:
        sources.append(put(tmp_path, own))
    sources.append(put(tmp_path, agents_file, "coder"))
    originals = [source.read_bytes() for source in sources]
    config = bucket_path(tmp_path) / "agents/coder/config.yaml"
    config.write_text("name: coder")
    delta = MemoryRepository(tmp_path).clear_all("alice")
    after = MemoryRepository(tmp_path)
    assert after.snapshot(ALICE).facts == after.snapshot(CODER).facts == ()
    assert after.snapshot(CODER).revision == delta.revision == manifest(tmp_path)["revision"]
    assert not any(section.summary for section in after.get_summaries("alice").sections.values())
    assert [backup_of(source).read_bytes() for source in sources] == originals
    assert not (bucket_path(tmp_path) / "agents/coder/memory.json").exists()
    assert config.read_text() == "name: coder"


@pytest.mark.parametrize("broken", [b"", b'{"version": "1.0", "facts": [', b"\xff\0"], ids=str)
def test_a_clear_all_takes_a_broken_file_of_an_agent_with_it(tmp_path: Path, broken: bytes) -> None:
    source = put(tmp_path, agent_document(OTHER), "coder")
    source.write_bytes(broken)
    MemoryRepository(tmp_path).clear_all("alice")
    assert not source.exists()
    assert backup_of(source).read_bytes() == broken


def test_a_clear_all_keeps_an_agents_file_of_a_later_version(tmp_path: Path) -> None:
    source = put(tmp_path, agent_document(OTHER, version="9.0"), "coder")
    with pytest.raises(UnsupportedFormat, match=r"9\.0"):
        MemoryRepository(tmp_path).clear_all("alice")
    assert source.exists()


@pytest.mark.parametrize("agent", ["__default__", "coder"])
def test_a_clear_all_needs_no_memory_json(tmp_path: Path, agent: str) -> None:
    source = put(tmp_path, agent_document(OTHER), agent)
    MemoryRepository(tmp_path).clear_all("alice")
    assert MemoryRepository(tmp_path).snapshot(ALICE).facts == ()
    assert not source.exists()


def test_a_clear_all_is_one_transaction(tmp_path: Path) -> None:
    put(tmp_path, document(FACT, revision=4))
    put(tmp_path, agent_document(OTHER), "coder")
    store = MemoryRepository(tmp_path)
    told = store.clear_all("alice")
    assert set(told.cleared) == {"__default__", "coder"} or set(told.cleared) == {"coder"}
    assert store.counters()["commits"] == 1


def test_a_clear_all_fences_what_was_read_before_it(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    put(tmp_path, agent_document(OTHER), "coder")
    MemoryRepository(tmp_path).clear_all("alice")
    for base in (0, 1):
        with pytest.raises(ManifestConflict):
            MemoryRepository(tmp_path).upsert_fact(CODER, draft("late"), expected_manifest_revision=base)


def test_a_clear_all_of_a_file_that_is_no_memory_at_all_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, {"version": "9.0"})
    with pytest.raises(Exception, match=r"9\.0") as refusal:
        MemoryRepository(tmp_path).clear_all("alice")
    assert not isinstance(refusal.value, LegacyFormat)
    assert json.loads(path.read_text()) == {"version": "9.0"}


def test_a_clear_of_one_agent_migrates_its_file_first(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    put(tmp_path, agent_document(OTHER, user={"topOfMind": {"summary": "Ships."}}), "coder")
    store = MemoryRepository(tmp_path)
    store.clear(CODER)
    assert store.snapshot(CODER).facts == ()
    assert store.snapshot(ALICE).by_id.keys() == {"fact_a"}
    assert store.get_summaries("alice")["user", "topOfMind"].summary == "Ships."


def test_deleting_an_agent_takes_its_unread_file_with_it(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    put(tmp_path, agent_document(OTHER), "coder")
    (bucket_path(tmp_path) / "agents/coder/config.yaml").write_text("name: coder")
    store = MemoryRepository(tmp_path)
    store.delete_agent(CODER)
    assert not (bucket_path(tmp_path) / "agents/coder").exists()
    assert MemoryRepository(tmp_path).snapshot(CODER).facts == ()


def test_an_agent_without_a_config_keeps_its_unread_file(tmp_path: Path) -> None:
    put(tmp_path, document(FACT))
    source = put(tmp_path, agent_document(OTHER), "coder")
    with pytest.raises(NotACustomAgent):
        MemoryRepository(tmp_path).delete_agent(CODER)
    assert source.exists()
