"""Plan section 4: a scope is a user and an agent, and nothing else."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from deermem import (
    AgentNotFoundError,
    Delta,
    FactDraft,
    InvalidInputError,
    MemoryRepository,
    NotACustomAgent,
    Scope,
    Source,
)
from deermem.model.identity import DEFAULT_AGENT, parse_agent_name
from tests.support.stores import ALICE, BOB, CODER, bucket_path, draft, fact_path, store_with, tree


def agents_on_disk(root: Path) -> set[str]:
    return {path.name for path in bucket_path(root).joinpath("agents").iterdir()}


def test_the_storage_scope_is_user_and_agent_and_nothing_else() -> None:
    assert [field.name for field in fields(Scope)] == ["user", "agent"]


def test_the_same_id_in_two_agents_of_a_user_names_two_facts(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.upsert_fact(CODER, draft("x", "the coder's"))
    store.delete_fact(ALICE, "x")
    assert store.snapshot(ALICE).facts == ()
    assert [fact.content for fact in store.snapshot(CODER).facts] == ["the coder's"]


def test_the_same_id_of_two_users_names_two_facts(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.upsert_fact(BOB, draft("x", "bob's"))
    store.clear_all("alice")
    assert [fact.content for fact in store.snapshot(BOB).facts] == ["bob's"]
    assert store.get_manifest("bob").revision == 1


def test_users_have_summaries_and_revisions_of_their_own(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.update_summaries("alice", {"user": {"workContext": "alice's work"}})
    assert store.get_summaries("bob")["user", "workContext"].summary == ""
    assert store.get_manifest("bob").revision == 0


def test_the_agents_of_a_user_share_revision_and_summaries(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.upsert_fact(CODER, draft("y"))
    store.update_summaries("alice", {"user": {"workContext": "shared"}})
    for scope in (ALICE, CODER):
        assert store.snapshot(scope).revision == 3
        assert store.snapshot(scope).summaries["user", "workContext"].summary == "shared"


def test_a_thread_id_is_source_metadata_only(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("x", source="thread_1"))
    store.upsert_fact(ALICE, draft("y", source="thread_2"))
    assert {fact.id: fact.source.thread_id for fact in store.snapshot(ALICE).facts} == {
        "x": "thread_1",
        "y": "thread_2",
    }
    assert fact_path(tmp_path, ALICE, "x").exists()
    assert not list(tmp_path.rglob("*thread*"))


def test_a_fact_may_move_to_another_thread_and_stays_the_same_fact(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("x", source="thread_1"))
    delta = store.upsert_fact(ALICE, draft("x", source="thread_2"), expected=1)
    assert [(fact.id, fact.revision, fact.source) for fact in delta.written] == [
        ("x", 2, Source("conversation", "thread_2"))
    ]


def test_an_omitted_agent_is_the_reserved_default_bucket(tmp_path: Path) -> None:
    MemoryRepository(tmp_path).upsert_fact(Scope.of("alice"), draft("x"))
    assert Scope.of("alice").agent == "__default__"
    assert agents_on_disk(tmp_path) == {"__default__"}


@pytest.mark.parametrize("name", ["__default__", "__DEFAULT__", "_a", "a_b"])
def test_the_default_bucket_is_outside_the_public_grammar(name: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        Scope.of("alice", name)
    assert refusal.value.field == "agent_name"
    assert parse_agent_name(None) == DEFAULT_AGENT


@pytest.mark.parametrize("name", ["Research-Agent", "RESEARCH-AGENT", "research-agent"])
def test_agent_names_are_case_insensitive_and_canonically_lower_case(tmp_path: Path, name: str) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(Scope.of("alice", name), draft("x"))
    assert agents_on_disk(tmp_path) == {"research-agent"}
    assert store.get_fact(Scope.of("alice", "reSearch-agenT"), "x") is not None
    assert store.list_agents("alice") == ("research-agent",)


def test_the_agent_named_lead_agent_is_distinct_from_the_default(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x", scope=Scope.of("alice", "lead-agent"))
    assert store.snapshot(ALICE).facts == ()
    store.clear(ALICE)
    assert store.get_fact(Scope.of("alice", "lead-agent"), "x") is not None
    assert agents_on_disk(tmp_path) == {"lead-agent"}


def test_a_memory_only_directory_of_an_agent_is_preserved_by_every_deletion(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x", scope=CODER)
    store.delete_fact(CODER, "x")
    store.clear(CODER)
    store.clear_all("alice")
    assert agents_on_disk(tmp_path) == {"coder"}
    assert store.list_agents("alice") == ("coder",)


def test_deleting_a_custom_agent_requires_config_yaml_and_preserves_a_memory_only_directory(
    tmp_path: Path,
) -> None:
    store = store_with(tmp_path, "x", scope=CODER)
    before = tree(bucket_path(tmp_path) / "agents")
    with pytest.raises(NotACustomAgent):
        store.delete_agent(CODER)
    assert tree(bucket_path(tmp_path) / "agents") == before
    bucket_path(tmp_path).joinpath("agents", "coder", "config.yaml").write_text("model: any")
    store.delete_agent(CODER)
    assert agents_on_disk(tmp_path) == set()
    assert store.snapshot(CODER).facts == ()


def test_the_default_agent_and_an_absent_one_cannot_be_deleted(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    with pytest.raises(InvalidInputError):
        store.delete_agent(ALICE)
    with pytest.raises(AgentNotFoundError):
        store.delete_agent(CODER)
    assert store.snapshot(ALICE).by_id.keys() == {"x"}


def test_a_change_set_may_address_several_agents_of_one_user_but_names_the_user_once(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.upsert_fact(CODER, draft("x"))
    delta = store.clear_all("alice")
    assert sorted(delta.deleted) == [("__default__", "x"), ("coder", "x")]
    assert delta.revision == 3


def test_a_store_for_users_can_refuse_to_work_without_one(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path, strict_user_scope=True)
    nobody = Scope.of(None)
    calls = (
        lambda: store.snapshot(nobody),
        lambda: store.get_fact(nobody, "x"),
        lambda: store.get_manifest(None),
        lambda: store.upsert_fact(nobody, draft("x")),
        lambda: store.clear(nobody),
        lambda: store.clear_all(None),
        lambda: store.update_summaries(None, {}),
        lambda: store.run(nobody, lambda _: pytest.fail("planned")),
        lambda: store.search_facts("x", [nobody]),
    )
    for call in calls:
        with pytest.raises(InvalidInputError) as refusal:
            call()
        assert refusal.value.field == "user_id"
    assert not list(tmp_path.iterdir())


def test_the_raw_id_and_its_encoded_form_name_one_user(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(Scope.of("a@b.c"), draft("x"))
    (bucket,) = store.list_users()
    assert store.get_fact(Scope.of(bucket), "x") is not None
    edited: Delta = store.edit_fact(Scope.of(bucket), "x", {"content": "by bucket name"})
    assert edited.written[0].revision == 2
    fresh = MemoryRepository(tmp_path)
    assert [fact.content for fact in fresh.snapshot(Scope.of("a@b.c")).facts] == ["by bucket name"]


def test_a_user_whose_encoded_id_is_the_same_reads_the_same_cache_under_either_name(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    raw = Scope.of("a@b.c")
    store.upsert_fact(raw, draft("x"))
    encoded = Scope.of(store.list_users()[0])
    assert store.snapshot(raw).scope == raw
    assert store.snapshot(encoded).scope == encoded
    store.upsert_fact(encoded, FactDraft("another"))
    assert len(store.snapshot(raw).facts) == 2
