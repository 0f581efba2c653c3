"""Plan section 11: one format of facts and a journal, and no switch for either."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import DeerMemConfig, FactDraft, MemoryRepository
from deermem.model.summaries import EMPTY_SUMMARIES
from tests.support.stores import ALICE, JOURNAL, draft, files, store_with
from tests.support.watched import Call, WatchedFileSystem

MUTATIONS: dict[str, Callable[[MemoryRepository], object]] = {
    "create": lambda store: store.upsert_fact(ALICE, draft("new")),
    "update": lambda store: store.edit_fact(ALICE, "x", {"content": "two"}),
    "delete": lambda store: store.delete_fact(ALICE, "x"),
    "summaries": lambda store: store.update_summaries("alice", {"user": {"topOfMind": "t"}}),
    "clear": lambda store: store.clear(ALICE),
    "clear_all": lambda store: store.clear_all("alice"),
    "create at the cap": lambda store: store.create_fact(ALICE, FactDraft("n", confidence=1), max_facts=1),
    "import": lambda store: store.replace_all(ALICE, [draft("new")], EMPTY_SUMMARIES),
}


def test_the_fact_format_is_markdown_and_there_is_no_other(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    for mutation in ("create", "update", "create at the cap"):
        MUTATIONS[mutation](store)
    below_agents = [Path(name) for name in files(tmp_path) if "/agents/" in name]
    assert {path.suffix for path in below_agents} == {".md"}
    assert all(tmp_path.joinpath(path).read_bytes().startswith(b"---\n") for path in below_agents)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_journal_is_enabled_for_every_mutation(tmp_path: Path, mutation: str) -> None:
    """Its name is made durable before any file of the user changes."""
    store_with(tmp_path, "x", "y")
    disk = WatchedFileSystem(tmp_path)
    MUTATIONS[mutation](MemoryRepository(disk))
    journal = disk.calls.index(Call("rename", f"users/alice/{JOURNAL}"))
    assert disk.calls[journal + 1] == Call("sync", "users/alice")
    changed = [
        number
        for number, call in enumerate(disk.calls)
        if call.kind in ("rename", "unlink") and not call.path.endswith(JOURNAL)
    ]
    assert changed
    assert min(changed) > journal + 1
    assert disk.calls.index(Call("unlink", f"users/alice/{JOURNAL}")) > max(changed)


def test_neither_invariant_is_a_setting() -> None:
    settings = {*inspect.signature(MemoryRepository).parameters, *DeerMemConfig.__dataclass_fields__}
    assert not {"fact_format", "journal_enabled"} & settings


@pytest.mark.parametrize("key", ["fact_format", "journal_enabled"])
def test_a_supplied_invariant_is_ignored_with_a_warning_as_any_unknown_key(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        config = DeerMemConfig.from_backend_config({key: "json", "max_facts": 50})
    assert config == DeerMemConfig(max_facts=50)
    assert [key in message for message in caplog.messages] == [True]
