"""Plan section 5: one Markdown file per fact, checked before it is committed and when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deermem import (
    Corruption,
    FactDraft,
    InvalidInputError,
    MemoryRepository,
    Scope,
    Source,
    UnsupportedFormat,
)
from deermem.model.identity import FactId
from tests.support.stores import (
    ALICE,
    Clock,
    bucket_path,
    draft,
    edit,
    fact_path,
    store_with,
    tree,
)

EXAMPLE = dedent("""\
    ---
    id: fact_ab12
    schemaVersion: 2
    category: constraint
    topics: [python, runtime]
    confidence: 0.95
    status: active
    user_id: alice
    agent_name: research-agent
    source:
      type: conversation
      threadId: thread_123
    createdAt: 2026-07-19T00:00:00Z
    updatedAt: 2026-07-19T00:00:00Z
    revision: 1
    consolidatedFrom: []
    ---

    # Runtime constraint

    Project uses Python 3.12.
    """)
RESEARCH = Scope.of("alice", "research-agent")

# Every character but lone surrogates, and the lines that look like the document around them.
CONTENT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    st.lists(
        st.sampled_from(
            ["---", "# heading", "\r\n", "\n", "\r", "\u2028", "\x85", "\f", "\t", "a: b", "😀", "אב"]
        ),
        min_size=1,
        max_size=8,
    ).map("".join),
).filter(lambda text: text.strip())


def put_example(root: Path, text: str = EXAMPLE) -> Path:
    """Lays a document and a manifest where the plan wants them, without the store."""
    path = fact_path(root, RESEARCH, "fact_ab12")
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8", newline="")
    summary = {
        "version": "2.0",
        "revision": 12,
        "lastUpdated": "2026-07-19T00:00:00Z",
        "user": {},
        "history": {},
    }
    bucket_path(root).joinpath("memory.json").write_text(json.dumps(summary))
    return path


def test_the_plans_own_example_loads_as_printed(tmp_path: Path) -> None:
    put_example(tmp_path)
    fact = MemoryRepository(tmp_path).get_fact(RESEARCH, "fact_ab12")
    assert fact is not None
    assert fact.content == "Project uses Python 3.12."
    assert fact.title == "Runtime constraint"
    assert (fact.category, fact.category_extension) == ("constraint", None)
    assert fact.topics == ("python", "runtime")
    assert (fact.confidence, fact.status, fact.revision) == (0.95, "active", 1)
    assert fact.scope == RESEARCH
    assert fact.source == Source("conversation", "thread_123")
    assert (fact.created_at, fact.updated_at) == ("2026-07-19T00:00:00Z", "2026-07-19T00:00:00Z")
    assert fact.consolidated_from == ()


def test_the_plans_own_example_is_the_same_after_it_was_read_and_nothing_was_changed(tmp_path: Path) -> None:
    put_example(tmp_path)
    before = tree(tmp_path)
    store = MemoryRepository(tmp_path)
    delta = store.edit_fact(RESEARCH, "fact_ab12", {"confidence": 0.95})
    assert [fact.id for fact in delta.unchanged] == ["fact_ab12"]
    after = tree(tmp_path)
    assert {name: after[name] for name in before} == before


def test_each_file_has_front_matter_in_the_plans_order_and_one_body(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path, clock=Clock())
    store.upsert_fact(
        RESEARCH,
        draft(
            "fact_ab12",
            "Project uses Python 3.12.",
            title="Runtime constraint",
            category="constraint",
            topics=("python", "runtime"),
            confidence=0.95,
            source="thread_123",
        ),
    )
    written = fact_path(tmp_path, RESEARCH, "fact_ab12").read_text(encoding="utf-8")
    keys = [line.split(":")[0] for line in written.splitlines()]
    assert keys == [line.split(":")[0] for line in EXAMPLE.splitlines()]
    assert written.endswith("---\n\n# Runtime constraint\n\nProject uses Python 3.12.\n")


@settings(max_examples=25)  # each is a durable write; tests/format tries many more
@given(CONTENT)
def test_any_content_comes_back_exactly_but_for_outer_white_space(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    root = tmp_path_factory.mktemp("store")
    MemoryRepository(root).upsert_fact(ALICE, FactDraft(content, id=FactId("x")))
    fact = MemoryRepository(root).get_fact(ALICE, "x")
    assert fact is not None
    assert fact.content == content.strip()


BAD_DRAFTS: dict[str, dict[str, Any]] = {
    "id": {"id": "a/b"},
    "content": {"content": " \n"},
    "category": {"category": " "},
    "confidence": {"confidence": 1.01},
    "createdAt": {"created_at": "yesterday"},
    "lastConfirmedAt": {"last_confirmed_at": "2026-13-01T00:00:00Z"},
    "source": {"source": 7},
    "topics": {"topics": "python"},
    "title": {"title": "two\nlines"},
    "consolidatedFrom": {"consolidated_from": ("a", 1)},
    "consolidatedAt": {"consolidated_at": "soon"},
    "expected_valid_days": {"expected_valid_days": 0},
    "confirmationCount": {"confirmation_count": True},
    "sourceError": {"source_error": "\ud800"},
}


@pytest.mark.parametrize("field", BAD_DRAFTS)
def test_storage_validates_every_field_of_a_new_fact_before_committing(tmp_path: Path, field: str) -> None:
    store = store_with(tmp_path, "present")
    before = tree(tmp_path)
    with pytest.raises(InvalidInputError) as refusal:
        store.upsert_fact(ALICE, FactDraft(**{"content": "text", **BAD_DRAFTS[field]}))
    assert refusal.value.field == field
    assert tree(tmp_path) == before
    store.upsert_fact(ALICE, draft("next"))


@pytest.mark.parametrize("field", [field for field in BAD_DRAFTS if field != "id"])
def test_storage_validates_every_field_of_an_edit_before_committing(tmp_path: Path, field: str) -> None:
    store = store_with(tmp_path, "x")
    before = tree(tmp_path)
    with pytest.raises(InvalidInputError) as refusal:
        store.edit_fact(ALICE, "x", BAD_DRAFTS[field])
    assert refusal.value.field == field
    assert tree(tmp_path) == before
    store.edit_fact(ALICE, "x", {"content": "next"})


BAD_DOCUMENTS = {
    "id": ("id: fact_ab12", "id: fact_other"),
    "schemaVersion": ("schemaVersion: 2", "schemaVersion: 1"),
    "category": ("category: constraint", "category: {of: mine}"),
    "topics": ("[python, runtime]", "{python: runtime}"),
    "confidence": ("0.95", "1.5"),
    "confidence: must be a number": ("0.95", "true"),
    "status": ("status: active", "status: deleted"),
    "user_id": ("user_id: alice", "user_id: bob"),
    "agent_name": ("agent_name: research-agent", "agent_name: other"),
    "source": ("type: conversation", "type: rumour"),
    "createdAt": ("createdAt: 2026-07-19T00:00:00Z", "createdAt: 19 July"),
    "updatedAt": ("updatedAt: 2026-07-19T00:00:00Z", "updatedAt: 2026-02-30T00:00:00Z"),
    "revision": ("revision: 1", "revision: 0"),
    "revision: must be": ("revision: 1", "revision: one"),
    "consolidatedFrom": ("consolidatedFrom: []", "consolidatedFrom: [[a]]"),
    "content": ("# Runtime constraint\n\nProject uses Python 3.12.", ""),
}


@pytest.mark.parametrize("field", BAD_DOCUMENTS)
def test_a_stored_field_that_breaks_its_rule_is_corruption_that_names_file_and_field(
    tmp_path: Path, field: str
) -> None:
    path = put_example(tmp_path)
    edit(path, *BAD_DOCUMENTS[field])
    store = MemoryRepository(tmp_path)
    before = tree(tmp_path)
    for read in (lambda: store.get_fact(RESEARCH, "fact_ab12"), lambda: store.snapshot(RESEARCH)):
        with pytest.raises(Corruption) as corruption:
            read()
        assert corruption.value.path == path.relative_to(tmp_path).as_posix()
        assert corruption.value.reason.startswith(field)
    assert tree(tmp_path) == before


def test_a_fact_of_a_newer_schema_is_refused_and_never_downgraded(tmp_path: Path) -> None:
    path = put_example(tmp_path, EXAMPLE.replace("schemaVersion: 2", "schemaVersion: 3"))
    store = MemoryRepository(tmp_path)
    before = path.read_bytes()
    for change in (
        lambda: store.get_fact(RESEARCH, "fact_ab12"),
        lambda: store.edit_fact(RESEARCH, "fact_ab12", {"content": "x"}),
        lambda: store.upsert_fact(RESEARCH, draft("fact_ab12"), expected=1),
    ):
        with pytest.raises(UnsupportedFormat) as refusal:
            change()
        assert refusal.value.found == "3"
    assert path.read_bytes() == before


def test_the_front_matters_scope_must_be_the_bucket_that_the_file_lies_in(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    stray = fact_path(tmp_path, Scope.of("bob"), "x")
    stray.parent.mkdir(parents=True)
    store.update_summaries("bob", {"user": {"workContext": "bob's"}})
    stray.write_bytes(fact_path(tmp_path, ALICE, "x").read_bytes())
    with pytest.raises(Corruption, match="user_id"):
        store.get_fact(Scope.of("bob"), "x")


def test_the_status_of_every_stored_fact_is_active_and_deletion_is_physical(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    assert [fact.status for fact in store.snapshot(ALICE).facts] == ["active"]
    store.delete_fact(ALICE, "x")
    assert not fact_path(tmp_path, ALICE, "x").exists()


def test_unknown_keys_survive_a_rewrite_in_their_order(tmp_path: Path) -> None:
    mine = "aliases: [a, b]\nzeta: {k: 1e3}\nbeta: no\n"
    path = put_example(tmp_path, EXAMPLE.replace("consolidatedFrom: []\n", f"consolidatedFrom: []\n{mine}"))
    MemoryRepository(tmp_path).edit_fact(RESEARCH, "fact_ab12", {"content": "changed"})
    assert mine in path.read_text(encoding="utf-8")


def test_consolidation_metadata_is_stamped_when_facts_were_consolidated(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path, clock=Clock())
    store.upsert_fact(ALICE, draft("sum", consolidated_from=("a", "b")))
    fact = store.snapshot(ALICE).by_id[FactId("sum")]
    assert fact.consolidated_from == ("a", "b")
    assert fact.consolidated_at == fact.updated_at
    edited = store.edit_fact(ALICE, "sum", {"content": "shorter"}).written[0]
    assert edited.consolidated_at == fact.consolidated_at


def test_a_time_stamp_is_kept_as_it_stands_until_the_fact_changes(tmp_path: Path) -> None:
    put_example(
        tmp_path, EXAMPLE.replace("createdAt: 2026-07-19T00:00:00Z", "createdAt: 2026-07-19T02:00:00+02:00")
    )
    store = MemoryRepository(tmp_path)
    fact = store.get_fact(RESEARCH, "fact_ab12")
    assert fact is not None
    assert fact.created_at == "2026-07-19T02:00:00+02:00"
    assert store.edit_fact(RESEARCH, "fact_ab12", {}).unchanged == (fact,)
    changed = store.edit_fact(RESEARCH, "fact_ab12", {"content": "other"}).written[0]
    assert changed.created_at == "2026-07-19T00:00:00Z"


@pytest.mark.parametrize(
    "foreign",
    [
        "lastConfirmedAt: 2026-07-19T02:00:00+02:00\n",
        "consolidatedAt: 2026-07-19\n",
        "lastConfirmedAt: 2026-07-19T00:00:00.000Z\n",
    ],
)
def test_an_edit_that_changes_nothing_leaves_foreign_time_stamps_alone(tmp_path: Path, foreign: str) -> None:
    path = put_example(
        tmp_path, EXAMPLE.replace("consolidatedFrom: []\n", f"consolidatedFrom: []\n{foreign}")
    )
    before = path.read_bytes()
    delta = MemoryRepository(tmp_path).edit_fact(RESEARCH, "fact_ab12", {})
    assert delta.written == ()
    assert path.read_bytes() == before


def test_an_edit_that_changes_nothing_adds_no_consolidation_time(tmp_path: Path) -> None:
    path = put_example(tmp_path, EXAMPLE.replace("consolidatedFrom: []", "consolidatedFrom: [a, b]"))
    before = path.read_bytes()
    assert MemoryRepository(tmp_path).edit_fact(RESEARCH, "fact_ab12", {}).written == ()
    assert path.read_bytes() == before
