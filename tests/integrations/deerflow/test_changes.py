"""Change sets: one transaction each, with the preconditions that DeerFlow states."""

from __future__ import annotations

import copy
import logging
from pathlib import Path
from typing import Any

import pytest

from deermem.repository import MemoryRepository
from tests.integrations.deerflow import library
from tests.integrations.deerflow.library import fact, storage_module

AGENT = "writer"
WHO = {"user_id": "alice", "agent_name": AGENT}


def contents(storage: Any) -> dict[str, str]:
    return {each["id"]: each["content"] for each in storage.reload(AGENT, user_id="alice")["facts"]}


def create(storage: Any, *fact_ids: str) -> Any:
    """Creates facts in one transaction, and returns them as they are handed out."""
    return storage.apply_changes({"upserts": [fact(fact_id, fact_id) for fact_id in fact_ids]}, **WHO)


def test_facts_and_summaries_are_one_transaction(storage: Any) -> None:
    create(storage, "fact_1", "fact_2")
    commits = storage._repository.counters()["commits"]
    done = storage.apply_changes(
        {
            "upserts": [fact("fact_3"), fact("fact_2", "changed")],
            "upsertRevisions": {"fact_3": None, "fact_2": 1},
            "deletes": ["fact_1"],
            "deleteRevisions": {"fact_1": 1},
            "summaries": {"user": {"workContext": {"summary": "bakes"}}},
        },
        **WHO,
        expected_manifest_revision=1,
    )
    assert storage._repository.counters()["commits"] == commits + 1
    assert (done["complete"], done["version"], done["revision"]) == (False, "2.0", 2)
    assert [each["id"] for each in done["upsertedFacts"]] == ["fact_3", "fact_2"]
    assert done["deletedFactIds"] == ["fact_1"]
    read = storage.load(AGENT, user_id="alice")
    assert (read["revision"], read["lastUpdated"]) == (2, done["lastUpdated"])
    assert read["user"]["workContext"]["summary"] == "bakes"


@pytest.mark.parametrize(
    "broken",
    [
        {"deletes": ["fact_1"], "deleteRevisions": {"fact_1": 7}},
        {"upserts": [fact("fact_1", "stale")], "upsertRevisions": {"fact_1": 7}},
        {"upserts": [fact("fact_1", "second")], "upsertRevisions": {"fact_1": None}},
        {"upserts": [fact("fact_1", "second")]},
    ],
    ids=["delete", "update", "create", "create by default"],
)
def test_one_condition_that_does_not_hold_leaves_everything_as_it_was(
    storage: Any, broken: dict[str, Any]
) -> None:
    create(storage, "fact_1", "fact_2")
    before = storage.load(AGENT, user_id="alice")
    changes = copy.deepcopy(broken)
    changes["summaries"] = {"user": {"workContext": {"summary": "bakes"}}}
    changes["upserts"] = [*changes.get("upserts", []), fact("fact_3")]
    with pytest.raises(storage_module.MemoryFactRevisionConflict):
        storage.apply_changes(changes, **WHO)
    assert storage.reload(AGENT, user_id="alice") == before


def test_a_stale_manifest_is_a_conflict_unless_it_may_be_rebased(storage: Any) -> None:
    create(storage, "fact_1", "fact_2")
    create(storage, "fact_3")
    changes = {"upserts": [fact("fact_2", "changed", revision=1)]}
    with pytest.raises(storage_module.MemoryManifestRevisionConflict):
        storage.apply_changes(changes, **WHO, expected_manifest_revision=1)
    storage.apply_changes(changes, **WHO, expected_manifest_revision=1, allow_manifest_rebase=True)
    assert contents(storage)["fact_2"] == "changed"
    with pytest.raises(storage_module.MemoryFactRevisionConflict):
        storage.apply_changes(changes, **WHO, expected_manifest_revision=1, allow_manifest_rebase=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"summaries": {"user": {"workContext": {"summary": "bakes"}}}},
        {"upserts": [fact("fact_9")], "summaries": {"user": {"workContext": {"summary": "bakes"}}}},
        {"deletes": ["fact_1"]},
    ],
    ids=["summaries", "facts with summaries", "a delete without a condition"],
)
def test_what_depends_on_more_than_its_facts_is_never_rebased(storage: Any, changes: dict[str, Any]) -> None:
    create(storage, "fact_1")
    create(storage, "fact_2")
    with pytest.raises(storage_module.MemoryManifestRevisionConflict):
        storage.apply_changes(changes, **WHO, expected_manifest_revision=1, allow_manifest_rebase=True)


