"""Runs simulations by seed, and makes failing ones small."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from deermem.testing.simulation.checker import problems_of
from deermem.testing.simulation.history import History
from deermem.testing.simulation.workload import Intent
from deermem.testing.simulation.world import World

Plan = tuple[tuple[Intent, ...], ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Is a simulation that was run, and what is wrong with it."""

    seed: int
    plan: Plan
    history: History
    problems: tuple[str, ...]

    def story(self) -> str:
        """Tells the whole run."""
        return "\n".join([f"seed {self.seed}", *self.history.lines(), *self.problems])


def plan_of(seed: int) -> Plan:
    """Returns what the processes of a seed intend to do: two to four of them, some calls each."""
    rng = random.Random(seed)  # noqa: S311 - a schedule, not a secret
    numbers = iter(range(1_000))
    return tuple(
        tuple(Intent(next(numbers), rng.randrange(2**32)) for _ in range(rng.randrange(3, 9)))
        for _ in range(rng.randrange(2, 5))
    )


def simulate(seed: int, plan: Plan | None = None) -> Run:
    """Runs one simulation and checks its history."""
    plan = plan_of(seed) if plan is None else plan
    history = World(seed, plan).run()
    return Run(seed, plan, history, tuple(problems_of(history)))


def shrink(run: Run) -> Run:
    """Returns a smaller run with the same seed that fails, too: calls are left out as long as it does."""
    smaller = True
    while smaller:
        smaller = False
        for plan in _smaller(run.plan):
            candidate = simulate(run.seed, plan)
            if candidate.problems:
                run, smaller = candidate, True
                break
    return run


def _smaller(plan: Plan) -> Iterator[Plan]:
    for place in range(len(plan)):
        if len(plan) > 1:
            yield (*plan[:place], *plan[place + 1 :])
    for place, intents in enumerate(plan):
        for left_out in range(len(intents)):
            kept = (*intents[:left_out], *intents[left_out + 1 :])
            yield (*plan[:place], kept, *plan[place + 1 :])
