"""An erasure that is interrupted anywhere shows no half of a memory, and the next one completes it."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

import pytest

from deermem import (
    ChangeSet,
    CommitInDoubt,
    Corruption,
    FactDraft,
    ManifestConflict,
    MemoryRepository,
    Scope,
    UnsupportedFormat,
    Upsert,
)
from deermem.format.layout import ERASED, FENCES, JOURNAL
from deermem.maintenance import bucket_removal, erase
from deermem.maintenance.erase import erase_user
from deermem.model.identity import FactId
from deermem.model.manifest import NO_MANIFEST
from deermem.storage import erasures
from deermem.testing.disk_steps import Fault, SimulatedDeath, Step, StepKind
from deermem.testing.simulated_disk import SimulatedDisk

ALICE: Final = Scope.of("alice")
CODER: Final = Scope.of("alice", "coder")
BUCKET: Final = "users/alice"
HOSTS: Final = {f"{BUCKET}/agents/coder/config.yaml": b"name: coder", f"{BUCKET}/notes.txt": b"of the host"}
STRAYS: Final = {
    f"{BUCKET}/memory.json.v1.bak": b'{"facts": []}',
    f"{BUCKET}/.quarantine/1/kept": b"x",
    f"{BUCKET}/.safety/1/memory.json": b"x",
    f"{BUCKET}/.recovery/unknown": b"x",
    f"{BUCKET}/agents/coder/.metadata/usage.json": b"{}",
    f"{BUCKET}/agents/coder/facts/x 2.md": b"x",
}
LEGACY: Final = {
    f"{BUCKET}/agents/writer/memory.json": b'{"version": "1.0", "facts": [{"id": "o", "content": "Old."}]}'
}
FACTS: Final = {"x", "y"}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("deermem")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


def open_store(disk: SimulatedDisk, name: str = "process") -> MemoryRepository:
    process = disk.process(name)
    tokens = (f"{number:032x}" for number in count(1) if f"{number:032x}" not in "".join(disk.tree()))
    return MemoryRepository(process, new_token=lambda: next(tokens), clock=disk.now, lock_timeout=1)


def draft(fact_id: str) -> FactDraft:
    return FactDraft(f"text of {fact_id}", id=FactId(fact_id))


def filled(extra: dict[str, bytes]) -> SimulatedDisk:
    disk = SimulatedDisk()
    store = open_store(disk)
    store.upsert_fact(ALICE, draft("x"))
    store.upsert_fact(ALICE, draft("y"))
    store.upsert_fact(CODER, draft("c"))
    store.clear(CODER)
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Secret."}}})
    for path, data in {**STRAYS, **extra}.items():
        disk.put(path, data)
    disk.settle()
    return disk


def stops(disk: SimulatedDisk) -> Iterator[tuple[str, SimulatedDisk]]:
    """Yields the disk after every change that an erasure makes, and when it has returned."""
    running = disk.fork()
    found: list[tuple[str, SimulatedDisk]] = []

    def note(step: Step) -> None:
        if step.changing:
            found.append((f"after step {step.index}: {step}", running.fork()))

    running.after_step = note
    erase_user(open_store(running, "eraser"), "alice")
    yield from found
    yield "after it returned", running.fork()


def states(disk: SimulatedDisk, losses: int) -> Iterator[tuple[str, SimulatedDisk]]:
    """Yields what may be there after a kill at each stop, and after a loss of power; the end comes first."""
    known: set[bytes] = set()
    for name, stop in reversed(list(stops(disk))):
        found = [(f"killed {name}", stop)]
        found += [
            (f"power lost {name}; lost: {survivor.lost}", survivor.disk)
            for survivor in stop.crash_states(losses, seed=1)
        ]
        for story, state in found:
            if state.digest() not in known:
                known.add(state.digest())
                yield story, state


def seen_in(disk: SimulatedDisk) -> str:
    """Reads as a new process; tells which of the states that are allowed it found."""
    store = open_store(disk, "reader")
    snapshot, summaries = store.snapshot(ALICE), store.get_summaries("alice")
    is_empty = summaries == NO_MANIFEST.summaries
    if {fact.id for fact in snapshot.facts} == FACTS and not is_empty:
        return "before"
    assert snapshot.facts == (), "half a memory"
    assert is_empty, "half a memory"
    assert store.snapshot(Scope.of("alice", "writer")).facts == ()
    return "empty"


def check_late_write(disk: SimulatedDisk, base: int) -> None:
    """What was based on the time before the erasure is refused, also after more writes than there were."""
    late = ChangeSet(
        upserts=(Upsert(ALICE.agent, draft("late")),), expected_manifest_revision=base, may_rebase=True
    )
    for writes in (0, 1, base + 2):
        store = open_store(disk.fork(), "late")
        for number in range(writes):
            assert store.upsert_fact(ALICE, draft(f"n{number}")).revision > base
        with pytest.raises(ManifestConflict):
            store.apply_changes("alice", late)


def check_repeated(disk: SimulatedDisk, kept: dict[str, bytes]) -> None:
    erase_user(open_store(disk, "again"), "alice")
    left = {path: data for path, data in disk.tree().items() if data is not None}
    assert {path: data for path, data in left.items() if not path.startswith(f"{ERASED}/")} == kept
    assert len(left) == len(kept) + 1
    assert (BUCKET in disk.tree()) == bool(kept)


@pytest.mark.crash
@pytest.mark.parametrize("kept", [{}, HOSTS], ids=["nothing of the host", "files of the host"])
@pytest.mark.parametrize("legacy", [{}, LEGACY], ids=["version 2", "files of version 1"])
def test_an_interrupted_erasure_shows_all_or_nothing_and_is_completed(
    kept: dict[str, bytes], legacy: dict[str, bytes], whole: bool
) -> None:
    disk = filled({**kept, **legacy})
    base = open_store(disk.fork()).get_manifest("alice").revision
    found = []
    for name, state in states(disk, 200 if whole else 6):
        try:
            seen = seen_in(state.fork())
            if seen == "empty":
                check_late_write(state, base)
            check_repeated(state.fork(), kept)
        except BaseException as error:
            error.add_note(name)
            raise
        found.append((seen, name))
    assert [seen for seen, name in found if "returned" in name].count("before") == 0
    assert {"before", "empty"} == {seen for seen, _ in found}


@pytest.mark.crash
@pytest.mark.parametrize(
    ("name", "data"), [(".memory.fences.json", b"["), (".memory.journal.json", b"{"), ("memory.json", b"{")]
)
def test_an_interrupted_erasure_of_a_damaged_memory_shows_no_half_of_it(
    name: str, data: bytes, whole: bool
) -> None:
    disk = filled(HOSTS)
    base = open_store(disk.fork()).get_manifest("alice").revision
    disk.put(f"{BUCKET}/{name}", data)
    for stop, state in states(disk, 200 if whole else 4):
        try:
            try:
                if seen_in(state.fork()) == "empty":
                    check_late_write(state, base)
            except (Corruption, UnsupportedFormat):
                pass  # damaged before, and damaged still
            check_repeated(state.fork(), HOSTS)
        except BaseException as error:
            error.add_note(stop)
            raise


@pytest.mark.crash
def test_a_writer_that_is_killed_in_its_first_commit_after_an_erasure_leaves_all_or_nothing() -> None:
    disk = filled({})
    base = open_store(disk.fork()).get_manifest("alice").revision
    erase_user(open_store(disk), "alice")
    known: set[bytes] = set()
    for changes in count():
        running = disk.fork()
        process = running.process("writer")
        process.stop_after(changes)
        store = MemoryRepository(process, new_token=lambda: "f" * 32, clock=disk.now, lock_timeout=1)
        try:
            store.upsert_fact(ALICE, draft("n"))
        except SimulatedDeath:
            pass
        else:
            break
        for survivor in running.crash_states(6, seed=changes):
            if survivor.digest in known:
                continue
            known.add(survivor.digest)
            snapshot = open_store(survivor.disk.fork()).snapshot(ALICE)
            assert (snapshot.revision, len(snapshot.facts)) in ((0, 0), (base + 2, 1))
            check_late_write(survivor.disk, base)


def is_removal_of_fences_before_the_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (JOURNAL, FENCES, "memory.json")
    monkeypatch.setattr(bucket_removal, "last_names", lambda _: names)


def is_no_note_of_the_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_removal, "note_erasure", lambda *_: None)


def is_a_note_that_is_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    def note(file_system: object, user: object, revision: int) -> None:
        assert isinstance(file_system, type(SimulatedDisk().process()))
        syncs = frozenset([StepKind.SYNC])
        file_system.omits = lambda step, _: step.kind in syncs
        erasures.note_erasure(file_system, user, revision)  # type: ignore[arg-type]  # a user it is
        file_system.omits = None

    monkeypatch.setattr(bucket_removal, "note_erasure", note)


def is_no_clear_before(monkeypatch: pytest.MonkeyPatch) -> None:
    # What is committed in place of the clear changes nothing, and the removal takes its revision for that.
    monkeypatch.setattr(erase, "_EVERYTHING", ChangeSet())


def is_no_mark_of_what_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deermem.maintenance.erase.make_unreadable", lambda *_: None)


FAULTS: Final[list[Callable[[pytest.MonkeyPatch], None]]] = [
    is_removal_of_fences_before_the_manifest,
    is_no_note_of_the_revision,
    is_a_note_that_is_not_synced,
    is_no_clear_before,
]


@pytest.mark.crash
@pytest.mark.parametrize("planted", FAULTS, ids=lambda each: each.__name__)
def test_a_planted_fault_of_the_order_is_found(
    planted: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_an_interrupted_erasure_shows_all_or_nothing_and_is_completed({}, {}, whole=False)


@pytest.mark.crash
def test_a_damaged_memory_that_is_not_made_unreadable_first_shows_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_no_mark_of_what_is_damaged(monkeypatch)
    with pytest.raises(AssertionError, match="half a memory"):
        test_an_interrupted_erasure_of_a_damaged_memory_shows_no_half_of_it(
            ".memory.fences.json", b"[", whole=False
        )


@pytest.mark.crash
@pytest.mark.parametrize("late", [False, True], ids=["instead of the call", "after the call"])
def test_any_call_of_an_erasure_may_fail_and_the_next_one_completes_it(late: bool) -> None:
    disk = filled({**HOSTS, **LEGACY})
    base = open_store(disk.fork()).get_manifest("alice").revision
    process = disk.fork().process("counting")
    erase_user(MemoryRepository(process, new_token=lambda: "e" * 32, clock=disk.now), "alice")
    failures = 0
    for step in list(process.steps):
        if late and not step.changing:
            continue
        running = disk.fork()
        failing = running.process("eraser")
        failing.faults.append(Fault.at(step.index, errno.EIO, after=late))
        store = MemoryRepository(failing, new_token=lambda: "e" * 32, clock=disk.now)
        try:
            erase_user(store, "alice")
        except OSError as error:
            assert error.errno == errno.EIO or isinstance(error, CommitInDoubt)  # noqa: PT017 - the loop goes on
            failures += 1
        assert not failing.handles, step
        assert not running.locks, step
        if seen_in(running.fork()) == "empty":
            check_late_write(running, base)
        check_repeated(running, HOSTS)
    assert failures > 10
