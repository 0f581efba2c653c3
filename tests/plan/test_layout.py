"""Plan section 3: where everything lies, and what `memory.json` holds."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from deermem import ChangeSet, FactDraft, InvalidInputError, MemoryRepository, Scope, Upsert
from deermem.format.layout import fact_id_of, fact_parts, is_shard, parse_fact_parts, shard_of
from deermem.model.identity import AgentName, FactId, is_fact_id
from tests.support.stores import (
    ALICE,
    BOB,
    CODER,
    JOURNAL,
    bucket_path,
    draft,
    fact_path,
    files,
    interrupt,
    manifest,
    store_with,
    tree,
)
from tests.support.watched import Call, WatchedFileSystem, call_of

KEYS = ["version", "revision", "lastUpdated", "user", "history"]
USER = ["workContext", "personalContext", "topOfMind"]
HISTORY = ["recentMonths", "earlierContext", "longTermBackground"]


def shard(fact_id: str) -> str:
    return sha256(fact_id.encode()).hexdigest()[:2]


def fill(store: MemoryRepository) -> None:
    """Does one of every operation, on two agents."""
    for scope in (ALICE, CODER):
        store.upsert_fact(scope, draft("fact_ab12", confidence=0.9))
        store.create_fact(scope, FactDraft("created"), max_facts=10)
        store.edit_fact(scope, "fact_ab12", {"content": "edited"})
        store.upsert_fact(scope, draft("gone"))
        store.delete_fact(scope, "gone")
        store.trim(scope, 1)
    store.update_summaries("alice", {"user": {"workContext": "Writes Python."}})


def test_everything_about_a_user_lies_in_one_bucket_below_users(tmp_path: Path) -> None:
    fill(MemoryRepository(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["users"]
    assert [path.name for path in tmp_path.joinpath("users").iterdir()] == ["alice"]


def test_a_user_id_with_other_characters_gets_a_bucket_of_its_own(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    for user in ("a@b.c", "a-b-c", "a/b/c", "../a", "日本語"):
        store.upsert_fact(Scope.of(user), draft("x"))
    assert {path.name for path in tmp_path.iterdir()} == {"users"}
    assert len(store.list_users()) == 5
    assert f"a-b-c-{sha256(b'a@b.c').hexdigest()[:16]}" in store.list_users()


def test_without_a_user_the_storage_root_is_the_bucket(tmp_path: Path) -> None:
    MemoryRepository(tmp_path).upsert_fact(Scope.of(None), draft("x"))
    assert files(tmp_path) == {"memory.json", ".memory.lock", f"agents/__default__/facts/{shard('x')}/x.md"}


def test_the_files_of_a_user_are_exactly_those_of_the_plan(tmp_path: Path) -> None:
    store = store_with(tmp_path, "fact_ab12")
    store.upsert_fact(CODER, draft("fact_ab12"))
    assert files(bucket_path(tmp_path)) == {
        "memory.json",
        ".memory.lock",
        f"agents/__default__/facts/{shard('fact_ab12')}/fact_ab12.md",
        f"agents/coder/facts/{shard('fact_ab12')}/fact_ab12.md",
    }


def test_a_clear_adds_only_the_file_of_fences_and_a_safety_copy(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.clear(ALICE)
    ours = {"memory.json", ".memory.lock", ".memory.fences.json"}
    assert files(bucket_path(tmp_path)) == {*ours, ".safety/2-clear.json"}
    store.clear(ALICE)
    assert files(bucket_path(tmp_path)) == {*ours, ".safety/2-clear.json"}


def test_a_custom_agents_facts_lie_beside_its_configuration_which_is_never_touched(tmp_path: Path) -> None:
    agent = bucket_path(tmp_path) / "agents" / "coder"
    agent.joinpath(".metadata").mkdir(parents=True)
    for name in ("config.yaml", "SOUL.md", ".metadata/side.json"):
        agent.joinpath(name).write_text(f"the host's {name}")
    bucket_path(tmp_path).joinpath("threads").mkdir()
    bucket_path(tmp_path).joinpath("threads", "t1.json").write_text("{}")
    before = tree(bucket_path(tmp_path))
    store = MemoryRepository(tmp_path)
    fill(store)
    store.clear(CODER)
    store.clear_all("alice")
    after = tree(bucket_path(tmp_path))
    assert {name: after[name] for name in before} == before


def test_no_backup_of_a_v1_source_is_there_without_a_migration(tmp_path: Path) -> None:
    fill(MemoryRepository(tmp_path))
    assert not list(tmp_path.rglob("*.bak"))


@pytest.mark.parametrize("replaced", ["x.md", "alice/memory.json"])
def test_the_journal_is_there_while_a_transaction_runs_and_gone_afterwards(
    tmp_path: Path, replaced: str
) -> None:
    disk = WatchedFileSystem(tmp_path)
    journal = bucket_path(tmp_path) / JOURNAL
    seen: list[bool] = []

    def look(call: Call) -> None:
        if call_of("rename", replaced)(call):
            seen.append(journal.exists())

    disk.on_call = look
    MemoryRepository(disk).upsert_fact(ALICE, draft("x"))
    assert seen == [True]
    assert not journal.exists()


def test_the_journal_stays_after_an_interruption_and_goes_with_the_recovery(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    interrupt(tmp_path, lambda store: store.upsert_fact(ALICE, draft("y")), call_of("rename", "y.md"))
    journal = bucket_path(tmp_path) / JOURNAL
    assert journal.exists()
    assert MemoryRepository(tmp_path).get_fact(ALICE, "y") is not None
    assert not journal.exists()


def test_recovery_holds_the_images_of_a_running_transaction_and_nothing_afterwards(tmp_path: Path) -> None:
    disk = WatchedFileSystem(tmp_path)
    recovery = bucket_path(tmp_path) / ".recovery"
    held: list[int] = []

    def look(call: Call) -> None:
        if call == Call("rename", f"users/alice/{JOURNAL}"):
            held.append(len(list(recovery.iterdir())))

    disk.on_call = look
    MemoryRepository(disk).upsert_fact(ALICE, draft("x"))
    assert held == [3]  # the fact, memory.json and the journal itself
    assert not list(recovery.iterdir())


def test_the_lock_file_stays_when_the_lock_is_given_back(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    lock = bucket_path(tmp_path) / ".memory.lock"
    inode = lock.stat().st_ino
    store.clear_all("alice")
    assert lock.stat().st_ino == inode
    assert lock.stat().st_size == 0


def test_memory_json_contains_only_the_five_keys_and_the_six_summaries(tmp_path: Path) -> None:
    fill(MemoryRepository(tmp_path))
    document = manifest(tmp_path)
    assert list(document) == KEYS
    assert document["version"] == "2.0"
    assert list(document["user"]) == USER
    assert list(document["history"]) == HISTORY
    sections = [*document["user"].values(), *document["history"].values()]
    assert all(list(section) == ["summary", "updatedAt"] for section in sections)


def test_memory_json_never_contains_facts_paths_hashes_or_a_list_of_facts(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("fact_ab12", "A telling sentence.", topics=("telling",)))
    store.update_summaries("alice", {"history": {"recentMonths": "short"}})
    data = bucket_path(tmp_path).joinpath("memory.json").read_bytes()
    fact = fact_path(tmp_path, ALICE, "fact_ab12").read_bytes()
    for trace in (b"fact", b"telling", b".md", b"agents", b"__default__", shard("fact_ab12").encode()):
        assert trace not in data.replace(manifest(tmp_path)["lastUpdated"].encode(), b"")
    assert sha256(fact).hexdigest().encode() not in data


def test_the_size_of_memory_json_does_not_depend_on_the_number_of_facts(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("first"))
    path = bucket_path(tmp_path) / "memory.json"
    before = len(path.read_bytes())
    upserts = tuple(Upsert(ALICE.agent, draft(f"f{number}")) for number in range(9))
    store.apply_changes("alice", ChangeSet(upserts=upserts))
    assert len(path.read_bytes()) == before


@given(st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True).map(FactId))
def test_the_shard_is_the_first_two_hex_digits_of_the_sha256_of_the_id(fact_id: FactId) -> None:
    assert shard_of(fact_id) == shard(fact_id)
    assert is_shard(shard_of(fact_id))


@given(st.sampled_from(["__default__", "coder"]), st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True))
@example("coder", "readme")
@example("coder", "README")
@example("coder", "-")
@example("coder", "a" * 128)
def test_every_allowed_id_is_known_again_by_its_file(agent: str, text: str) -> None:
    """Otherwise a fact could be written and not be listed, and its journal not be read."""
    assume(is_fact_id(text))
    parts = fact_parts(AgentName(agent), FactId(text))
    assert fact_id_of(parts[-1]) == text
    assert parse_fact_parts(parts) == (agent, text)


def test_a_fact_file_lies_in_the_shard_of_its_id(tmp_path: Path) -> None:
    ids = [f"f{number}" for number in range(12)]
    upserts = tuple(Upsert(ALICE.agent, draft(fact_id)) for fact_id in ids)
    MemoryRepository(tmp_path).apply_changes("alice", ChangeSet(upserts=upserts))
    facts = bucket_path(tmp_path) / "agents" / "__default__" / "facts"
    assert files(facts) == {f"{shard(fact_id)}/{fact_id}.md" for fact_id in ids}


def test_generated_ids_spread_over_all_256_shards(tmp_path: Path) -> None:
    tokens = iter(f"{sha256(bytes([n % 256, n // 256])).hexdigest()[:32]}" for n in range(8_000))
    store = MemoryRepository(tmp_path, new_token=lambda: next(tokens))
    counts = Counter(shard_of(store.new_fact_id()) for _ in range(8_000))
    assert len(counts) == 256
    assert max(counts.values()) < 3 * 8_000 / 256


def test_generated_ids_are_fact_and_at_least_eight_random_hex_digits(tmp_path: Path) -> None:
    first, second = (MemoryRepository(tmp_path).new_fact_id() for _ in range(2))
    assert first != second
    assert first.startswith("fact_")
    assert len(first) >= len("fact_") + 8
    int(first.removeprefix("fact_"), 16)


def test_a_setting_may_change_the_name_of_memory_json(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path, manifest_filename="summary.v2.json")
    store.upsert_fact(BOB, draft("x"))
    assert json.loads(bucket_path(tmp_path, "bob").joinpath("summary.v2.json").read_bytes())["revision"] == 1
    assert store.snapshot(BOB).revision == 1


@pytest.mark.parametrize(
    "name", ["", "memory", "memory.md", ".memory.json", "../memory.json", "a/b.json", "a\\b.json", "a\n.json"]
)
def test_the_name_of_memory_json_is_a_plain_json_file_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        MemoryRepository(tmp_path, manifest_filename=name)
    assert refusal.value.field == "manifest_filename"


def test_a_storage_root_that_is_a_file_is_refused_at_construction(tmp_path: Path) -> None:
    root = tmp_path / secrets.token_hex(4)
    root.write_text("a file")
    with pytest.raises(InvalidInputError) as refusal:
        MemoryRepository(root)
    assert refusal.value.field == "storage_path"
    assert root.read_text() == "a file"


def test_the_storage_root_may_be_a_link_which_is_resolved_once(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    store = store_with(link, "x")
    link.unlink()
    assert store.snapshot(ALICE).by_id.keys() == {"x"}
    assert store.storage_root == str(real)


def test_a_directory_in_agents_that_no_agent_can_have_is_none(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    agents = bucket_path(tmp_path) / "agents"
    for name in ("Upper", "with_line", "a" * 65, ".hidden", "no-facts"):
        agents.joinpath(name, "facts" if name != "no-facts" else "notes").mkdir(parents=True)
    agents.joinpath("a-file").write_text("no agent")
    assert store.list_agents("alice") == (AgentName("__default__"),)
