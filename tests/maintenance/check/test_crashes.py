"""A repair, and an undo, that is killed or loses power anywhere loses nothing (guarantee G1)."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256

import pytest

from deermem import MemoryRepository
from deermem.errors import DeerMemError
from deermem.format.layout import fact_parts
from deermem.maintenance.check import check_store
from deermem.maintenance.findings import Severity
from deermem.maintenance.repair import repair_user
from deermem.maintenance.undo import undo_repair
from deermem.model.identity import DEFAULT_AGENT, FactId, UserId
from deermem.testing.disk_steps import Fault, Step, StepKind
from deermem.testing.simulated_disk import EPOCH, SimulatedDisk
from deermem.testing.simulated_filesystem import SimulatedFileSystem
from tests.support.stores import ALICE, draft

pytestmark = pytest.mark.crash

BUCKET = "users/alice"
FACTS = f"{BUCKET}/agents/__default__/facts"
USER = UserId.parse("alice")
SAMPLE, WHOLE = 12, 300  # states of the disk at each stop
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Damage:
    """Says what is put into a sound store, what is removed from it, and which facts there are then."""

    name: str
    put: Callable[[Files], Files]
    removed: tuple[str, ...] = ()
    facts: frozenset[str] = frozenset({"a", "b"})


def place(fact_id: str) -> str:
    return f"{BUCKET}/{'/'.join(fact_parts(DEFAULT_AGENT, FactId(fact_id)))}"


def open_store(disk: SimulatedDisk, name: str) -> MemoryRepository:
    # Each process has its own time, so that no revision is written twice with the same bytes by chance.
    moment = EPOCH + timedelta(days=int(sha256(name.encode()).hexdigest()[:4], 16))
    return MemoryRepository(disk.process(name), clock=lambda: moment, lock_timeout=1.0)


def of_facts(files: Files) -> Files:
    return {
        place("bad"): b"no front matter",
        f"{FACTS}/00/b.md": files[place("b")],  # a second document
        f"{FACTS}/00/moved.md": files[place("moved")],
        f"{FACTS}/00/b.md.tmp": b"temporary",
        f"{BUCKET}/memory (conflicted copy).json": b"{}",
    }


def of_manifest(_: Files) -> Files:
    return {
        f"{BUCKET}/memory.json": b'{"version": "2.0", "revision": 3, "user": {}',
        f"{BUCKET}/.memory.fences.json": b"[",
        place("bad"): b"\xff\xfe",
    }


def of_journal(_: Files) -> Files:
    return {
        f"{BUCKET}/.memory.journal.json": b'{"format": 2, "state": "redo", "revision": 9',
        f"{BUCKET}/.recovery/{'0' * 32}.0": b"staged",
    }


DAMAGES = (
    Damage("facts", of_facts, (place("moved"),), frozenset({"a", "b", "moved"})),
    Damage("manifest", of_manifest, (place("moved"),)),
    Damage("no manifest", lambda _: {place("bad"): b"x"}, (place("moved"), f"{BUCKET}/memory.json")),
    Damage("journal", of_journal, (place("moved"),)),
)


def damaged(damage: Damage) -> tuple[SimulatedDisk, Files]:
    """Returns the disk of a store of three facts, damaged, all of it durable, and what was put there."""
    disk = SimulatedDisk()
    store = open_store(disk, "setup")
    for fact_id in ("a", "b", "moved"):
        store.upsert_fact(ALICE, draft(fact_id))
    put = damage.put({path: data for path, data in disk.tree().items() if data is not None})
    for path in damage.removed:
        disk.remove(path)
    for path, data in put.items():
        disk.put(path, data)
    disk.settle()
    return disk.fork(), put


def files_of(disk: SimulatedDisk) -> dict[str, bytes]:
    return {path: data for path, data in disk.tree().items() if data is not None}


def repair(disk: SimulatedDisk, name: str) -> None:
    store = open_store(disk, name)
    report = check_store(store)
    repair_user(store, USER, report.users[0].findings)


def undo(disk: SimulatedDisk, name: str) -> tuple[str, ...]:
    return undo_repair(open_store(disk, name), USER).refused


def stops(disk: SimulatedDisk, work: Callable[[SimulatedDisk, str], object]) -> list[SimulatedDisk]:
    """Runs some work, and returns the disk as it was before it and after each step that changed it."""
    running = disk.fork()
    found = [running.fork()]

    def note(step: Step) -> None:
        if step.changing:
            found.append(running.fork())

    running.after_step = note
    work(running, "work")
    running.after_step = None
    found.append(running.fork())
    return found


def survivors(stop: SimulatedDisk, whole: bool) -> Iterator[SimulatedDisk]:
    yield stop.fork()
    for loss in stop.crash_states(WHOLE if whole else SAMPLE):
        yield loss.disk


def lost(before: Files, disk: SimulatedDisk) -> list[str]:
    """Returns the files of before whose bytes are nowhere any more."""
    there = set(files_of(disk).values())
    ours = {f"{BUCKET}/{name}" for name in ("memory.json", ".memory.fences.json", ".memory.lock")}
    broken = {path for path in ours & before.keys() if not is_json(before[path])}
    return [path for path in (before.keys() - ours) | broken if before[path] not in there]


def is_json(data: bytes) -> bool:
    try:
        return bool(json.loads(data or b"{}")) or not data
    except ValueError:
        return False


def revision_of(disk: SimulatedDisk) -> tuple[int, bytes]:
    data = files_of(disk).get(f"{BUCKET}/memory.json", b"")
    try:
        return int(json.loads(data)["revision"]), data
    except ValueError:
        return 0, b""


def check_repaired(disk: SimulatedDisk, damage: Damage, stop: SimulatedDisk) -> None:
    """Repairs what is left and makes sure that the store is sound, and no revision stands for two states."""
    seen, seen_data = revision_of(stop)
    repair(disk, "again")
    # What a journal changes that is completed first is named by the next check only.
    repair(disk, "once more")
    report = check_store(open_store(disk, "check"))
    assert report.worst == Severity.NOTE, report.findings
    assert {fact.id for fact in open_store(disk, "read").snapshot(ALICE).facts} == damage.facts
    revision, data = revision_of(disk)
    assert revision > seen or (revision == seen and data == seen_data)
    open_store(disk, "write").upsert_fact(ALICE, draft("next"))


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_an_interrupted_repair_loses_nothing_and_is_completed(damage: Damage, whole: bool) -> None:
    disk, _ = damaged(damage)
    before = files_of(disk)
    seen: set[bytes] = set()
    for stop in stops(disk, repair):
        for survivor in survivors(stop, whole):
            if survivor.digest() in seen:
                continue
            seen.add(survivor.digest())
            assert lost(before, survivor) == []
            check_repaired(survivor, damage, stop)
    assert len(seen) > 20


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_an_interrupted_repair_can_be_undone(damage: Damage, whole: bool) -> None:
    disk, put = damaged(damage)
    undone = 0
    for stop in stops(disk, repair):
        for survivor in survivors(stop, whole):
            if not any(path.endswith("record.json") for path in survivor.tree()):
                continue
            try:
                assert undo(survivor, "undo") == ()
            except DeerMemError:
                # The damaged journal is in its place still: nothing was changed, and nothing is to be undone.
                assert damage.name == "journal"
                continue
            undone += 1
            after = files_of(survivor)
            assert {path: after.get(path) for path in put} == put
    assert undone > 10


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_an_interrupted_undo_loses_nothing_and_is_completed(damage: Damage, whole: bool) -> None:
    disk, _ = damaged(damage)
    before = files_of(disk)
    repair(disk, "repair")
    disk.settle()
    seen: set[bytes] = set()
    for stop in stops(disk, undo):
        for survivor in survivors(stop, whole):
            if survivor.digest() in seen:
                continue
            seen.add(survivor.digest())
            assert lost(before, survivor) == []
            check_repaired(survivor, damage, stop)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
@pytest.mark.parametrize(("number", "late"), [(errno.ENOSPC, False), (errno.EIO, True)], ids=["full", "late"])
def test_a_repair_whose_disk_fails_once_anywhere_loses_nothing(
    damage: Damage, number: int, late: bool, whole: bool
) -> None:
    disk, _ = damaged(damage)
    before = files_of(disk)
    sound = disk.fork()
    store = open_store(sound, "work")
    report = check_store(store)
    process = store.engine.file_system
    assert isinstance(process, SimulatedFileSystem)
    start = len(process.steps)
    repair_user(store, USER, report.users[0].findings)
    failing = [step.index for step in process.steps[start:] if not late or step.changing]
    for index in failing[:: 1 if whole else 3]:
        running = disk.fork()
        store = open_store(running, "work")
        report = check_store(store)
        process = store.engine.file_system
        assert isinstance(process, SimulatedFileSystem)
        process.faults.append(Fault.at(index, number, after=late))
        with suppress(OSError, DeerMemError):
            repair_user(store, USER, report.users[0].findings)
        assert lost(before, running) == []
        check_repaired(running, damage, running.fork())


@pytest.mark.parametrize("where", [".quarantine", f"{BUCKET}/.recovery", "facts/"])
def test_a_repair_that_leaves_out_syncs_is_found_out(where: str) -> None:
    damage = DAMAGES[0]
    disk, _ = damaged(damage)
    before = files_of(disk)

    def forgetful(running: SimulatedDisk, name: str) -> None:
        store = open_store(running, name)
        process = store.engine.file_system
        assert isinstance(process, SimulatedFileSystem)
        process.omits = lambda step, _: step.kind in (StepKind.SYNC, StepKind.FSYNC) and where in step.path
        repair_user(store, USER, check_store(store).users[0].findings)

    survivors = (
        (survivor.disk, stop)
        for stop in reversed(stops(disk, forgetful))
        for survivor in stop.crash_states(20)
    )
    assert any(is_wrong(before, survivor, damage, stop) for survivor, stop in survivors)


def is_wrong(before: Files, disk: SimulatedDisk, damage: Damage, stop: SimulatedDisk) -> bool:
    try:
        assert lost(before, disk) == []
        check_repaired(disk, damage, stop)
    except (AssertionError, DeerMemError):
        return True
    return False
