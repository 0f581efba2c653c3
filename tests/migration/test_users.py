"""A run over many users: each by itself, in order, and repeatable (plan section 10)."""

from __future__ import annotations

import errno
import json
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from deermem import InvalidInputError, MemoryRepository, Scope
from deermem.migration import Status, migrate_users, roll_back_users, stored_users
from tests.legacy.samples import LOOSE_FACTS, PLAIN_FACTS, REFUSED_FACTS
from tests.legacy.stores import STORES
from tests.migration.runs import (
    NOT_TO_BE_MIGRATED,
    facts,
    migrate_all,
    put_users,
    stamped_tree,
    statuses,
)
from tests.migration.v1 import FACT, agent_document, backup_of, document, put
from tests.support.stores import ALICE, bucket_path, edit, fact_path, manifest, store_with
from tests.support.watched import Call, WatchedFileSystem, call_of

USERS = ("alice", "bob", "carol")
INTERRUPTED = "an interrupted transaction is ended first"


def test_every_user_is_migrated(tmp_path: Path) -> None:
    put_users(tmp_path, *USERS)
    assert statuses(migrate_all(tmp_path)) == dict.fromkeys(USERS, Status.MIGRATED)
    for user in USERS:
        assert manifest(tmp_path, user)["version"] == "2.0"
        assert len(MemoryRepository(tmp_path).snapshot(Scope.of(user)).facts) == 2


@pytest.mark.parametrize("jobs", [1, 3])
def test_one_bad_user_does_not_stop_the_others(tmp_path: Path, jobs: int) -> None:
    put_users(tmp_path, *USERS)
    source = put(tmp_path, document(FACT, NOT_TO_BE_MIGRATED), user_id="bob")
    before = source.read_bytes()
    bad = migrate_all(tmp_path, jobs=jobs)[1]
    assert statuses(migrate_all(tmp_path)) == {
        "alice": Status.CURRENT,
        "bob": Status.FAILED,
        "carol": Status.CURRENT,
    }
    assert (str(bad.user), bad.status) == ("bob", Status.FAILED)
    assert bad.reason == "users/bob/memory.json: facts[1].content must be a non-empty string"
    assert source.read_bytes() == before
    assert not backup_of(source).exists()


def test_an_error_of_the_disk_is_one_users_alone_and_names_the_file(tmp_path: Path) -> None:
    put_users(tmp_path, *USERS)
    disk = WatchedFileSystem(tmp_path)
    disk.fail(call_of("read", "users/bob/memory.json"), errno.EACCES)
    outcomes = list(migrate_users(MemoryRepository(disk), USERS))
    assert [outcome.status for outcome in outcomes] == [Status.MIGRATED, Status.FAILED, Status.MIGRATED]
    assert outcomes[1].reason.startswith("Permission denied")


def test_a_bug_is_one_users_alone_and_is_reported_as_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put_users(tmp_path, *USERS)
    disk = WatchedFileSystem(tmp_path)

    def stumble(call: Call) -> None:
        if call == Call("read", "users/bob/memory.json"):
            raise TypeError("a bug")

    disk.on_call = stumble
    outcomes = list(migrate_users(MemoryRepository(disk), USERS))
    assert [outcome.status for outcome in outcomes] == [Status.MIGRATED, Status.FAILED, Status.MIGRATED]
    assert outcomes[1].reason == "this should not have happened: TypeError: a bug"
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_second_run_finds_nothing_to_do_and_touches_nothing(tmp_path: Path) -> None:
    put_users(tmp_path, *USERS)
    migrate_all(tmp_path)
    before = stamped_tree(tmp_path)
    assert statuses(migrate_all(tmp_path, jobs=3)) == dict.fromkeys(USERS, Status.CURRENT)
    assert stamped_tree(tmp_path) == before


def test_a_dry_run_changes_nothing_at_all(tmp_path: Path) -> None:
    put_users(tmp_path, *USERS)
    put(tmp_path, agent_document(FACT), "coder", user_id="bob")
    put(tmp_path, document(NOT_TO_BE_MIGRATED), user_id="dave")
    put(tmp_path, "no memory", user_id="eve")
    before = stamped_tree(tmp_path)
    outcomes = migrate_all(tmp_path, dry_run=True, adopt_lead_agent=True, jobs=2)
    assert stamped_tree(tmp_path) == before
    planned = dict.fromkeys(USERS, Status.PLANNED)
    assert statuses(outcomes) == {**planned, "dave": Status.FAILED, "eve": Status.FAILED}


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("adopt", [False, True], ids=["", "adopting"])
def test_a_dry_run_of_any_store_says_what_happens_then(tmp_path: Path, name: str, adopt: bool) -> None:
    bucket_path(tmp_path).mkdir(parents=True)
    STORES[name](bucket_path(tmp_path))
    before = stamped_tree(tmp_path)
    (plan,) = migrate_all(tmp_path, dry_run=True, adopt_lead_agent=adopt)
    assert stamped_tree(tmp_path) == before
    (done,) = migrate_all(tmp_path, adopt_lead_agent=adopt)
    if INTERRUPTED in plan.reason or (plan.report is not None and plan.report.interrupted):
        return  # what such a transaction leaves is known when it is ended
    assert plan.status == {Status.MIGRATED: Status.PLANNED}.get(done.status, done.status)
    assert plan.reason == done.reason
    if done.report is not None and plan.report is not None:
        assert plan.report.planned == done.report.planned
        assert plan.report.sources == done.report.sources
        assert sorted(plan.report.adopted) == sorted(done.report.adopted)


