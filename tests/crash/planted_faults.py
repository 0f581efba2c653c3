"""Engines whose protocol is wrong in one point, each with the operation that shows it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from deermem.format.journal_json import MAX_JOURNAL_BYTES, Image, Journal, Parts, staged_name
from deermem.format.layout import FENCES, JOURNAL, RECOVERY
from deermem.format.manifest_json import decode_manifest, encode_manifest
from deermem.storage import copies
from deermem.storage import journal as journals
from deermem.storage.bucket import Bucket
from deermem.storage.journal import Staged, apply, publish, reapply
from deermem.storage.port import Directory
from deermem.storage.stamps import Stamps
from deermem.storage.transaction import write_all
from deermem.testing.crash_explorer import Limits, explore
from deermem.testing.crash_report import Report, Trace, Violation
from deermem.testing.crash_scenario import Laboratory, Scenario
from deermem.testing.disk_steps import Fault, SimulatedDeath, Step, StepKind
from deermem.testing.memory_model import MemoryModel, observe
from deermem.testing.simulated_directory import SimulatedDirectory
from deermem.testing.simulated_disk import SimulatedDisk
from tests.crash.migrations import MIGRATIONS
from tests.crash.scenarios import HERE, SCENARIOS, USER

BY_NAME: Final = {scenario.name: scenario for scenario in (*SCENARIOS, *MIGRATIONS)}
Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class PlantedFault:
    """Is a wrong engine; `harmless` says why nothing is lost, where that is so."""

    name: str
    scenario: Scenario
    plant: Plant
    harmless: str = ""
    look: Callable[[Limits], Report] | None = None

    def explore(self, limits: Limits) -> Report:
        """Looks at the operation of the wrong engine."""
        with pytest.MonkeyPatch.context() as patch:
            self.plant(patch)
            return explore(self.scenario, limits) if self.look is None else self.look(limits)


def _replacing(place: str, wrong: Callable[..., object]) -> Plant:
    return lambda patch: patch.setattr(f"deermem.storage.{place}", wrong)


def _put(bucket: Bucket, recovery: Directory, journal: Journal, images: Iterable[Image]) -> None:
    """Puts copies of images in place, durably."""
    for number, image in enumerate(images):
        copy = staged_name(journal.operation, 900 + number)
        with suppress(FileNotFoundError):
            recovery.unlink(copy)
        with bucket.directory_at(image.parts[:-1]) as directory:
            recovery.create(copy, image.text.encode())
            recovery.rename(copy, directory, image.parts[-1])
            directory.sync()


def _remove(bucket: Bucket, paths: Iterable[Parts]) -> None:
    """Removes files, durably."""
    for parts in paths:
        with suppress(FileNotFoundError), bucket.directory_at(parts[:-1]) as directory:
            directory.unlink(parts[-1])
            directory.sync()


def _publish_after_the_manifest(bucket: Bucket, recovery: Directory, staged: Staged) -> None:
    _put(bucket, recovery, staged.journal, [staged.journal.manifest])
    publish(bucket, recovery, staged)


def _publish_after_the_facts(bucket: Bucket, recovery: Directory, staged: Staged) -> None:
    _put(bucket, recovery, staged.journal, staged.journal.images)
    publish(bucket, recovery, staged)


def _publish_after_the_deletes(bucket: Bucket, recovery: Directory, staged: Staged) -> None:
    _remove(bucket, staged.journal.deletes)
    publish(bucket, recovery, staged)


def _apply_the_manifest_first(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    _put(bucket, recovery, journal, [journal.manifest])
    apply(bucket, recovery, journal)


def _apply_and_sync_last(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    """Removes the journal before the new `memory.json` is durable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket.directory, "sync", lambda: None)
        apply(bucket, recovery, journal)
    bucket.directory.sync()


