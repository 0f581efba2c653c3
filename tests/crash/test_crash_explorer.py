"""The explorer itself: what it counts, what it reports, and that it looks at the right disks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deermem import MemoryRepository, Scope
from deermem.model.identity import UserId
from deermem.testing.crash_explorer import Limits, explore, fair_share
from deermem.testing.crash_report import Report
from deermem.testing.crash_scenario import Laboratory, Scenario
from deermem.testing.disk_steps import SimulatedDeath, Step, StepKind
from deermem.testing.memory_model import Action, MemoryModel, ModelFact
from tests.crash.scenarios import SCENARIOS

UPDATE = next(scenario for scenario in SCENARIOS if scenario.name == "update")
QUICK = Limits(states=300, recovery_states=100, depth=1)


def without_the_last_sync(step: Step, earlier: list[Step]) -> bool:
    """Plants a fault: the bucket is not synced after `memory.json` was replaced."""
    renames = [other for other in earlier if other.kind is StepKind.RENAME]
    return step.kind is StepKind.SYNC and bool(renames) and renames[-1].target.endswith("memory.json")


def test_a_report_tells_the_operation_the_stop_point_and_what_was_lost() -> None:
    text = str(explore(UPDATE, QUICK, without_the_last_sync))
    assert "operations: 1 (update)" in text
    assert "power lost after" in text
    assert "lost: appearance of users/alice/memory.json (rename from users/alice/.recovery/" in text
    assert "an acknowledged change is lost" in text or "half a transaction" in text


def test_the_first_violation_ends_an_exploration_on_request() -> None:
    report = explore(UPDATE, replace(QUICK, first_violation=True), without_the_last_sync)
    assert report.violations == 1


def test_the_same_seed_gives_the_same_report_and_another_one_another_sample() -> None:
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == "create right after a delete")
    first, again, other = (str(explore(scenario, replace(QUICK, seed=seed))) for seed in (1, 1, 2))
    assert first == again
    assert "sampled with seed 1" in first
    assert "sampled with seed 2" in other


def test_a_wrong_model_is_an_error_and_no_violation() -> None:
    operation = replace(UPDATE.operation, model=lambda memory: memory.put("nobody", "x", "y").committed())
    with pytest.raises(ValueError, match="the model says"):
        explore(replace(UPDATE, operation=operation), QUICK)


def clear_one_by_one(repository: MemoryRepository) -> None:
    for agent in repository.list_agents("alice"):
        repository.clear(Scope(UserId.parse("alice"), agent))


def test_an_operation_of_two_transactions_is_found_to_be_half_done() -> None:
    whole = next(scenario for scenario in SCENARIOS if scenario.name == "clear all")
    halves = Action(
        "clear each agent",
        clear_one_by_one,
        lambda memory: MemoryModel(memory.revision + 2, frozenset(), memory.summaries),
    )
    report = explore(Scenario("clear in two transactions", halves, whole.setup, agents=whole.agents), QUICK)
    assert report.counts["half a transaction"] > 0


def test_a_process_that_dies_leaves_the_disk_that_the_explorer_looks_at() -> None:
    laboratory = Laboratory(UPDATE)
    start = laboratory.initial_disk()
    running, seen = start.fork(), [start.digest()]
    running.after_step = lambda step: seen.append(running.digest()) if step.changing else None
    _, repository = laboratory.open(running, "operation")
    UPDATE.operation.run(repository)
    for changes, expected in enumerate(seen[:-1]):
        disk = start.fork()
        process, repository = laboratory.open(disk, "operation")
        process.stop_after(changes)
        with pytest.raises(SimulatedDeath):
            UPDATE.operation.run(repository)
        assert disk.digest() == expected


@pytest.mark.parametrize(
    ("budget", "wishes", "share"),
    [(10, [1, 2, 3], 3), (10, [1, 100, 100], 4), (10, [100, 1, 1], 8), (2, [5, 5, 5], 1), (5, [], 1)],
)
def test_a_budget_is_shared_so_that_small_wishes_are_granted(
    budget: int, wishes: list[int], share: int
) -> None:
    assert fair_share(budget, wishes) == share


def test_reports_add_up() -> None:
    one = explore(UPDATE, QUICK)
    two = Report.total([one, one])
    assert two.operations == ("update", "update")
    assert (two.states, two.stop_points, two.distinct) == (
        2 * one.states,
        2 * one.stop_points,
        2 * one.distinct,
    )


def test_the_model_counts_fact_revisions_and_transactions() -> None:
    memory = MemoryModel().put("a", "f", "1").committed().put("a", "f", "2").put("b", "g", "3").committed()
    assert memory.revision == 2
    assert memory.facts == {ModelFact("a", "f", "2", 2), ModelFact("b", "g", "3", 1)}
    assert memory.drop("a", "f").drop("b").facts == frozenset()
    assert memory.summarise("user", "x", "1").summarise("user", "x", "2").summaries == {("user", "x", "2")}
