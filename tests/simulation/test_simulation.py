"""Isolation (guarantee G2): every schedule of some processes is strictly serializable."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from typing import Final

import pytest

from deermem.testing.simulation.checker import problems_of
from deermem.testing.simulation.history import Call, History, Outcome
from deermem.testing.simulation.runs import Run, shrink, simulate
from deermem.testing.simulation.state import FactState, Operation
from deermem.testing.simulation.workload import AGENTS
from tests.simulation.test_mutants import no_fences, no_recovery

SCHEDULES: Final = 10_000
BATCH: Final = 250

A: Final = ("__default__", "a")
DIGESTS: Final = (
    "from deermem.testing.simulation.runs import simulate\n"
    "print(*(simulate(seed).history.digest() for seed in range(40)))"
)


@pytest.mark.parametrize("first", range(0, SCHEDULES, BATCH))
def test_every_history_is_strictly_serializable(first: int) -> None:
    for seed in range(first, first + BATCH):
        run = simulate(seed)
        assert not run.problems, shrink(run).story()


def test_the_same_seed_gives_the_same_history_in_every_process() -> None:
    here = " ".join(simulate(seed).history.digest() for seed in range(40))
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    there = subprocess.run(
        [sys.executable, "-c", DIGESTS], env=environment, capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == here


def test_seeds_lead_to_histories_in_which_all_that_can_happen_happens() -> None:
    runs = [simulate(seed) for seed in range(300)]
    calls = [call for run in runs for call in run.history.calls]
    assert {call.outcome for call in calls} >= set(Outcome) - {Outcome.IN_DOUBT, Outcome.FELL_OVER}
    events = [text for run in runs for _, text in run.history.events]
    assert any("killed" in text for text in events)
    assert any("power" in text and "[]" not in text for text in events)
    assert any("fails" in text for text in events)
    assert any(call.detail == "lock time-out" for call in calls)
    assert len({run.history.digest() for run in runs}) == len(runs)


@pytest.mark.parametrize("plant", [no_fences, no_recovery])
def test_a_failing_run_is_made_smaller_and_still_fails(
    monkeypatch: pytest.MonkeyPatch, plant: object
) -> None:
    assert callable(plant)
    plant(monkeypatch)
    runs = list(islice((run for run in map(simulate, range(500)) if run.problems), 5))
    smaller = [shrink(run) for run in runs]
    assert all(run.problems for run in smaller)
    assert sum(calls_of(run) for run in smaller) < sum(calls_of(run) for run in runs)
    assert [f"seed {run.seed}" in run.story() for run in smaller] == [True] * len(runs)


def calls_of(run: Run) -> int:
    return sum(map(len, run.plan))


def call(operation: Operation, when: tuple[int, int], outcome: Outcome, revision: int = -1) -> Call:
    return Call(0, "p0", operation, when[0], when[1], outcome, revision)


def read(when: tuple[int, int], revision: int, **facts: FactState) -> Call:
    seen = {("__default__", fact_id): fact for fact_id, fact in facts.items()}
    return Call(0, "p1", Operation("read all"), *when, Outcome.READ, revision, seen, AGENTS)


CREATE = Operation("create", *A, "one")
UPDATE = Operation("update", *A, "two", 1)
CLEAR = Operation("clear", "__default__")
ONE, TWO = FactState("one", 1), FactState("two", 2)
CREATED = call(CREATE, (1, 2), Outcome.COMMITTED, 1)
UPDATED = call(UPDATE, (3, 4), Outcome.COMMITTED, 2)
DIED = Call(0, "p2", UPDATE, 3)

RIGHT: Final[dict[str, list[Call]]] = {
    "one after the other": [CREATED, UPDATED, read((5, 6), 2, a=TWO)],
    "a read beside a write may show either": [CREATED, read((2, 9), 1, a=ONE), read((10, 11), 1, a=ONE)],
    "a dead writer's commit is there": [CREATED, DIED, read((5, 6), 2, a=TWO)],
    "a dead writer's commit is not there": [CREATED, DIED, read((5, 6), 1, a=ONE)],
    "a refusal of what does not hold": [
        CREATED,
        call(Operation("create", *A, "x"), (3, 4), Outcome.REFUSED),
        read((5, 6), 1, a=ONE),
    ],
}
WRONG: Final[dict[str, tuple[list[Call], str]]] = {
    "a lost write": ([CREATED, UPDATED, read((5, 6), 1, a=ONE)], "went back behind revision 2"),
    "a lost write that nobody missed": (
        [CREATED, call(UPDATE, (3, 9), Outcome.COMMITTED, 2), read((4, 8), 1, a=ONE)],
        "is lost at the end",
    ),
    "a torn read": ([CREATED, UPDATED, read((5, 6), 2, a=ONE)], "saw "),
    "two commits at once": (
        [CREATED, call(Operation("create", "research", "a", "x"), (1, 2), Outcome.COMMITTED, 1)],
        "two commits have revision 1",
    ),
    "a revision of nobody": ([CREATED, read((5, 6), 2, a=ONE)], "nobody can have made revision 2"),
    "a stale write": (
        [
            CREATED,
            UPDATED,
            call(Operation("update", *A, "x", 1), (5, 6), Outcome.COMMITTED, 3),
            read((7, 8), 3),
        ],
        "was committed although its fact precondition did not hold",
    ),
    "a cleared fact that is back": (
        [
            CREATED,
            call(CLEAR, (3, 4), Outcome.COMMITTED, 2),
            call(Operation("create on", *A, "x", 1), (5, 6), Outcome.COMMITTED, 3),
            read((7, 8), 3, a=FactState("x", 1)),
        ],
        "its manifest precondition",
    ),
    "a refusal of what held": (
        [CREATED, call(UPDATE, (3, 4), Outcome.REFUSED), read((5, 6), 1, a=ONE)],
        "was refused although",
    ),
    "nothing done where something was to do": (
        [CREATED, call(Operation("delete", *A), (3, 4), Outcome.NOTHING_TO_DO, 1), read((5, 6), 1, a=ONE)],
        "did nothing although",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_checker_accepts_what_is_right(name: str) -> None:
    assert problems_of(History(RIGHT[name])) == []


@pytest.mark.parametrize("name", WRONG)
def test_the_checker_finds_what_is_wrong(name: str) -> None:
    calls, expected = WRONG[name]
    assert expected in "; ".join(problems_of(History(calls)))
