"""Readers that cached what they saw, on disks whose clocks are coarse and whose inode numbers come back."""

from __future__ import annotations

import pytest

from deermem import LockTimeout, MemoryRepository
from deermem.testing.crash_scenario import Laboratory, Scenario
from deermem.testing.disk_steps import Step
from deermem.testing.memory_model import MemoryModel, observe
from deermem.testing.simulated_disk import SimulatedDisk
from deermem.testing.simulated_filesystem import SimulatedFileSystem
from tests.crash.scenarios import HERE, SCENARIOS, create, update

NANOSECOND, TICK, TWO_SECONDS = 1, 10_000_000, 2_000_000_000
GRANULARITIES = pytest.mark.parametrize("granularity", [NANOSECOND, TICK, TWO_SECONDS])
WRITES = [scenario for scenario in SCENARIOS if scenario.interrupted is None]
UPDATE = next(scenario for scenario in SCENARIOS if scenario.name == "update")


def show(scenario: Scenario, repository: MemoryRepository) -> MemoryModel | None:
    """Reads everything; `None` where the reader has to wait for the writer."""
    try:
        return observe(repository, scenario.user_id, scenario.agents, scenario.fact_ids()).model()
    except LockTimeout:
        return None


def warm_reader(
    laboratory: Laboratory, granularity: int
) -> tuple[SimulatedDisk, SimulatedFileSystem, MemoryRepository]:
    disk = laboratory.initial_disk()
    disk.granularity_ns = granularity
    process, repository = laboratory.open(disk, "recovery")
    assert show(laboratory.scenario, repository) == laboratory.scenario.before()
    return disk, process, repository


@GRANULARITIES
@pytest.mark.parametrize("scenario", WRITES, ids=lambda scenario: scenario.name)
def test_a_reader_beside_a_writer_shows_the_memory_before_and_then_after(
    scenario: Scenario, granularity: int
) -> None:
    laboratory = Laboratory(scenario)
    disk, process, reader = warm_reader(laboratory, granularity)
    shown: list[MemoryModel] = []

    def read(step: Step) -> None:
        """Lets the reader see the disk as it is at this step, while the writer stands still."""
        if step.changing and disk.locks:
            process.disk = disk.fork(keep_locks=True)
            seen = show(scenario, reader)
            if seen is not None:
                shown.append(seen)

    disk.after_step = read
    _, writer = laboratory.open(disk, "operation")
    scenario.operation.run(writer)
    disk.after_step = None
    process.disk = disk
    before, after = scenario.before(), scenario.after()
    assert show(scenario, reader) == after
    assert shown == [before] * shown.count(before) + [after] * shown.count(after)


@GRANULARITIES
def test_a_reader_that_missed_an_update_sees_the_next_though_the_file_looks_the_same(
    granularity: int,
) -> None:
    laboratory = Laboratory(UPDATE)
    disk, _, reader = warm_reader(laboratory, granularity)
    _, writer = laboratory.open(disk, "operation")
    update("a", "Other text", 1).run(writer)
    update("a", "Third text", 2).run(writer)
    update("a", "Forth text", 3).run(writer)
    model = MemoryModel(4).put("__default__", "a", "Forth text")
    seen = show(UPDATE, reader)
    assert seen is not None
    assert {fact.content for fact in seen.facts} == {fact.content for fact in model.facts}
    assert seen.revision == model.revision


@GRANULARITIES
def test_a_reader_sees_that_a_fact_was_deleted_and_created_again(granularity: int) -> None:
    laboratory = Laboratory(UPDATE)
    disk, _, reader = warm_reader(laboratory, granularity)
    _, writer = laboratory.open(disk, "operation")
    for text in ("First text!", "First text?", "First text,"):
        writer.delete_fact(HERE, "a")
        create("a", text).run(writer)
        seen = show(UPDATE, reader)
        assert seen is not None
        assert {fact.content for fact in seen.facts} == {text}


@pytest.mark.parametrize("reuse", [True, False])
def test_two_versions_of_a_file_can_look_the_same_on_this_disk(reuse: bool) -> None:
    """What the tests above rest on: with inode numbers that come back, identities prove nothing."""
    disk = SimulatedDisk(granularity_ns=TWO_SECONDS, reuse_inodes=reuse)
    laboratory = Laboratory(UPDATE)
    _, writer = laboratory.open(disk, "setup")
    create("a", "text 0").run(writer)
    process = disk.process()

    def identity() -> object:
        with process.open_root() as root, root.child("users") as users, users.child("alice") as bucket:
            return bucket.identify("memory.json")

    seen = {identity()}
    for revision in range(1, 6):
        update("a", f"text {revision}", revision).run(writer)
        seen.add(identity())
    assert (len(seen) < 6) is reuse
