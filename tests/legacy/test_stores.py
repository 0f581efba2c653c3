"""The stores of earlier releases are what their descriptions say."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from deermem import Scope
from deermem.format.fact_markdown import decode_fact
from deermem.format.layout import parse_fact_parts
from deermem.format.legacy_journal import decode_legacy_journal
from deermem.format.legacy_v1 import decode_legacy, is_legacy_manifest
from tests.legacy.documents import NOW
from tests.legacy.stores import JOURNAL, MANIFEST, OPERATION, STORES, USER, fact_map, fact_map_of_an_agent


@pytest.mark.parametrize("name", STORES)
def test_every_document_of_every_store_is_read(name: str, tmp_path: Path) -> None:
    STORES[name](tmp_path)
    documents = [*tmp_path.glob("agents/*/memory.json"), *tmp_path.glob(MANIFEST), *tmp_path.glob("*.bak")]
    for path in documents:
        agent = path.parent.name if "agents" in path.parts else None
        document = decode_legacy(path.read_bytes(), path.name, Scope.of(USER, agent), NOW)
        assert bool(document.refusals) == (name == "partly_refused")


@pytest.mark.parametrize("name", STORES)
def test_every_fact_file_of_every_store_is_read(name: str, tmp_path: Path) -> None:
    STORES[name](tmp_path)
    for path in tmp_path.glob("agents/*/facts/*/*.md"):
        parts = path.relative_to(tmp_path).parts
        place = parse_fact_parts(parts)
        assert (place is None) == (name == "fact_map_of_an_agent")
        if place is not None:
            scope = Scope.of(USER, None if place[0] == "__default__" else place[0])
            assert decode_fact(path.read_bytes(), path=path.name, scope=scope, fact_id=place[1]).revision >= 1


@pytest.mark.parametrize("name", [name for name in STORES if name.startswith("hot_")])
def test_every_hot_journal_is_read(name: str, tmp_path: Path) -> None:
    STORES[name](tmp_path)
    journal = decode_legacy_journal(tmp_path.joinpath(JOURNAL).read_bytes(), JOURNAL)
    assert (journal.operation, journal.committed) == (OPERATION, name == "hot_committed")


@pytest.mark.parametrize("name", STORES)
def test_a_store_is_at_version_2_only_from_the_markdown_generation_on(name: str, tmp_path: Path) -> None:
    STORES[name](tmp_path)
    path = tmp_path / MANIFEST
    version_2 = (
        "markdown",
        "after_migration",
        "changed",
        "agent_beside_v2",
        "lead_agent",
        "custom_lead_agent",
    )
    expected = not (name in version_2 or (name.startswith("hot_") and "migration" not in name))
    assert not path.exists() or is_legacy_manifest(json.loads(path.read_bytes())) == expected


@pytest.mark.parametrize("store", [fact_map, fact_map_of_an_agent])
def test_references_lead_to_the_files_that_they_are_about(store: type, tmp_path: Path) -> None:
    store(tmp_path)
    for path in [tmp_path / MANIFEST, *tmp_path.glob("agents/*/memory.json")]:
        document = decode_legacy(path.read_bytes(), path.name, Scope.of(USER), NOW)
        [reference] = document.references
        data = path.parent.joinpath(*reference.parts).read_bytes()
        assert sha256(data).hexdigest() == reference.content_hash
