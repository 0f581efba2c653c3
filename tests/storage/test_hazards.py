"""Ways in which a store was once wedged, or said less than it knew: each has a test of its own."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import pytest

from deermem import Corruption, FactDraft, InvalidInputError, MemoryRepository, Scope, SummaryPatch
from deermem.errors import RevisionConflict
from deermem.format.layout import shard_of
from deermem.model.identity import FactId
from deermem.storage.filesystem import LocalFileSystem
from deermem.storage.locks import Turns
from tests.support.stores import fact_path
from tests.support.watched import Killed, WatchedFileSystem, call_of

ALICE = Scope.of("alice")
BOB = Scope.of("alice", "bob")
DRAFT = FactDraft("a", id="a")
TOKEN = "0123456789abcdef" * 2


@pytest.fixture
def store(tmp_path: Path) -> MemoryRepository:
    repository = MemoryRepository(tmp_path)
    for scope in (ALICE, BOB):
        repository.upsert_fact(scope, FactDraft("A text.", id="x"))
    return repository


CLEARS: dict[str, Callable[[MemoryRepository], object]] = {
    "clear": lambda store: store.clear(ALICE),
    "clear all": lambda store: store.clear_all("alice"),
}


@pytest.mark.parametrize("clear", CLEARS)
def test_a_directory_named_like_a_fact_stops_a_clear_before_it_begins(
    store: MemoryRepository, tmp_path: Path, clear: str
) -> None:
    stray = fact_path(tmp_path, ALICE, "notes")
    stray.mkdir(parents=True)
    with pytest.raises(Corruption, match=r"notes\.md"):
        CLEARS[clear](store)
    stray.rmdir()
    CLEARS[clear](store)
    assert store.snapshot(ALICE).facts == ()


def test_a_copy_of_a_fact_under_another_name_is_no_fact(store: MemoryRepository, tmp_path: Path) -> None:
    original = fact_path(tmp_path, ALICE, "x")
    names = [f"x-copy{number}" for number in range(6)]
    copies = [name for name in names if shard_of(FactId(name)) != shard_of(FactId("x"))]
    for name in copies:
        original.with_name(f"{name}.md").write_bytes(original.read_bytes())
    assert copies
    assert [fact.id for fact in store.reload(ALICE).facts] == ["x"]
    assert [fact_id for _, fact_id in store.clear(ALICE).deleted].count(FactId("x")) == 1


def test_a_fact_moved_into_another_shard_is_corruption(store: MemoryRepository, tmp_path: Path) -> None:
    original = fact_path(tmp_path, ALICE, "x")
    original.parent.with_name("00").mkdir()
    original.rename(original.parent.with_name("00") / "x.md")
    with pytest.raises(Corruption, match="wrong shard"):
        store.reload(ALICE)


def test_a_link_in_place_of_a_shard_hides_no_other_fact_from_a_reading_that_skips(
    store: MemoryRepository, tmp_path: Path
) -> None:
    fact_path(tmp_path, ALICE, "x").parent.with_name("ff").symlink_to("/etc")
    page = store.list_facts(ALICE, skip_corrupt=True)
    assert [fact.id for fact in page.facts] == ["x"]
    assert [problem.path.rpartition("/")[2] for problem in page.problems] == ["ff"]


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root can become somebody else")
def test_a_shard_that_may_not_be_changed_refuses_the_change_and_nothing_else() -> None:
    with TemporaryDirectory() as place:
        os.chmod(place, 0o755)  # noqa: S103 - the other user has to get there
        assert outcome_for_another_user(Path(place) / "store") == "EACCES,EACCES,done,A text."


def outcome_for_another_user(root: Path) -> str:
    """Tells how another user fares in a store of theirs in which root owns one shard."""
    store = MemoryRepository(root)
    store.upsert_fact(ALICE, FactDraft("A text.", id="x"))
    store.reload(ALICE)  # what has to be imported for that is out of the other user's reach
    for path in (root, *root.rglob("*")):
        os.chown(path, 65534, 65534)
    shard = fact_path(root, ALICE, "x").parent
    os.chown(shard, 0, 0)
    os.chmod(shard, 0o755)  # noqa: S103 - readable, not writable
    read, write = os.pipe()
    if os.fork() == 0:
        os.setuid(65534)
        outcome = []
        other = MemoryRepository(root)
        for act in (
            lambda: other.edit_fact(ALICE, "x", {"content": "Another."}),
            lambda: other.delete_fact(ALICE, "x"),
            lambda: other.upsert_fact(BOB, FactDraft("B", id="y")),
            lambda: other.snapshot(ALICE).facts[0].content,
        ):
            try:
                result = act()
                outcome.append(result if isinstance(result, str) else "done")
            except OSError as error:
                outcome.append(errno.errorcode[error.errno or 0])
            except BaseException as error:  # noqa: BLE001 - told to the parent
                outcome.append(repr(error))
        os.write(write, ",".join(outcome).encode())
        os._exit(0)
    os.wait()
    return os.read(read, 10_000).decode()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_signal_that_ends_a_wait_for_the_turn_leaves_the_queue_in_order() -> None:
    release, released = threading.Event(), threading.Event()

    def raise_interrupt(_: int, __: FrameType | None) -> None:
        raise InterruptedError

    holder = Turns()

    def hold() -> None:
        assert holder.acquire(1)
        released.set()
        release.wait(10)
        holder.release()

    thread = threading.Thread(target=hold)
    thread.start()
    released.wait(10)
    previous = signal.signal(signal.SIGALRM, raise_interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError):
            holder.acquire(30)
    finally:
        signal.signal(signal.SIGALRM, previous)
    release.set()
    thread.join()
    assert holder.acquire(0)


def test_a_reader_that_may_not_write_waits_for_a_writer_instead_of_failing(
    store: MemoryRepository, tmp_path: Path
) -> None:
    dying = WatchedFileSystem(tmp_path)
    dying.die_at(call_of("rename", "memory.json"))
    with pytest.raises(Killed):
        MemoryRepository(dying).edit_fact(ALICE, "x", {"content": "New."})
    disk = WatchedFileSystem(tmp_path)
    disk.fail(call_of("lock_file"), errno.EACCES)
    reader = MemoryRepository(disk, lock_timeout=1)
    with pytest.raises(PermissionError):
        reader.snapshot(ALICE)
    assert sum(disk.waits) >= 1
    disk.heal()
    assert store.snapshot(ALICE).facts[0].content == "New."
    assert reader.snapshot(ALICE).facts[0].content == "New."


def test_a_large_file_in_place_of_the_journal_is_refused_without_being_parsed(
    store: MemoryRepository, tmp_path: Path
) -> None:
    journal = tmp_path / "users" / "alice" / ".memory.journal.json"
    journal.write_bytes(b'{"images":[' + b"{}," * 400_000 + b"{}]}")
    with pytest.raises(Corruption, match="checksum"):
        store.edit_fact(ALICE, "x", {"content": "New."})


def test_a_remounted_root_is_refused_until_a_reload(store: MemoryRepository, tmp_path: Path) -> None:
    disk = LocalFileSystem(tmp_path)
    reader = MemoryRepository(disk)
    assert reader.snapshot(ALICE).facts
    disk.device = -1
    with pytest.raises(OSError, match="another file system") as refusal:
        reader.snapshot(ALICE)
    assert refusal.value.errno == errno.ESTALE
    assert reader.reload(ALICE) == store.snapshot(ALICE)


BAD_SETTINGS: dict[str, Callable[[Path], object]] = {
    "lock_timeout": lambda root: MemoryRepository(root, lock_timeout=float("inf")),
    "cache_bytes": lambda root: MemoryRepository(root, cache_bytes=-1),
    "clock": lambda root: MemoryRepository(root, clock=datetime.now).upsert_fact(
        ALICE, FactDraft("a", id="a")
    ),
    "new_token": lambda root: MemoryRepository(root, new_token=lambda: "../" + TOKEN).upsert_fact(
        ALICE, FactDraft("a", id="a")
    ),
}


@pytest.mark.parametrize("field", BAD_SETTINGS)
def test_a_setting_that_would_fail_later_is_refused_by_its_name(tmp_path: Path, field: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        BAD_SETTINGS[field](tmp_path / "store")
    assert refusal.value.field == field


@pytest.mark.parametrize("extra", ["[1]", "5", '{"summary": 5}', '{"updatedAt": null}', "[" * 3_000, "{"])
def test_unknown_keys_of_a_summary_that_could_not_be_read_again_are_refused(extra: str) -> None:
    from deermem import Section

    with pytest.raises(InvalidInputError, match="extra"):
        SummaryPatch({("user", "workContext"): Section("text", "", extra)})


def copies_of(value: object) -> Iterator[object]:
    yield copy.copy(value)
    yield copy.deepcopy(value)
    yield pickle.loads(pickle.dumps(value))  # noqa: S301 - what was just dumped


def test_snapshots_and_patches_can_be_copied_and_sent_to_another_process(store: MemoryRepository) -> None:
    snapshot = store.snapshot(ALICE)
    assert all(other == snapshot for other in copies_of(snapshot))
    patch = SummaryPatch.parse({"user": {"topOfMind": {"summary": "text"}}})
    assert all(other == patch for other in copies_of(patch))


def test_a_clock_that_stands_still_still_tells_two_revisions_apart(tmp_path: Path) -> None:
    frozen = MemoryRepository(tmp_path, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    first = frozen.upsert_fact(ALICE, FactDraft("a", id="a")).written[0]
    frozen.delete_fact(ALICE, "a")
    second = frozen.upsert_fact(ALICE, FactDraft("a", id="a")).written[0]
    assert first.created_at != second.created_at
    with pytest.raises(RevisionConflict):
        frozen.upsert_fact(ALICE, first.draft(content="b"), expected=first)


def test_an_edit_of_an_unknown_field_or_of_the_id_is_refused_by_its_name(store: MemoryRepository) -> None:
    for field in ("confidnce", "id", "revision"):
        with pytest.raises(InvalidInputError, match=field):
            store.edit_fact(ALICE, "x", {field: "1"})


def test_a_draft_from_scratch_keeps_the_keys_that_the_store_does_not_know(
    store: MemoryRepository, tmp_path: Path
) -> None:
    path = fact_path(tmp_path, ALICE, "x")
    text = path.read_text("utf-8").replace(
        "consolidatedFrom: []\n", "consolidatedFrom: []\naliases: [mine]\n"
    )
    path.write_text(text.replace("  threadId: null\n", "  threadId: null\n  messageId: 7\n"), "utf-8")
    store.reload(ALICE)
    store.upsert_fact(ALICE, FactDraft("Two.", id="x"), expected=1)
    assert "aliases: [mine]\n" in path.read_text("utf-8")
    assert "messageId: 7\n" in path.read_text("utf-8")
    store.upsert_fact(ALICE, FactDraft("Three.", id="x", extra=()), expected=2)
    assert "aliases" not in path.read_text("utf-8")
