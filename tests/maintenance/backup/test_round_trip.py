"""What was saved comes back byte for byte where nothing is."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from pathlib import Path

import pytest

from deermem import LockTimeout, MemoryRepository, RestoreConflict, Scope
from deermem.maintenance.backup import back_up, verify
from deermem.maintenance.restore import Fate, OnConflict, Selection
from deermem.model.identity import UserId
from tests.maintenance.backup.archives import (
    TOOL,
    files_below,
    members_of,
    restored,
    saved,
    without_safety_copies,
)
from tests.support.stores import ALICE, BOB, CODER, bucket_path, draft, fact_path, store_with
from tests.support.systems import needs_modes
from tests.support.watched import WatchedFileSystem, call_of

EVE = Scope.of("eve@example.com")


def full_store(root: Path) -> MemoryRepository:
    """Returns a store with everything that a backup holds."""
    store = store_with(root, "a", "b", "c")
    store.upsert_fact(CODER, draft("d", "Ünïcode, and a line\r\nof another system."))
    store.clear(CODER)
    store.upsert_fact(CODER, draft("e"))
    store.upsert_fact(EVE, draft("f", "x" * 50_000))
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Much."}}})
    agent = bucket_path(root) / "agents" / "coder"
    agent.joinpath("config.yaml").write_bytes(b"name: coder\n")
    agent.joinpath("SOUL.md").write_bytes(b"# Soul\n")
    agent.joinpath(".metadata").mkdir()
    agent.joinpath(".metadata", "seen.json").write_bytes(b"{}")
    bucket_path(root).joinpath("memory.json.v1.bak").write_bytes(b'{"version": "1.0"}')
    return store


def of_the_host(root: Path) -> dict[str, bytes]:
    """Adds files that are nobody's but the host's or the machine's."""
    bucket = bucket_path(root)
    strangers = {
        "threads/t1.md": b"of the host",
        "notes.txt": b"of the host",
        ".recovery/leftover": b"x",
        ".quarantine/2026/x": b"set aside",
        "agents/coder/facts/README.md": b"a note",
    }
    for name, data in strangers.items():
        bucket.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        bucket.joinpath(name).write_bytes(data)
    return {f"users/alice/{name}": data for name, data in strangers.items()}


def test_an_empty_root_equals_the_original_byte_for_byte(tmp_path: Path) -> None:
    archive = saved(full_store(tmp_path / "a"), with_agents=True)
    restored(MemoryRepository(tmp_path / "b"), archive, selection=Selection(with_agents=True))
    assert files_below(tmp_path / "b") == without_safety_copies(files_below(tmp_path / "a"))
    assert MemoryRepository(tmp_path / "b").snapshot(ALICE) == MemoryRepository(tmp_path / "a").snapshot(
        ALICE
    )


@needs_modes
def test_what_comes_back_is_read_by_its_owner_alone(tmp_path: Path) -> None:
    archive = saved(full_store(tmp_path / "a"))
    restored(MemoryRepository(tmp_path / "b"), archive)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "b").rglob("*") if path.is_file()}
    assert modes == {0o600}


def test_what_is_the_hosts_or_a_transactions_is_not_saved(tmp_path: Path) -> None:
    store = full_store(tmp_path / "a")
    strangers = of_the_host(tmp_path / "a")
    names = {name for name, _ in members_of(saved(store))}
    assert not names & strangers.keys()
    assert not [name for name in names if name.endswith(("config.yaml", "SOUL.md", ".lock"))]


def test_configurations_of_agents_come_back_only_when_asked_for(tmp_path: Path) -> None:
    archive = saved(full_store(tmp_path / "a"), with_agents=True)
    restored(MemoryRepository(tmp_path / "b"), archive)
    assert not list((tmp_path / "b").rglob("config.yaml"))
    plan = restored(MemoryRepository(tmp_path / "b"), archive, selection=Selection(with_agents=True))
    assert {user.fate for user in plan.users.values()} == {Fate.RESTORE, Fate.THERE}
    assert files_below(tmp_path / "b") == without_safety_copies(files_below(tmp_path / "a"))


def test_an_agents_configuration_that_is_there_is_the_hosts_and_stays(tmp_path: Path) -> None:
    archive = saved(full_store(tmp_path / "a"), with_agents=True)
    config = bucket_path(tmp_path / "b") / "agents" / "coder" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_bytes(b"name: another\n")
    restored(MemoryRepository(tmp_path / "b"), archive, selection=Selection(with_agents=True))
    assert config.read_bytes() == b"name: another\n"
    assert config.with_name("SOUL.md").read_bytes() == b"# Soul\n"


def test_the_memory_without_a_user_comes_back(tmp_path: Path) -> None:
    store = store_with(tmp_path / "a", "a", "b", scope=Scope.of(None))
    restored(MemoryRepository(tmp_path / "b"), saved(store, None))
    assert files_below(tmp_path / "b") == files_below(tmp_path / "a")


