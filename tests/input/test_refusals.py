"""Bad input: a typed error that names the field, nothing written, and the next operation works."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deermem import (
    ChangeSet,
    Delete,
    FactDraft,
    InvalidInputError,
    MemoryRepository,
    Scope,
    Section,
    SummaryPatch,
    Upsert,
)
from deermem.model.fact import ExtraField
from deermem.model.identity import FactId
from tests.support.stores import ALICE, bucket_path, draft, edit, store_with, tree
from tests.support.watched import WatchedFileSystem

X = FactId("x")
WORK = ("user", "workContext")

Call = Callable[[MemoryRepository], object]


def changes(*upserts: Upsert, deletes: tuple[Delete, ...] = ()) -> Call:
    return lambda store: store.apply_changes("alice", ChangeSet(upserts, deletes))


def new(**fields: Any) -> Call:
    return lambda store: store.upsert_fact(ALICE, FactDraft(**{"content": "text", **fields}))


def extra(*fields: ExtraField) -> Call:
    return new(id=FactId("new"), extra=fields)


SAME = Upsert(ALICE.agent, FactDraft("text", id=FactId("new")))

REFUSED: dict[str, tuple[str, Call]] = {
    "an over-long id": ("id", new(id="a" * 129)),
    "an id of 300 characters": ("id", lambda store: store.get_fact(ALICE, "a" * 300)),
    "an id that leads away": ("id", new(id="../../x")),
    "an absolute id": ("id", lambda store: store.delete_fact(ALICE, "/etc/passwd")),
    "an id with a NUL": ("id", new(id="a\0")),
    "an id with a line end": ("id", lambda store: store.edit_fact(ALICE, "x\n", {})),
    "an empty id": ("id", lambda store: store.adopt_fact(ALICE, "")),
    "an id to consolidate": ("id", lambda store: store.consolidate(ALICE, ["x", "a b"], draft("n"))),
    "an over-long user id": ("user_id", lambda _: Scope.of("u" * 201)),
    "an empty user id": ("user_id", lambda store: store.clear_all("")),
    "a user id of a lone surrogate": ("user_id", lambda store: store.get_manifest("\udc80")),
    "an agent that leads away": ("agent_name", lambda _: Scope.of("alice", "..")),
    "an agent with a line end": ("agent_name", lambda _: Scope.of("alice", "coder\n")),
    "the reserved agent": ("agent_name", lambda _: Scope.of("alice", "__default__")),
    "a lone surrogate": ("content", new(content="a\ud800b")),
    "a fact of 50 MB": ("content", new(content="a" * 50_000_000)),
    "a fact of white space": ("content", new(content="\u2028\t\x0c")),
    "content that is no text": ("content", new(content=b"text")),
    "a NaN confidence": ("confidence", new(confidence=math.nan)),
    "an infinite confidence": ("confidence", new(confidence=math.inf)),
    "a huge confidence": ("confidence", new(confidence=10**400)),
    "a boolean confidence": ("confidence", new(confidence=True)),
    "a textual confidence": ("confidence", new(confidence="0.5")),
    "topics as one string": ("topics", new(topics="python")),
    "a topic of a lone surrogate": ("topics", new(topics=["\ud800"])),
    "a title of two lines": ("title", new(title="a\x85b")),
    "an unknown field twice": ("extra", extra(ExtraField("k", "1"), ExtraField("k", "2"))),
    "an unknown field named as a known one": ("extra", extra(ExtraField("revision", "7"))),
    "an unknown field that is no JSON": ("k", extra(ExtraField("k", "{"))),
    "an unknown field of a lone surrogate": ("k", extra(ExtraField("k", '"\\ud800"'))),
    "an unknown field of great depth": ("k", extra(ExtraField("k", "[" * 900 + "]" * 900))),
    "an id twice in a change set": ("changes", changes(SAME, SAME)),
    "a fact both written and deleted": ("changes", changes(SAME, deletes=(Delete(ALICE.agent, "new"),))),
    "a fact both written and cleared": (
        "changes",
        lambda store: store.apply_changes("alice", ChangeSet((SAME,), clears=frozenset([ALICE.agent]))),
    ),
    "an import with an id twice": (
        "changes",
        lambda store: store.replace_all(ALICE, [draft("a"), draft("a")], store.get_summaries("alice")),
    ),
    "an expected revision of zero": ("expected", lambda store: store.delete_fact(ALICE, "x", expected=0)),
    "an expected revision of text": ("expected", lambda store: store.edit_fact(ALICE, "x", {}, expected="1")),  # type: ignore[arg-type]
    "an expected revision of True": (
        "expected",
        lambda store: store.upsert_fact(ALICE, draft("x"), expected=True),
    ),
    "a negative manifest revision": (
        "expected_manifest_revision",
        lambda store: store.upsert_fact(ALICE, draft("n"), expected_manifest_revision=-1),
    ),
    "a cap of zero": ("max_facts", lambda store: store.trim(ALICE, 0)),
    "a negative cap": ("max_facts", lambda store: store.create_fact(ALICE, FactDraft("n"), max_facts=-1)),
    "a cap of True": ("max_facts", lambda store: store.trim(ALICE, True)),
    "a cap of 2.5": ("max_facts", lambda store: store.trim(ALICE, 2.5)),  # type: ignore[arg-type]
    "a cap of text": ("max_facts", lambda store: store.create_fact(ALICE, FactDraft("n"), max_facts="9")),  # type: ignore[arg-type]
    "a page of zero facts": ("limit", lambda store: store.list_facts(ALICE, limit=0)),
    "a page of too many facts": ("limit", lambda store: store.list_facts(ALICE, limit=1_001)),
    "a page of True facts": ("limit", lambda store: store.list_facts(ALICE, limit=True)),
    "a cursor that is no id": ("id", lambda store: store.list_facts(ALICE, cursor="../x")),
    "an unknown filter": ("filters.colour", lambda store: store.list_facts(ALICE, filters={"colour": "red"})),
    "a filter of the wrong type": (
        "filters.confidence",
        lambda store: store.list_facts(ALICE, filters={"confidence": "0.5"}),
    ),
    "a query that is no text": ("query", lambda store: store.search_facts(5, [ALICE])),  # type: ignore[arg-type]
    "a search for zero hits": ("top_k", lambda store: store.search_facts("x", [ALICE], top_k=0)),
    "an unknown summary": (
        "summaries.user.facts",
        lambda store: store.update_summaries("alice", {"user": {"facts": "x"}}),
    ),
    "a summary of a lone surrogate": (
        "summaries.user.workContext.summary",
        lambda store: store.update_summaries("alice", {"user": {"workContext": "\ud800"}}),
    ),
    "a summary of 50 MB built by hand": (
        "summaries.user.workContext.summary",
        lambda store: store.update_summaries("alice", SummaryPatch({WORK: Section("a" * 50_000_000)})),
    ),
    "a summary that holds NaN": (
        "summaries",
        lambda store: store.update_summaries("alice", SummaryPatch({WORK: Section("a", extra='{"n":NaN}')})),
    ),
    "a summary whose unknown fields are no JSON": (
        "summaries.user.workContext.extra",
        lambda store: store.update_summaries("alice", SummaryPatch({WORK: Section("a", extra="{")})),
    ),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a store of one fact, to copy."""
    root = tmp_path_factory.mktemp("base")
    store_with(root, "x")
    return root


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_by_the_name_of_its_field_and_nothing_is_written(
    base: Path, tmp_path: Path, name: str
) -> None:
    field, call = REFUSED[name]
    root = Path(shutil.copytree(base, tmp_path / "store"))
    store = MemoryRepository(root)
    before = tree(root)
    with pytest.raises(InvalidInputError) as refusal:
        call(store)
    assert refusal.value.field == field
    assert len(str(refusal.value)) < 400
    assert tree(root) == before
    assert store.upsert_fact(ALICE, draft("next")).revision == 2
    assert store.snapshot(ALICE).by_id.keys() == {"x", "next"}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_leaves_no_trace_of_a_user_about_whom_nothing_was_stored(tmp_path: Path, name: str) -> None:
    store = MemoryRepository(tmp_path / "store")
    with pytest.raises(InvalidInputError):
        REFUSED[name][1](store)
    assert not (tmp_path / "store").exists()


