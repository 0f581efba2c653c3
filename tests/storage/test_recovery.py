"""Recovery: what a dead writer left is completed or dropped as a whole by whoever comes next."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deermem import (
    AtRevision,
    ChangeSet,
    CommitInDoubt,
    Corruption,
    Delete,
    Delta,
    MemoryRepository,
    SummaryPatch,
    UnsupportedFormat,
    Upsert,
)
from deermem.model.identity import FactId
from tests.support.stores import (
    ALICE,
    BOB,
    CODER,
    JOURNAL,
    bucket_path,
    draft,
    fact_path,
    interrupt,
    store_with,
    tree,
)
from tests.support.watched import Killed, WatchedFileSystem, call_of

Access = Callable[[MemoryRepository], object]

READS: dict[str, Access] = {
    "snapshot": lambda store: store.snapshot(ALICE),
    "get_fact": lambda store: store.get_fact(ALICE, "x"),
    "get_fact of an absent one": lambda store: store.get_fact(ALICE, "absent"),
    "list_facts": lambda store: store.list_facts(ALICE),
    "list_facts without corrupt ones": lambda store: store.list_facts(ALICE, skip_corrupt=True),
    "list_agents": lambda store: store.list_agents("alice"),
    "search_facts": lambda store: store.search_facts("text", [ALICE]),
    "reload": lambda store: store.reload(ALICE),
}
WRITES: dict[str, Access] = {
    "delete of an absent fact": lambda store: store.delete_fact(ALICE, "absent"),
    "an empty change set": lambda store: store.apply_changes("alice", ChangeSet()),
    "trim of another agent": lambda store: store.trim(CODER, 10),
}


def change_everything(store: MemoryRepository) -> Delta:
    new = Upsert(CODER.agent, draft("new"))
    return store.apply_changes(
        "alice",
        ChangeSet(
            upserts=(Upsert(ALICE.agent, draft("x", "two"), AtRevision(1)), new),
            deletes=(Delete(ALICE.agent, FactId("y"), AtRevision(1)),),
            summaries=SummaryPatch.parse({"user": {"topOfMind": "after"}}),
        ),
    )


def state(store: MemoryRepository) -> tuple[object, ...]:
    facts = [(fact.id, fact.content) for scope in (ALICE, CODER) for fact in store.snapshot(scope).facts]
    manifest = store.get_manifest("alice")
    return manifest.revision, manifest.summaries["user", "topOfMind"].summary, facts


BEFORE = (2, "", [("x", "text of x"), ("y", "text of y")])
AFTER = (3, "after", [("x", "two"), ("new", "text of new")])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a store of two facts, to copy."""
    root = tmp_path_factory.mktemp("base")
    store_with(root, "x", "y")
    return root


@pytest.fixture
def hot(base: Path, tmp_path: Path) -> Path:
    """Returns a store whose writer died when it had replaced one of several files."""
    root = tmp_path / "hot"
    shutil.copytree(base, root)
    interrupt(root, change_everything, call_of("rename", "new.md"))
    assert bucket_path(root).joinpath(JOURNAL).exists()
    return root


def seal(document: dict[str, Any]) -> bytes:
    """Returns a journal with the checksum that belongs to it."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    digest = hashlib.sha256(body).hexdigest()
    return body[:-1] + f',"checksum":"{digest}"}}\n'.encode()


def rewrite(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the hot journal of alice and seals it again."""
    path = bucket_path(root) / JOURNAL
    document = json.loads(path.read_bytes())
    del document["checksum"]
    change(document)
    path.write_bytes(seal(document))


def test_a_transaction_that_dies_at_any_change_of_the_disk_is_whole_after_the_next_access(
    base: Path, tmp_path: Path
) -> None:
    states: list[tuple[object, ...]] = []
    for number in range(1_000):
        root = tmp_path / str(number)
        shutil.copytree(base, root)
        disk = WatchedFileSystem(root)
        disk.die_at_change(number)
        try:
            change_everything(MemoryRepository(disk))
        except Killed:
            states.append(state(MemoryRepository(root)))
        else:
            break
    commit_point = states.index(AFTER)
    assert states == [BEFORE] * commit_point + [AFTER] * (len(states) - commit_point)
    assert commit_point > 5
    assert len(states) - commit_point > 5


@pytest.mark.parametrize("access", [*READS, *WRITES])
def test_a_hot_journal_is_completed_by_any_next_access(hot: Path, access: str) -> None:
    store = MemoryRepository(hot)
    {**READS, **WRITES}[access](store)
    assert not bucket_path(hot).joinpath(JOURNAL).exists()
    assert not list(bucket_path(hot).joinpath(".recovery").iterdir())
    assert state(store) == AFTER


@pytest.mark.parametrize("access", [*READS, *WRITES])
def test_the_very_first_transaction_of_a_user_is_completed_by_any_next_access(
    tmp_path: Path, access: str
) -> None:
    interrupt(
        tmp_path, lambda store: store.upsert_fact(ALICE, draft("x")), call_of("rename", "alice/memory.json")
    )
    store = MemoryRepository(tmp_path)
    {**READS, **WRITES}[access](store)
    assert not bucket_path(tmp_path).joinpath(JOURNAL).exists()
    assert store.snapshot(ALICE).revision == 1
    assert store.snapshot(ALICE).by_id.keys() == {"x"}


def test_recovery_itself_may_die_at_any_change_and_is_completed_by_the_next_access(
    hot: Path, tmp_path: Path
) -> None:
    deaths = 0
    for number in range(1_000):
        root = tmp_path / str(number)
        shutil.copytree(hot, root)
        disk = WatchedFileSystem(root)
        disk.die_at_change(number)
        try:
            MemoryRepository(disk).snapshot(ALICE)
        except Killed:
            deaths += 1
        else:
            break
        assert state(MemoryRepository(root)) == AFTER
    assert deaths > 5