def test_version_1_comes_back_as_it_was_and_is_migrated_where_it_is_read(tmp_path: Path) -> None:
    document = {"version": "1.0", "facts": [{"id": "old", "content": "Of old."}]}
    for name in ("memory.json", "agents/coder/memory.json"):
        path = bucket_path(tmp_path / "a") / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(document), "utf-8")
    restored(MemoryRepository(tmp_path / "b"), saved(MemoryRepository(tmp_path / "a")))
    assert files_below(tmp_path / "b") == files_below(tmp_path / "a")
    assert [fact.id for fact in MemoryRepository(tmp_path / "b").snapshot(CODER).facts] == ["old"]


def test_facts_that_a_document_of_version_1_refers_to_come_back(tmp_path: Path) -> None:
    store = store_with(tmp_path / "x", "kept")
    text = fact_path(tmp_path / "x", ALICE, "kept").read_bytes()
    bucket = bucket_path(tmp_path / "a")
    bucket.joinpath("old", "deep").mkdir(parents=True)
    bucket.joinpath("old", "deep", "kept.md").write_bytes(text)
    bucket.joinpath("old", "deep", "note.md").write_bytes(b"nobody refers to it")
    document = {"version": "2.0", "revision": 3, "facts": {"kept": {"path": "old/deep/kept.md"}}}
    bucket.joinpath("memory.json").write_text(json.dumps(document), "utf-8")
    archive = saved(MemoryRepository(tmp_path / "a"))
    restored(MemoryRepository(tmp_path / "b"), archive)
    assert [fact.content for fact in MemoryRepository(tmp_path / "b").snapshot(ALICE).facts] == [
        "text of kept"
    ]
    assert "users/alice/old/deep/note.md" not in files_below(tmp_path / "b")
    store.close()


def test_a_fact_that_cannot_be_read_is_saved_and_comes_back_as_it_is_and_is_told_of(tmp_path: Path) -> None:
    store = store_with(tmp_path / "a", "a", "b")
    fact_path(tmp_path / "a", ALICE, "a").write_bytes(b"no fact")
    archive = saved(store)
    found = verify(io.BytesIO(archive))
    assert [problem.path for problem in found.problems] == [fact_path(Path(), ALICE, "a").as_posix()]
    assert found.facts == 1
    plan = restored(MemoryRepository(tmp_path / "b"), archive)
    assert len(plan.problems) == 1
    assert files_below(tmp_path / "b") == files_below(tmp_path / "a")


def test_names_longer_than_a_tar_header_come_back(tmp_path: Path) -> None:
    scope = Scope.of("u" * 150, "a" * 64)
    store = store_with(tmp_path / "a", "f" * 128, scope=scope)
    agent = bucket_path(tmp_path / "a", "u" * 150) / "agents" / ("a" * 64) / ".metadata"
    agent.mkdir()
    agent.joinpath("größe — 大きさ.json").write_bytes(b"1")
    restored(MemoryRepository(tmp_path / "b"), saved(store))
    assert files_below(tmp_path / "b") == files_below(tmp_path / "a")


def test_one_user_of_several_is_restored(tmp_path: Path) -> None:
    store = full_store(tmp_path / "a")
    store.upsert_fact(BOB, draft("b"))
    plan = restored(MemoryRepository(tmp_path / "b"), saved(store), selection=Selection({"bob"}))
    assert set(plan.users) == {"bob"}
    assert MemoryRepository(tmp_path / "b").list_users() == ("bob",)


def test_what_is_there_already_is_no_conflict(tmp_path: Path) -> None:
    store = full_store(tmp_path / "a")
    before = files_below(tmp_path / "a")
    plan = restored(store, saved(store))
    assert {user.fate for user in plan.users.values()} == {Fate.THERE}
    assert files_below(tmp_path / "a") == before


def test_users_with_another_memory_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    archive = saved(full_store(tmp_path / "a"))
    store = store_with(tmp_path / "b", "other")
    before = files_below(tmp_path / "b")
    with pytest.raises(RestoreConflict) as refused:
        restored(store, archive)
    assert refused.value.args == ("alice",)
    assert files_below(tmp_path / "b") == before


def test_users_with_another_memory_are_left_alone_with_skip(tmp_path: Path) -> None:
    archive = saved(full_store(tmp_path / "a"))
    store = store_with(tmp_path / "b", "other")
    before = files_below(bucket_path(tmp_path / "b"))
    plan = restored(store, archive, OnConflict.SKIP)
    assert plan.users["alice"].fate is Fate.SKIP
    assert files_below(bucket_path(tmp_path / "b")) == before
    assert len(store.list_users()) == 2