def test_the_longest_ids_work(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    scope = Scope.of("日" * 200, "a" * 64)
    fact_id = "f" * 128
    store.upsert_fact(scope, draft(fact_id))
    store.edit_fact(scope, fact_id, {"content": "two"})
    assert MemoryRepository(tmp_path).snapshot(scope).by_id.keys() == {fact_id}
    store.delete_fact(scope, fact_id)


def test_a_fact_at_every_limit_at_once_can_be_written_and_read(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    topics = tuple(f"{number:04}" + "t" * 60 for number in range(1_000))
    store.upsert_fact(ALICE, draft("x", "a" * 1_000_000, topics=topics, title="t" * 160, source="s" * 4_000))
    fact = MemoryRepository(tmp_path).get_fact(ALICE, "x")
    assert fact is not None
    assert (len(fact.content), fact.topics) == (1_000_000, topics)


def test_a_fact_that_keeps_each_limit_but_needs_too_large_a_file_is_refused(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    before = tree(tmp_path)
    topics = tuple(f"{number}" + "t" * 3_990 for number in range(1_000))
    with pytest.raises(InvalidInputError):
        store.upsert_fact(ALICE, draft("y", "a" * 1_000_000, topics=topics))
    assert tree(tmp_path) == before
    store.upsert_fact(ALICE, draft("y"))


@pytest.mark.parametrize("limit", ["manifest", "fact"])
def test_a_revision_at_its_limit_does_not_wedge_the_store(tmp_path: Path, limit: str) -> None:
    store_with(tmp_path, "x")
    if limit == "manifest":
        edit(bucket_path(tmp_path) / "memory.json", '"revision": 1', f'"revision": {2**53}')
    else:
        (path,) = tmp_path.rglob("x.md")
        edit(path, "revision: 1", f"revision: {2**53}")
    store = MemoryRepository(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(InvalidInputError):
        store.edit_fact(ALICE, "x", {"content": "two"})
    assert tree(tmp_path) == before
    assert store.get_fact(ALICE, "x") is not None


@pytest.mark.parametrize("device", ["CON", "nul", "Aux", "com1", "LPT9"])
def test_names_of_windows_devices_are_refused_there_and_never_misfiled(tmp_path: Path, device: str) -> None:
    store = MemoryRepository(WatchedFileSystem(tmp_path, windows_names=True))
    with pytest.raises(InvalidInputError) as refusal:
        store.upsert_fact(Scope.of(device), draft("x"))
    assert refusal.value.field == "user_id"
    with pytest.raises(InvalidInputError) as refusal:
        store.upsert_fact(Scope.of("alice", device), draft("x"))
    assert refusal.value.field == "agent_name"
    with pytest.raises(InvalidInputError) as refusal:
        store.upsert_fact(ALICE, draft(device))
    assert refusal.value.field == "id"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("device", ["CON", "nul", "Aux", "com1", "LPT9"])
def test_names_of_windows_devices_work_elsewhere(tmp_path: Path, device: str) -> None:
    scope = Scope.of(device, device)
    MemoryRepository(tmp_path).upsert_fact(scope, draft(device))
    assert MemoryRepository(tmp_path).snapshot(scope).by_id.keys() == {device}