def test_loose_facts_as_they_are_in_the_field_migrate_without_help(tmp_path: Path) -> None:
    bucket_path(tmp_path).mkdir(parents=True)
    STORES["loose"](bucket_path(tmp_path))
    (outcome,) = migrate_all(tmp_path)
    assert outcome.report is not None
    assert (outcome.status, outcome.report.refused) == (Status.MIGRATED, ())
    migrated = MemoryRepository(tmp_path).snapshot(ALICE).facts
    assert sorted(fact.content for fact in migrated) == sorted(
        fact["content"].strip() for fact in LOOSE_FACTS
    )
    by_content = {fact.content: fact for fact in migrated}
    assert by_content["null confidence"].confidence == 0.5
    assert by_content["own category"].category_extension == "食べ物"
    assert '"note:2026-03-01"' in {extra.json for extra in by_content["colon in the id"].extra}


def test_what_cannot_be_migrated_is_named_by_file_index_and_field_and_kept_verbatim(tmp_path: Path) -> None:
    bad = [fact for fact, _ in REFUSED_FACTS]
    put(tmp_path, document(*PLAIN_FACTS, *bad))
    (plan,) = migrate_all(tmp_path, dry_run=True)
    assert plan.report is not None
    assert [(value.path, value.place, value.field) for value in plan.report.refused] == [
        ("users/alice/memory.json", f"facts[{number}]", name)
        for number, (_, name) in enumerate(REFUSED_FACTS, len(PLAIN_FACTS))
    ]
    (done,) = migrate_all(tmp_path, on_invalid="quarantine")
    assert done.report is not None
    assert done.report.quarantine is not None
    kept = json.loads((tmp_path / done.report.quarantine).read_text("utf-8"))["refused"]
    assert [json.loads(value["text"]) for value in kept] == bad
    assert len(MemoryRepository(tmp_path).snapshot(ALICE).facts) == len(PLAIN_FACTS)


@pytest.mark.parametrize("config", [False, True])
def test_a_dry_run_tells_what_of_an_unread_lead_agent_would_move(tmp_path: Path, config: bool) -> None:
    put(tmp_path, document())
    source = put(tmp_path, agent_document(FACT), "lead-agent")
    if config:
        source.with_name("config.yaml").write_text("name: lead-agent\n")
    (plan,) = migrate_all(tmp_path, dry_run=True, adopt_lead_agent=True)
    (done,) = migrate_all(tmp_path, adopt_lead_agent=True)
    assert plan.report is not None
    assert done.report is not None
    assert plan.report.adopted == done.report.adopted == (() if config else ("fact_a",))


@pytest.mark.parametrize("jobs", [1, 4])
def test_outcomes_come_in_the_order_of_the_buckets(tmp_path: Path, jobs: int) -> None:
    users = [f"user{number:02}" for number in range(12)]
    put_users(tmp_path, *users, count=1)
    put(tmp_path, document(*facts(40)), user_id="user00")  # the first takes longest
    store = MemoryRepository(tmp_path)
    outcomes = migrate_users(store, reversed(users), jobs=jobs)
    assert [outcome.user.bucket for outcome in outcomes] == users


def test_users_are_migrated_only_a_little_ahead_of_who_asks(tmp_path: Path) -> None:
    users = [f"user{number:02}" for number in range(20)]
    root, other = tmp_path / "root", tmp_path / "other"
    put_users(root, *users, count=1)
    put_users(other, *USERS)
    done: list[None] = []
    all_are_ahead = threading.Event()

    def count() -> None:
        done.append(None)
        if len(done) == 5:
            all_are_ahead.set()

    outcomes = migrate_users(MemoryRepository(root), users, jobs=2, progress=count)
    assert isinstance(outcomes, Generator)
    with closing(outcomes):
        assert next(outcomes).status is Status.MIGRATED
        assert all_are_ahead.wait(30)
        migrate_all(other)  # while this goes on, others could be migrated
    assert len(done) == 5
    after = [manifest(root, user)["version"] for user in users]
    assert after == ["2.0"] * 5 + ["1.0"] * 15


