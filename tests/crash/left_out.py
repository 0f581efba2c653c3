"""Engines that leave out one sync: every one of them, and which of them are spare."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Final

from deermem.testing.crash_scenario import Laboratory
from deermem.testing.disk_steps import Step, StepKind
from deermem.testing.simulated_process import Selection
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


def omission_of(wanted: str) -> Selection:
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