def test_a_named_revision_decides_over_that_in_the_fact(storage: Any) -> None:
    create(storage, "fact_1")
    storage.apply_changes({"upserts": [fact("fact_1", "second", revision=1)]}, **WHO)
    exported = fact("fact_1", "as it was exported once", revision=1)
    storage.apply_changes({"upserts": [exported], "upsertRevisions": {"fact_1": 2}}, **WHO)
    (read,) = storage.load(AGENT, user_id="alice")["facts"]
    assert (read["content"], read["revision"]) == ("as it was exported once", 3)


@pytest.mark.parametrize("revision", [0, True, "1", [], 1.5])
def test_a_revision_that_is_none_is_refused(storage: Any, revision: Any) -> None:
    for changes in (
        {"upserts": [fact("fact_1")], "upsertRevisions": {"fact_1": revision}},
        {"upserts": [fact("fact_1", revision=revision)]},
        {"deletes": ["fact_1"], "deleteRevisions": {"fact_1": revision}},
    ):
        with pytest.raises(ValueError, match=r"[rR]evision"):
            storage.apply_changes(changes, **WHO)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ([], "change_set"),
        ({"upserts": {}}, "upserts"),
        ({"deletes": "fact_1"}, "deletes"),
        ({"upserts": [1]}, r"upserts\[0\]"),
        ({"upserts": [fact("fact_1"), fact("fact_1")]}, "fact_1|upserts"),
        ({"upserts": [fact("fact_1")], "deletes": ["fact_1"]}, "fact_1"),
        ({"deletes": ["../up"]}, "id"),
        ({"upsertRevisions": []}, "upsertRevisions"),
        ({"summaries": []}, "summaries"),
        ({"summaries": {"user": []}}, "summaries.user"),
        ({"summaries": {"user": {"workContext": 1}}}, "workContext"),
    ],
)
def test_a_bad_change_set_is_a_value_error_that_names_the_place(
    storage: Any, changes: Any, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        storage.apply_changes(changes, **WHO)
    assert storage.load(AGENT, user_id="alice")["revision"] == 0


@pytest.mark.parametrize("call", ["get_fact", "delete_fact", "upsert_fact", "migrate"])
def test_facts_need_an_agent(storage: Any, call: str) -> None:
    arguments = {"get_fact": ("fact_1",), "delete_fact": ("fact_1",), "upsert_fact": (fact("fact_1"),)}
    with pytest.raises(ValueError, match="agent_name"):
        getattr(storage, call)(*arguments.get(call, ()), user_id="alice")
    with pytest.raises(ValueError, match="agent_name"):
        storage.apply_changes({"upserts": [fact("fact_1")]}, user_id="alice")


def test_one_fact_is_created_updated_and_deleted(storage: Any) -> None:
    made = storage.upsert_fact(fact("fact_1"), **WHO, expected_manifest_revision=0)
    assert made["upsertedFacts"][0]["revision"] == 1
    with pytest.raises(storage_module.MemoryFactRevisionConflict):
        storage.upsert_fact(fact("fact_1"), **WHO)
    changed = {**storage.get_fact("fact_1", **WHO), "content": "likes coffee"}
    assert storage.upsert_fact(changed, **WHO, expected_fact_revision=1)["revision"] == 2
    assert storage.get_fact("fact_1", **WHO)["content"] == "likes coffee"
    with pytest.raises(storage_module.MemoryFactRevisionConflict):
        storage.delete_fact("fact_1", **WHO, expected_fact_revision=1)
    assert storage.delete_fact("fact_1", **WHO, expected_fact_revision=2)["deletedFactIds"] == ["fact_1"]
    assert storage.get_fact("fact_1", **WHO) is None
    assert storage.delete_fact("fact_1", **WHO)["deletedFactIds"] == []


def test_a_fact_without_an_id_gets_one(storage: Any) -> None:
    without = fact("fact_1")
    del without["id"]
    (made,) = storage.upsert_fact(without, **WHO)["upsertedFacts"]
    assert made["id"].startswith("fact_")


def test_an_upsert_that_changes_nothing_commits_nothing(storage: Any) -> None:
    create(storage, "fact_1")
    (read,) = storage.load(AGENT, user_id="alice")["facts"]
    done = storage.apply_changes({"upserts": [read]}, **WHO)
    assert (done["revision"], done["upsertedFacts"]) == (1, [])


def test_a_derived_title_follows_the_content_and_a_given_one_stays(storage: Any) -> None:
    storage.apply_changes({"upserts": [fact("fact_1", "old"), fact("fact_2", "old", title="Own")]}, **WHO)
    for read in storage.load(AGENT, user_id="alice")["facts"]:
        storage.apply_changes({"upserts": [{**read, "content": "new"}]}, **WHO)
    titles = {each["id"]: each["title"] for each in storage.load(AGENT, user_id="alice")["facts"]}
    assert titles == {"fact_1": "new", "fact_2": "Own"}


def test_a_source_of_a_type_of_its_own_keeps_its_public_form(storage: Any) -> None:
    storage.apply_changes({"upserts": [fact("fact_1", source={"type": "survey", "threadId": None})]}, **WHO)
    (read,) = storage.load(AGENT, user_id="alice")["facts"]
    assert read["source"] == {"type": "conversation", "threadId": "survey"}


def test_an_edit_by_hand_is_not_overwritten(storage: Any, tmp_path: Path) -> None:
    create(storage, "fact_1")
    (read,) = storage.load(AGENT, user_id="alice")["facts"]
    (file,) = tmp_path.rglob("fact_1.md")
    file.write_text(file.read_text("utf-8") + "\nand more\n", "utf-8")
    with pytest.raises(storage_module.MemoryFactRevisionConflict):
        storage.apply_changes({"upserts": [{**read, "content": "mine"}]}, **WHO)
    assert "and more" in contents(storage)["fact_1"]


def test_clearing_an_agent_as_deerflow_does_is_a_clear(storage: Any, tmp_path: Path) -> None:
    """DeerFlow deletes every fact of a snapshot; nobody who read before may bring one back."""
    create(storage, "fact_1", "fact_2")
    stale = storage.get_fact("fact_1", **WHO)
    done = storage.apply_changes(
        {"deletes": ["fact_1", "fact_2"], "deleteRevisions": {"fact_1": 1, "fact_2": 1}},
        **WHO,
        expected_manifest_revision=1,
    )
    assert sorted(done["deletedFactIds"]) == ["fact_1", "fact_2"]
    late = {"upserts": [stale], "upsertRevisions": {"fact_1": None}}
    with pytest.raises(storage_module.MemoryManifestRevisionConflict):
        storage.apply_changes(late, **WHO, expected_manifest_revision=1, allow_manifest_rebase=True)
    assert contents(storage) == {}
    assert len(list((tmp_path / "users" / "alice" / ".safety").iterdir())) == 1


def test_deleting_the_last_fact_by_itself_is_no_clear(storage: Any) -> None:
    create(storage, "fact_1")
    storage.delete_fact("fact_1", **WHO, expected_manifest_revision=1, expected_fact_revision=1)
    other = {"upserts": [fact("fact_2")], "upsertRevisions": {"fact_2": None}}
    storage.apply_changes(other, **WHO, expected_manifest_revision=1, allow_manifest_rebase=True)
    assert contents(storage) == {"fact_2": "likes tea"}


def test_lists_are_filtered_and_paged(storage: Any) -> None:
    storage.apply_changes(
        {"upserts": [fact(f"fact_{n}", category="goal" if n % 2 else "context") for n in range(6)]}, **WHO
    )
    goals = storage.list_facts(**WHO, filters={"category": "goal"})
    assert [each["id"] for each in goals] == ["fact_1", "fact_3", "fact_5"]
    assert [each["id"] for each in storage.list_facts(**WHO, cursor=4, limit=9)] == ["fact_4", "fact_5"]
    assert storage.list_facts(**WHO, filters={"unheard": None}) == []
    assert storage.list_facts(user_id="alice") == []
    with pytest.raises(ValueError, match="limit"):
        storage.list_facts(**WHO, limit=0)


def test_searches_find_by_substring_the_best_first(storage: Any) -> None:
    storage.apply_changes(
        {
            "upserts": [
                fact("fact_1", "likes Green tea", confidence=0.6),
                fact("fact_2", "likes black TEA", confidence=0.9),
                fact("fact_3", "drinks tea", category="project", confidence=0.7),
            ]
        },
        **WHO,
    )
    scopes = [{"userId": "alice", "agentName": AGENT}, {"userId": "bob", "agentName": AGENT}]
    found = storage.search_facts("tea", scopes=scopes, top_k=2, mode="hybrid")
    assert [(hit["fact"]["id"], hit["score"], hit["matchType"]) for hit in found] == [
        ("fact_2", 0.9, "substring"),
        ("fact_3", 0.7, "substring"),
    ]
    assert found[0]["fact"]["scope"]["userId"] == "alice"
    own = storage.search_facts("tea", scopes=scopes, filters={"category": "project"})
    assert [hit["fact"]["id"] for hit in own] == ["fact_3"]
    assert storage.search_facts(" ", scopes=scopes) == []
    assert storage.search_facts("tea", scopes=scopes, top_k=0) == []
    assert storage.search_facts("tea", scopes=[{"userId": "alice", "agentName": None}]) == []


def test_without_an_index_there_is_none_to_rebuild(storage: Any) -> None:
    create(storage, "fact_1")
    nothing = {"supported": False, "indexed": 0, "failed": 0, "reason": "retrieval_not_configured"}
    assert storage.rebuild_index() == storage.rebuild_index([]) == nothing
    assert storage.retrieval_status() == {"configured": False, "mode": "substring_fallback"}
    assert "retrieval" not in storage.capabilities()
    assert not storage.notify_fact_upsert(fact("fact_1"))
    assert not storage.notify_fact_remove("fact_1", scope={"userId": "alice", "agentName": AGENT})


class Index:
    def __init__(self) -> None:
        self.held: set[tuple[str | None, str]] = set()

    def upsert(self, fact: Any, /, *, scope: Any, path: str) -> None:  # noqa: ARG002 - the port's
        self.held.add((scope.user.bucket, fact.id))

    def remove(self, fact_id: Any, /, *, scope: Any) -> None:
        self.held.discard((scope.user.bucket, fact_id))

    def search(self, query: str, /, **asked: Any) -> list[Any]:  # noqa: ARG002 - the port's
        return []

    def clear(self, *, scopes: Any) -> None:  # noqa: ARG002 - the port's
        self.held.clear()

    def rebuild(self, records: Any, /, *, scopes: Any) -> None:  # noqa: ARG002 - the port's
        self.held |= {(record.scope.user.bucket, record.fact.id) for record in records}

    def close(self) -> None:
        self.held.clear()


def test_an_index_of_the_store_is_rebuilt_for_all_users(tmp_path: Path) -> None:
    index = Index()
    storage = library.front_door.DeerMemStorage(
        library.config(tmp_path), repository=MemoryRepository(tmp_path, retrieval_adapter=index)
    )
    for user in ("alice", "b@c.d", None):
        storage.upsert_fact(fact("fact_1"), user_id=user, agent_name=AGENT)
    index.held.clear()
    assert storage.rebuild_index() == {"supported": True, "indexed": 3, "failed": 0}
    assert len(index.held) == 3
    assert storage.retrieval_status() == {"configured": True, "mode": "external"}
    storage.close()


def test_deerflows_own_adapter_is_ignored_with_one_note(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="deermem.integrations.deerflow")
    name = f"fts5-{tmp_path.name}"
    for _ in range(2):
        library.front_door.DeerMemStorage(library.config(tmp_path, retrieval_adapter=name)).close()
    assert [record.getMessage() for record in caplog.records] == [
        f"retrieval_adapter {name!r} is ignored: DeerMem searches its own facts by substring"
    ]