def test_a_migration_syncs_each_directory_above_its_new_shards_once(tmp_path: Path) -> None:
    put(tmp_path, document(*facts(50)))
    disk = WatchedFileSystem(tmp_path)
    MemoryRepository(disk).migrate("alice")
    bucket = "users/alice"
    syncs = Counter(call.path for call in disk.calls if call.kind == "sync")
    above = {f"{bucket}/agents", f"{bucket}/agents/__default__", f"{bucket}/agents/__default__/facts"}
    shards = {path.parent.name for path in bucket_path(tmp_path).glob("agents/*/facts/*/*.md")}
    assert {path: syncs[path] for path in syncs if path.startswith(f"{bucket}/agents")} == {
        **dict.fromkeys(above, 1),
        **{f"{bucket}/agents/__default__/facts/{shard}": 1 for shard in shards},
    }


def test_progress_is_told_of_each_user_once(tmp_path: Path) -> None:
    put_users(tmp_path, *USERS)
    done: list[None] = []
    store = MemoryRepository(tmp_path)
    assert len(list(migrate_users(store, USERS, jobs=2, progress=lambda: done.append(None)))) == 3
    assert len(done) == 3


def test_a_user_who_is_named_twice_is_migrated_once(tmp_path: Path) -> None:
    put_users(tmp_path, "a@b.c")
    bucket = bucket_path(tmp_path, "a@b.c").name
    outcomes = migrate_users(MemoryRepository(tmp_path), ["a@b.c", bucket, "a@b.c"])
    assert statuses(outcomes) == {"a@b.c": Status.MIGRATED}


def test_a_user_without_a_bucket_gets_none_and_is_told_apart(tmp_path: Path) -> None:
    put_users(tmp_path, "alice")
    before = stamped_tree(tmp_path)
    (outcome,) = migrate_users(MemoryRepository(tmp_path), ["alcie"])
    assert (outcome.status, outcome.stored) == (Status.CURRENT, False)
    assert stamped_tree(tmp_path) == before


def test_a_wrong_user_id_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    put_users(tmp_path, "alice")
    with pytest.raises(InvalidInputError, match="user_id"):
        migrate_users(MemoryRepository(tmp_path), ["alice", ""])
    assert manifest(tmp_path)["version"] == "1.0"


@pytest.mark.parametrize("agent", [None, "coder"])
def test_the_memory_without_a_user_is_one_of_all_if_there_is_one(tmp_path: Path, agent: str | None) -> None:
    put_users(tmp_path, "alice")
    store = MemoryRepository(tmp_path)
    assert stored_users(store) == ["alice"]
    put(tmp_path, document(FACT), agent, user_id=None)
    assert stored_users(store) == [None, "alice"]
    assert statuses(migrate_all(tmp_path)) == dict.fromkeys(("(no user)", "alice"), Status.MIGRATED)
    assert store.get_fact(Scope.of(None, agent), "fact_a") is not None
    assert stored_users(store) == [None, "alice"]


def test_agents_of_the_host_in_the_root_are_no_memory(tmp_path: Path) -> None:
    put_users(tmp_path, "alice")
    config = tmp_path / "agents" / "coder" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("name: coder\n")
    assert stored_users(MemoryRepository(tmp_path)) == ["alice"]


def test_a_root_that_does_not_exist_has_no_users_and_is_not_made(tmp_path: Path) -> None:
    root = tmp_path / "absent"
    assert migrate_all(root) == []
    assert not root.exists()


def test_users_are_rolled_back_each_by_itself(tmp_path: Path) -> None:
    put_users(tmp_path, *USERS)
    before = {user: bucket_path(tmp_path, user).joinpath("memory.json").read_bytes() for user in USERS}
    migrate_all(tmp_path)
    edit(fact_path(tmp_path, Scope.of("bob"), "fact_000"), "\n\nSays 0.\n", "\n\nSays something else.\n")
    outcomes = list(roll_back_users(MemoryRepository(tmp_path), USERS, jobs=2))
    assert [outcome.status for outcome in outcomes] == [
        Status.ROLLED_BACK,
        Status.FAILED,
        Status.ROLLED_BACK,
    ]
    assert outcomes[0].restored == ("users/alice/memory.json",)
    assert "__default__/fact_000" in outcomes[1].reason
    for user in ("alice", "carol"):
        assert bucket_path(tmp_path, user).joinpath("memory.json").read_bytes() == before[user]
    assert manifest(tmp_path, "bob")["version"] == "2.0"


def test_a_rollback_of_what_was_never_migrated_fails(tmp_path: Path) -> None:
    store_with(tmp_path, "fact_1")
    outcomes = list(roll_back_users(MemoryRepository(tmp_path), ["alice", "nobody"]))
    assert [outcome.status for outcome in outcomes] == [Status.FAILED, Status.FAILED]
    assert MemoryRepository(tmp_path).get_fact(ALICE, "fact_1") is not None
