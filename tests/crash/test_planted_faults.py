"""The explorer can fail: an engine that leaves out one sync is caught, or the sync is shown to be spare."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import Final

import pytest

from deermem.format.journal_json import Image, Journal, staged_name
from deermem.storage.bucket import Bucket
from deermem.storage.journal import Staged, apply, publish, reapply
from deermem.storage.port import Directory
from deermem.testing.crash_explorer import Limits, explore
from deermem.testing.crash_scenario import Laboratory, Omission
from deermem.testing.disk_steps import Step, StepKind
from tests.crash.migrations import MIGRATIONS
from tests.crash.scenarios import BUCKET, SCENARIOS

BY_NAME: Final = {scenario.name: scenario for scenario in (*SCENARIOS, *MIGRATIONS)}
SYNCS: Final = frozenset([StepKind.FSYNC, StepKind.SYNC])
MUTATED: Final = (
    "create for a new user",
    "create in a new shard",
    "create in a shard that is there",
    "update",
    "delete",
    "change several facts",
    "clear a scope",
    "recover a hot journal",
    "recover a hot journal that is not durable",
    "migrate all files of a user",
    "clear all with unread files of version 1",
    "roll back a transaction of the predecessor",
)
# Enough for a violation to show; a spare sync is explored to these limits and shows none.
LIMITS: Final = Limits(states=2_000, recovery_states=500, depth=1, first_violation=True)

# Scenario -> the syncs that may be left out one at a time, and why nothing is lost then.
SPARE: Final[dict[str, dict[str, str]]] = {
    "create for a new user": {
        "sync .. after mkdir .": "the root is synced again before the first commit below it",
        "sync .. after create BUCKET/.memory.lock": "the root was synced when it was made",
        "sync BUCKET after sync BUCKET/agents": "the commit point syncs the bucket, and so `agents`, too",
    },
    "migrate all files of a user": {
        "sync BUCKET after sync BUCKET/agents": "the commit point syncs the bucket again",
        "sync BUCKET/agents/research after sync BUCKET/agents/research/facts": "the backup syncs it again",
    },
    "roll back a transaction of the predecessor": {
        "sync BUCKET after unlink BUCKET/.memory.journal.json": "a journal that is found again is complete",
    },
    "recover a hot journal": {
        "sync BUCKET": "this journal's name is durable",
        **dict.fromkeys(
            (
                "sync BUCKET after sync BUCKET/agents",
                "sync BUCKET/agents after sync BUCKET/agents/__default__",
                "sync BUCKET/agents/__default__ after sync BUCKET/agents/__default__/facts",
                "sync BUCKET/agents/__default__/facts after sync BUCKET",
            ),
            "the writer had synced the way to the shard before it published the journal",
        ),
    },
}


# What a broken protocol leads to; anything else would show that the planted fault broke something else.
LOSSES: Final = frozenset(
    [
        "half a transaction",
        "an acknowledged change is lost",
        "a change that a reader saw is lost",
        "a state that a recovery had shown is lost",
        "a reader saw an uncommitted state",
        "another memory after the next write",
    ]
)


def label(step: Step, earlier: list[Step]) -> str:
    """Names a step in a way that survives other steps being added to the engine."""
    text = f"{step.kind} {re.sub('[0-9a-f]{32}', '*', step.path)}".replace(BUCKET, "BUCKET")
    changes = [other for other in earlier if other.changing]
    if not changes or step.kind is not StepKind.SYNC:
        return text
    after = changes[-1].target or changes[-1].path
    return f"{text} after {changes[-1].kind} {re.sub('[0-9a-f]{32}', '*', after)}".replace(BUCKET, "BUCKET")


@cache
def syncs(name: str) -> tuple[str, ...]:
    """Lists the syncs of a scenario's operation."""
    laboratory = Laboratory(BY_NAME[name])
    process, repository = laboratory.open(laboratory.initial_disk(), "operation")
    BY_NAME[name].operation.run(repository)
    found: Counter[str] = Counter()
    synced = [step for step in process.steps if step.kind in SYNCS]
    return tuple(numbered(label(step, process.steps[: step.index]), found) for step in synced)


def numbered(text: str, found: Counter[str]) -> str:
    """Tells syncs with the same label apart by counting them."""
    found[text] += 1
    return text if found[text] == 1 else f"{text} ({found[text]})"


def omission(wanted: str) -> Omission:
    """Leaves out one sync of the operation, once."""
    left_out: list[Step] = []
    found: Counter[str] = Counter()

    def omits(step: Step, earlier: list[Step]) -> bool:
        if step.process != "operation" or step.kind not in SYNCS or left_out:
            return False
        if numbered(label(step, earlier), found) != wanted:
            return False
        left_out.append(step)
        return True

    return omits


MUTANTS: Final = [(name, left_out) for name in MUTATED for left_out in syncs(name)]


@pytest.mark.parametrize(("name", "left_out"), MUTANTS)
def test_a_sync_that_is_left_out_is_found_or_spare(name: str, left_out: str) -> None:
    report = explore(BY_NAME[name], LIMITS, omission(left_out))
    reason = SPARE.get(name, {}).get(left_out)
    if reason is None:
        assert report.violations, f"nothing was lost without {left_out}"
    else:
        assert not report.violations, f"{left_out} is not spare:\n{report}"


def put(bucket: Bucket, recovery: Directory, journal: Journal, images: Iterable[Image]) -> None:
    """Puts copies of images in place, durably."""
    for number, image in enumerate(images):
        copy = staged_name(journal.operation, 900 + number)
        with suppress(FileNotFoundError):
            recovery.unlink(copy)
        with bucket.directory_at(image.parts[:-1]) as directory:
            recovery.create(copy, image.text.encode())
            recovery.rename(copy, directory, image.parts[-1])
            directory.sync()


def publish_after_the_manifest(bucket: Bucket, recovery: Directory, staged: Staged) -> None:
    put(bucket, recovery, staged.journal, [staged.journal.manifest])
    publish(bucket, recovery, staged)


def publish_after_the_facts(bucket: Bucket, recovery: Directory, staged: Staged) -> None:
    put(bucket, recovery, staged.journal, staged.journal.images)
    publish(bucket, recovery, staged)


def apply_the_manifest_first(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    put(bucket, recovery, journal, [journal.manifest])
    apply(bucket, recovery, journal)


def reapply_the_manifest_first(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    put(bucket, recovery, journal, [journal.manifest])
    reapply(bucket, recovery, journal)


def reapply_nothing(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    """Lets recovery drop a journal as if its transaction had been undone."""


@pytest.mark.parametrize(
    ("name", "place", "planted"),
    [
        ("change several facts", "transaction.publish", publish_after_the_manifest),
        ("change several facts", "transaction.publish", publish_after_the_facts),
        ("change several facts", "transaction.apply", apply_the_manifest_first),
        ("recover a hot journal", "recovery.reapply", reapply_the_manifest_first),
        ("update", "recovery.reapply", reapply_nothing),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_planted_fault_of_the_protocol_is_found(
    name: str, place: str, planted: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"deermem.storage.{place}", planted)
    report = explore(BY_NAME[name], LIMITS)
    assert set(report.counts) <= LOSSES, str(report)
    assert report.violations