def test_a_bucket_that_holds_files_of_the_host_alone_is_restored_into(tmp_path: Path) -> None:
    archive = saved(full_store(tmp_path / "a"))
    bucket_path(tmp_path / "b").joinpath("threads").mkdir(parents=True)
    bucket_path(tmp_path / "b").joinpath("threads", "t.json").write_bytes(b"[]")
    plan = restored(MemoryRepository(tmp_path / "b"), archive)
    assert plan.users["alice"].fate is Fate.RESTORE
    assert MemoryRepository(tmp_path / "b").snapshot(ALICE) == MemoryRepository(tmp_path / "a").snapshot(
        ALICE
    )


def test_a_user_whose_manifest_is_damaged_is_saved_as_it_is(tmp_path: Path) -> None:
    store = full_store(tmp_path / "a")
    bucket_path(tmp_path / "a").joinpath("memory.json").write_bytes(b"{")
    archive = saved(store)
    restored(MemoryRepository(tmp_path / "b"), archive)
    assert files_below(bucket_path(tmp_path / "b")).keys() <= files_below(bucket_path(tmp_path / "a")).keys()
    assert bucket_path(tmp_path / "b").joinpath("memory.json").read_bytes() == b"{"


def test_a_user_whose_bucket_is_a_link_is_left_out_and_told_of(tmp_path: Path) -> None:
    store = store_with(tmp_path / "a", "a")
    (tmp_path / "a" / "users" / "eve").symlink_to(bucket_path(tmp_path / "a"))
    stream = io.BytesIO()
    users = [UserId.parse("eve"), UserId.parse("alice")]
    reports = back_up(store.engine, users, stream, tool=TOOL)
    assert [len(report.problems) for report in reports] == [1, 0]
    assert [user.user.bucket for user in verify(io.BytesIO(stream.getvalue())).users] == ["alice"]


def test_the_same_store_gives_the_same_members(tmp_path: Path) -> None:
    store = full_store(tmp_path / "a")
    first, second = members_of(saved(store)), members_of(saved(store))
    assert first[1:-1] == second[1:-1]


@pytest.mark.parametrize(
    ("call", "path", "saved_users"),
    [("child", "users/alice", ["bob"]), ("read", "/a.md", ["alice", "bob"])],
)
def test_what_the_disk_refuses_of_one_user_keeps_nobody_else_from_being_saved(
    tmp_path: Path, call: str, path: str, saved_users: list[str]
) -> None:
    store_with(tmp_path / "a", "a", "b")
    store_with(tmp_path / "a", "c", scope=BOB)
    disk = WatchedFileSystem(tmp_path / "a")
    disk.fail(call_of(call, path), errno.EACCES)
    stream = io.BytesIO()
    users = [UserId.parse("alice"), UserId.parse("bob")]
    reports = back_up(MemoryRepository(disk).engine, users, stream, tool=TOOL)
    assert [[type(problem) for problem in report.problems] for report in reports] == [[PermissionError], []]
    found = verify(io.BytesIO(stream.getvalue()))
    assert [user.user.bucket for user in found.users] == saved_users


def test_a_user_whom_another_process_keeps_locked_is_left_out_and_told_of(tmp_path: Path) -> None:
    store_with(tmp_path / "a", "a")
    store_with(tmp_path / "a", "b", scope=BOB)
    stream = io.BytesIO()
    users = [UserId.parse("alice"), UserId.parse("bob")]
    with MemoryRepository(tmp_path / "a").engine.maintenance(ALICE.user):
        waiting = MemoryRepository(tmp_path / "a", lock_timeout=0.05)
        reports = back_up(waiting.engine, users, stream, tool=TOOL)
    assert [[type(problem) for problem in report.problems] for report in reports] == [[LockTimeout], []]
    assert [user.user.bucket for user in verify(io.BytesIO(stream.getvalue())).users] == ["bob"]


def test_an_archive_that_cannot_be_written_is_an_error_and_not_a_problem_of_a_user(tmp_path: Path) -> None:
    class FullDisk(io.BytesIO):
        def write(self, _: object, /) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = store_with(tmp_path / "a", "a")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        back_up(store.engine, [UserId.parse("alice")], FullDisk(), tool=TOOL)


def test_facts_without_a_manifest_are_saved_and_told_of_each_time(tmp_path: Path) -> None:
    store = store_with(tmp_path / "a", "a")
    bucket_path(tmp_path / "a").joinpath("memory.json").unlink()
    stream = io.BytesIO()
    (report,) = back_up(store.engine, [UserId.parse("alice")], stream, tool=TOOL)
    archive = stream.getvalue()
    plan = restored(MemoryRepository(tmp_path / "b"), archive)
    problems = [*report.problems, *verify(io.BytesIO(archive)).problems, *plan.problems]
    assert [str(each) for each in problems] == [
        "users/alice/memory.json: is missing although there are facts"
    ] * 3
    assert files_below(tmp_path / "b") == files_below(tmp_path / "a")