def _apply_in_place(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    """Writes new facts over the old ones, as `open(path, "w")` does."""
    for image in journal.images:
        with bucket.directory_at(image.parts[:-1]) as directory:
            assert isinstance(directory, SimulatedDirectory)
            state = directory.owner.disk.state
            inode = state.directories[directory.inode].entries.get(image.parts[-1])
            if inode is not None:
                directory._create_data(inode, image.parts[-1], image.text.encode())
                directory._sync_data(inode, image.parts[-1])
    apply(bucket, recovery, journal)


def _reapply_the_manifest_first(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    _put(bucket, recovery, journal, [journal.manifest])
    reapply(bucket, recovery, journal)


def _reapply_nothing(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    """Lets recovery drop a journal as if its transaction had been undone."""


def _replace_by_what_is_staged(recovery: Directory, image: Image, target: Directory) -> None:
    """Trusts a staged file that looks complete."""
    name = image.parts[-1]
    with suppress(FileNotFoundError):
        if image.is_content(target.read(name, MAX_JOURNAL_BYTES)[0]):
            return
    try:
        staged = recovery.read(image.staged, MAX_JOURNAL_BYTES)[0]
    except FileNotFoundError:
        staged = b""
    if not image.is_content(staged):
        with suppress(FileNotFoundError):
            recovery.unlink(image.staged)
        recovery.create(image.staged, image.text.encode())
    recovery.rename(image.staged, target, name)


def _sweep_without_a_sync(bucket: Bucket, recovery: Directory) -> None:
    sweep = journals.sweep
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket.directory, "sync", lambda: None)
        sweep(bucket, recovery)


def _recover_without_a_sync(patch: pytest.MonkeyPatch) -> None:
    from deermem.storage import engine, recovery, transaction

    recover = recovery.recover

    def wrong(bucket: Bucket) -> bool:
        sync = bucket.directory.sync
        left_out = [sync] if bucket.journal_is_there() else []
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(bucket.directory, "sync", lambda: left_out.pop() if left_out else sync())
            return recover(bucket)

    patch.setattr(engine, "recover", wrong)
    patch.setattr(transaction, "recover", wrong)


def _back_up_unsynced(bucket: Bucket, operation: str, sources: Iterable[tuple[Parts, bytes]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedDirectory, "_sync_data", lambda *_: None)
        copies.back_up(bucket, operation, sources)


def _back_up_under_names_unsynced(
    bucket: Bucket, operation: str, sources: Iterable[tuple[Parts, bytes]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedDirectory, "sync", lambda _: None)
        copies.back_up(bucket, operation, sources)


def _back_up_and_remove(bucket: Bucket, operation: str, sources: Iterable[tuple[Parts, bytes]]) -> None:
    """Moves a file of version 1 away before the commit point."""
    kept = tuple(sources)
    copies.back_up(bucket, operation, kept)
    _remove(bucket, (source for source, _ in kept))


def _remove_the_sources_later(*arguments: Any, **options: Any) -> Staged:
    """Removes files of version 1 after the transaction, and syncs nothing."""
    bucket, operation, revisions, files, manifest, deletes, superseded = arguments
    later = superseded.removed()
    kept = tuple(parts for parts in deletes if parts not in later)
    staged = write_all(bucket, operation, revisions, files, manifest, kept, superseded, **options)
    for parts in later:
        with bucket.directory_at(parts[:-1]) as directory:
            directory.unlink(parts[-1])
    return staged


def _write_the_fences_later(*arguments: Any, **options: Any) -> Staged:
    """Writes the fences after the clear that they belong to."""
    bucket, operation, revisions, files, *others = arguments
    fences = dict(files).get((FENCES,))
    rest = [file for file in files if file[0] != (FENCES,)]
    staged = write_all(bucket, operation, revisions, rest, *others, **options)
    if fences is not None:
        with bucket.directory_at((RECOVERY,)) as recovery:
            recovery.create(staged_name(operation, 900), fences)
            recovery.rename(staged_name(operation, 900), bucket.directory, FENCES)
            bucket.directory.sync()
    return staged


def _roll_back_to_a_revision_that_was_seen(*arguments: Any, **options: Any) -> Staged:
    bucket, operation, revisions, files, manifest, *others = arguments
    seen = revisions[1] - 1
    restored = replace(decode_manifest(manifest[1], manifest[0][-1]), revision=seen)
    wrong = (manifest[0], encode_manifest(restored))
    return write_all(bucket, operation, (seen - 1, seen), files, wrong, *others, **options)


def _roll_a_migration_back_without_fences(*arguments: Any, **options: Any) -> Staged:
    """Forgets the revision of the rollback, so that a later migration begins at 1 again."""
    bucket, operation, revisions, files, *others = arguments
    rest = [file for file in files if file[0] != (FENCES,)]
    _remove(bucket, [(FENCES,)])
    return write_all(bucket, operation, revisions, rest, *others, **options)


def look_after_a_withdrawal(_: Limits) -> Report:
    """Kills a writer while it takes its journal back, and lets another write, before power is lost."""
    laboratory = Laboratory(BY_NAME["update"])
    disk = laboratory.initial_disk()
    process, repository = laboratory.open(disk, "operation")

    def is_commit_point(step: Step) -> bool:
        return step.kind is StepKind.SYNC and process.steps[-2].target.endswith(JOURNAL)

    def die(step: Step) -> None:
        if step.kind is StepKind.UNLINK and step.path.endswith(JOURNAL):
            process.kill()

    process.faults.append(Fault(is_commit_point, errno.EIO))
    disk.after_step = die
    with suppress(SimulatedDeath):
        laboratory.scenario.operation.run(repository)
    assert not process.alive
    disk.after_step = None
    report = Report(("take a journal back",), stop_points=1)
    for survivor in disk.fork(), *(loss.disk for loss in disk.crash_states()):
        writer = laboratory.open(survivor, "write")[1]
        writer.delete_fact(HERE, "a")
        written = _read(laboratory, survivor.fork())
        for loss in survivor.crash_states():
            report.states += 1
            if _read(laboratory, loss.disk) != written:
                trace = Trace("update, killed while it took its journal back").then("a write", loss.lost)
                report.add(Violation("an acknowledged change is lost", str(written), trace))
    return report


def _read(laboratory: Laboratory, disk: SimulatedDisk) -> MemoryModel:
    _, repository = laboratory.open(disk, "recovery")
    return observe(repository, USER, laboratory.scenario.agents, laboratory.scenario.fact_ids()).model()


def _same_revision(memory: MemoryModel) -> MemoryModel:
    return memory


UPDATE: Final = BY_NAME["update"]
SHARED: Final = next(scenario for scenario in SCENARIOS if scenario.snapshot)
ROLLED_BACK: Final = BY_NAME["roll back a transaction of the predecessor"]
BACK_AGAIN: Final = BY_NAME["roll a migration back"]
ALL_FILES: Final = BY_NAME["migrate all files of a user"]
AFTER_A_DEAD_WRITER: Final = Scenario(
    "update after a writer died while it staged",
    UPDATE.operation,
    UPDATE.setup,
    interrupted=replace(UPDATE.operation, model=_same_revision),
    interrupted_at=lambda step: step.kind is StepKind.FSYNC,
)

PLANTED: Final = (
    PlantedFault(
        "`memory.json` before the journal: two commit points",
        BY_NAME["change several facts"],
        _replacing("transaction.publish", _publish_after_the_manifest),
    ),
    PlantedFault(
        "facts before the journal: two commit points",
        BY_NAME["change several facts"],
        _replacing("transaction.publish", _publish_after_the_facts),
    ),
    PlantedFault(
        "deletes before the journal: two commit points",
        BY_NAME["clear all"],
        _replacing("transaction.publish", _publish_after_the_deletes),
    ),
    PlantedFault(
        "fences in a step of their own",
        BY_NAME["clear a scope"],
        _replacing("transaction.write_all", _write_the_fences_later),
    ),
    PlantedFault(
        "`memory.json` before the facts",
        BY_NAME["change several facts"],
        _replacing("transaction.apply", _apply_the_manifest_first),
    ),
    PlantedFault(
        "the journal removed before `memory.json` is durable",
        UPDATE,
        _replacing("transaction.apply", _apply_and_sync_last),
    ),
    PlantedFault("facts written in place", SHARED, _replacing("transaction.apply", _apply_in_place)),
    PlantedFault(
        "`memory.json` before the facts in a recovery",
        BY_NAME["recover a hot journal"],
        _replacing("recovery.reapply", _reapply_the_manifest_first),
    ),
    PlantedFault(
        "a recovery that drops the journal", UPDATE, _replacing("recovery.reapply", _reapply_nothing)
    ),
    PlantedFault(
        "a recovery that uses what it finds staged",
        UPDATE,
        _replacing("journal._replace", _replace_by_what_is_staged),
    ),
    PlantedFault(
        "a recovery that does not sync the bucket first",
        BY_NAME["recover a hot journal that is not durable"],
        _recover_without_a_sync,
    ),
    PlantedFault(
        "a sweep that does not sync the bucket first",
        UPDATE,
        _replacing("recovery.sweep", _sweep_without_a_sync),
        harmless="a journal that comes back has its images in it, and the next write takes its name",
        look=look_after_a_withdrawal,
    ),
    PlantedFault(
        "backups without a sync of their data",
        ALL_FILES,
        _replacing("transaction.back_up", _back_up_unsynced),
    ),
    PlantedFault(
        "backups without a sync of their names",
        ALL_FILES,
        _replacing("transaction.back_up", _back_up_under_names_unsynced),
    ),
    PlantedFault(
        "sources removed before the commit point",
        ALL_FILES,
        _replacing("transaction.back_up", _back_up_and_remove),
    ),
    PlantedFault(
        "sources removed after the transaction, without a sync",
        ALL_FILES,
        _replacing("transaction.write_all", _remove_the_sources_later),
    ),
    PlantedFault(
        "a rollback for the predecessor that uses a revision again",
        replace(ROLLED_BACK, start=replace(ROLLED_BACK.start, revision=4)),
        _replacing("predecessor.write_all", _roll_back_to_a_revision_that_was_seen),
    ),
    PlantedFault(
        "a rollback of a migration that forgets its revision",
        replace(BACK_AGAIN, operation=replace(BACK_AGAIN.operation, model=_same_revision)),
        _replacing("rollback.write_all", _roll_a_migration_back_without_fences),
    ),
    PlantedFault(
        "staged names that repeat",
        AFTER_A_DEAD_WRITER,
        lambda patch: patch.setattr(Stamps, "operation", lambda _: "f" * 32),
        harmless="the sweep takes an old name away first, and a recovery uses no staged file that it finds",
    ),
)
