"""A restore that is interrupted shows nothing or all of a user, and is completed by running it again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deermem import Corruption, FactDraft, MemoryRepository, RestoreConflict, Scope
from deermem.maintenance import placing
from deermem.maintenance.restore import OnConflict
from deermem.testing.simulated_disk import SimulatedDisk
from tests.maintenance.backup.archives import restored, saved, without_safety_copies
from tests.maintenance.backup.crashes import interrupted, opened, without_locks

ALICE = Scope.of("alice")
CODER = Scope.of("alice", "coder")
BOB = Scope.of("bob")

pytestmark = pytest.mark.crash


def fact(repository: MemoryRepository, scope: Scope, fact_id: str, text: str = "Text.") -> None:
    repository.upsert_fact(scope, FactDraft(text, id=fact_id))


@pytest.fixture(scope="module")
def original() -> SimulatedDisk:
    disk = SimulatedDisk()
    repository = opened(disk)
    for name in "ab":
        fact(repository, ALICE, name)
    fact(repository, CODER, "c")
    repository.clear(CODER)
    fact(repository, CODER, "d")
    fact(repository, BOB, "e")
    disk.put("users/alice/memory.json.v1.bak", b"{}")
    return disk


def seen(repository: MemoryRepository, scope: Scope) -> tuple[int, tuple[str, ...]] | None:
    """Returns revision and facts; nothing where a memory cannot be read or is empty."""
    try:
        snapshot = repository.snapshot(scope)
    except Corruption:
        return None
    return (snapshot.revision, tuple(sorted(snapshot.by_id))) if snapshot.revision else None


def check_every_interruption(original: SimulatedDisk) -> int:
    archive = saved(opened(original.fork()))
    complete = {scope: seen(opened(original.fork()), scope) for scope in (ALICE, CODER, BOB)}
    states = 0
    shown: set[Scope] = set()
    for name, disk in interrupted(SimulatedDisk(), lambda repository: restored(repository, archive)):
        states += 1
        for scope, wanted in complete.items():
            reading = disk.fork()
            found = seen(opened(reading), scope)
            assert found in (None, wanted), f"{name}: half of {scope}"
            assert found or scope not in shown, f"{name}: what a reader had seen of {scope} is gone"
            if name.endswith("killed") and found and reading.digest() == disk.digest():
                shown.add(scope)  # a reader changed nothing, and so had nothing to make durable
        assert len(shown) == 3 or not name.startswith("done")
        restored(opened(disk), archive)
        assert without_locks(disk) == without_safety_copies(without_locks(original)), name
        for loss in disk.crash_states(4):
            for scope, wanted in complete.items():
                assert seen(opened(loss.disk.fork()), scope) == wanted, f"{name}, then lost {loss.lost}"
    return states


def test_a_crash_at_any_step_shows_nothing_or_everything_and_the_next_run_completes_it(
    original: SimulatedDisk,
) -> None:
    assert check_every_interruption(original) > 300


def put_the_manifest_first(self: placing.Placing) -> None:
    self._batch = [*self._last, *self._batch]
    self._flush()
    self._sync()


def sync_nothing(_: placing.Placing) -> None:
    return


def sync_the_last_directories_alone(self: placing.Placing) -> None:
    for parts in self._folders:
        with self._bucket.directory_at(parts) as directory:
            directory.sync()


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("finish", put_the_manifest_first),
        ("_sync", sync_nothing),
        ("_sync", sync_the_last_directories_alone),
    ],
)
def test_a_planted_fault_is_found(
    original: SimulatedDisk, monkeypatch: pytest.MonkeyPatch, method: str, fault: Callable[..., None]
) -> None:
    monkeypatch.setattr(placing.Placing, method, fault)
    with pytest.raises(AssertionError):
        check_every_interruption(original)


def test_a_crash_over_a_memory_leaves_the_one_or_the_other(original: SimulatedDisk) -> None:
    archive = saved(opened(original.fork()), "alice")
    live = original.fork()
    repository = opened(live)
    fact(repository, ALICE, "new")
    repository.delete_fact(ALICE, "a")
    live.settle()
    before = seen(opened(live.fork()), ALICE)
    done = live.fork()
    restored(opened(done), archive, OnConflict.OVERWRITE)
    after = seen(opened(done), ALICE)
    assert before is not None
    assert after is not None
    assert after[0] > before[0]
    states = 0
    for name, disk in interrupted(
        live, lambda repository: restored(repository, archive, OnConflict.OVERWRITE)
    ):
        states += 1
        found = seen(opened(disk.fork()), ALICE)
        assert found in ((after,) if name.startswith("done") else (before, after)), name
        restored(opened(disk), archive, OnConflict.OVERWRITE)
        again = seen(opened(disk), ALICE)
        assert again is not None
        assert again[1] == after[1], name
    assert states > 100


def test_a_bucket_that_somebody_begins_meanwhile_is_not_written_to() -> None:
    disk = SimulatedDisk()
    fact(opened(disk), ALICE, "begun")
    before = without_locks(disk)
    with (
        pytest.raises(RestoreConflict),
        placing.empty_bucket(opened(disk).engine, ALICE.user, "0" * 64),
    ):
        raise AssertionError("it gave a bucket that is not empty")
    assert without_locks(disk) == before