def test_recovery_of_one_user_leaves_the_journal_of_another_alone(hot: Path) -> None:
    MemoryRepository(hot).upsert_fact(BOB, draft("b"))
    assert bucket_path(hot).joinpath(JOURNAL).exists()


def test_a_completed_journal_that_is_found_again_changes_nothing(hot: Path) -> None:
    journal = bucket_path(hot) / JOURNAL
    data = journal.read_bytes()
    store = MemoryRepository(hot)
    assert state(store) == AFTER
    store.edit_fact(ALICE, "x", {"content": "three"})
    journal.write_bytes(data)
    assert store.reload(ALICE).by_id[FactId("x")].content == "three"
    assert not journal.exists()


def test_recovery_puts_back_directories_that_went_missing(hot: Path) -> None:
    shutil.rmtree(bucket_path(hot) / ".recovery")
    shutil.rmtree(bucket_path(hot) / "agents" / "coder")
    assert state(MemoryRepository(hot)) == AFTER


def test_recovery_of_a_delete_does_not_need_the_directory_of_the_deleted_fact(
    base: Path, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    shutil.copytree(base, root)
    interrupt(root, lambda store: store.delete_fact(ALICE, "y"), call_of("unlink", "y.md"))
    shutil.rmtree(fact_path(root, ALICE, "y").parent)
    store = MemoryRepository(root)
    assert store.snapshot(ALICE).by_id.keys() == {"x"}
    assert store.snapshot(ALICE).revision == 3


def test_staged_images_that_were_damaged_or_lost_are_written_again_from_the_journal(
    base: Path, tmp_path: Path
) -> None:
    for lost in (False, True):
        root = tmp_path / ("lost" if lost else "damaged")
        shutil.copytree(base, root)
        interrupt(root, change_everything, call_of("rename", "new.md"))
        for path in bucket_path(root).joinpath(".recovery").iterdir():
            path.write_bytes(b"damaged")
            if lost:
                path.unlink()
        assert state(MemoryRepository(root)) == AFTER


def test_what_dead_writers_staged_is_swept_and_foreign_files_stay(base: Path, tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(base, root)
    interrupt(root, change_everything, call_of("rename", JOURNAL))
    recovery = bucket_path(root) / ".recovery"
    assert len(list(recovery.iterdir())) == 4
    recovery.joinpath("notes.txt").write_text("somebody's")
    MemoryRepository(root).delete_fact(ALICE, "absent")
    assert [path.name for path in recovery.iterdir()] == ["notes.txt"]


def test_a_journal_of_a_later_format_is_refused_and_kept(hot: Path) -> None:
    rewrite(hot, lambda document: document.update(format=3))
    before = tree(hot)
    with pytest.raises(UnsupportedFormat):
        MemoryRepository(hot).snapshot(ALICE)
    assert tree(hot) == before


def test_a_journal_that_does_not_fit_the_manifest_is_corruption_and_nothing_is_changed(hot: Path) -> None:
    rewrite(hot, lambda document: document.update(baseRevision=7, revision=8))
    before = tree(hot)
    with pytest.raises(Corruption, match="leads from revision 7 to 8"):
        MemoryRepository(hot).snapshot(ALICE)
    assert tree(hot) == before


def test_recovery_is_logged_with_the_revision_and_without_content(
    hot: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        MemoryRepository(hot).snapshot(ALICE)
    assert any("revision 3" in message for message in caplog.messages)
    assert not any("two" in message or "text of" in message for message in caplog.messages)


def test_a_disk_that_fails_once_after_the_commit_point_does_not_show(tmp_path: Path) -> None:
    store_with(tmp_path, "x", "y")
    disk = WatchedFileSystem(tmp_path)
    failed: list[str] = []

    def fail_once(call: object) -> None:
        if not failed and call_of("rename", "new.md")(disk.calls[-1]):
            failed.append(str(call))
            raise OSError(5, "Input/output error")

    disk.on_call = fail_once
    assert change_everything(MemoryRepository(disk)).revision == 3
    assert failed
    assert state(MemoryRepository(tmp_path)) == AFTER


def test_a_disk_that_keeps_failing_after_the_commit_point_leaves_the_commit_in_doubt(tmp_path: Path) -> None:
    store_with(tmp_path, "x", "y")
    disk = WatchedFileSystem(tmp_path)
    store = MemoryRepository(disk)
    disk.fail(call_of("rename", "new.md"), 5)
    with pytest.raises(CommitInDoubt) as doubt:
        change_everything(store)
    assert doubt.value.revision == 3
    assert isinstance(doubt.value.__cause__, OSError)
    disk.heal()
    assert state(store) == AFTER


@pytest.mark.parametrize("kind", ["create", "rename", "sync"])
def test_a_disk_that_fails_before_the_commit_point_leaves_everything_as_it_was(
    tmp_path: Path, kind: str
) -> None:
    store = store_with(tmp_path, "x", "y")
    disk = WatchedFileSystem(tmp_path)
    ending = {"create": ".2", "rename": JOURNAL, "sync": "facts"}[kind]
    disk.fail(call_of(kind, ending), 28)
    with pytest.raises(OSError, match="No space left") as error:
        change_everything(MemoryRepository(disk))
    assert not isinstance(error.value, CommitInDoubt)
    assert not list(bucket_path(tmp_path).joinpath(".recovery").iterdir())
    assert state(store) == BEFORE
    assert change_everything(store).revision == 3
