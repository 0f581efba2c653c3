"""P3: the manager adds a fact to a scope that is full, so that another one goes, and returns the document."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.measuring import Side, interleave
from benchmarks.results import Result
from benchmarks.rows.point_writes import PointWrites
from benchmarks.samples import build_scope, new_contents
from deermem import DeerMem, Scope

_USER: Final = "alice"
_AGENT: Final = "assistant"
_CAP: Final = 100
_FLOOR: Final = "the create of P1"


class FullScope:
    """Is a scope that holds as many facts as it may."""

    def __init__(self, root: Path, facts: int) -> None:
        build_scope(root, Scope.of(_USER, _AGENT), facts)
        self.manager = DeerMem({"storage_path": str(root), "max_facts": facts})
        self._contents = new_contents()
        self._steps = count(1)
        self.manager.get_memory(user_id=_USER, agent_name=_AGENT)

    def create(self) -> None:
        """Adds a fact that is surer than all others, so that it stays and the least sure one goes."""
        _, fact_id = self.manager.create_fact(
            next(self._contents),
            confidence=0.99 + next(self._steps) / 1e8,
            user_id=_USER,
            agent_name=_AGENT,
        )
        if fact_id is None:
            raise AssertionError("the new fact went, so no file was written")


def measure(bench: Bench) -> Iterator[Result]:
    """Measures against both ways in which P1 creates a fact."""
    scale = bench.scale
    facts = scale.sized(_CAP)
    with bench.folder() as folder:
        full = FullScope(folder / "full", max(facts, 10))
        writes = PointWrites(folder / "store", facts)
        sides = [
            Side("cap", full.create),
            Side("create", writes.create, writes.choose_used_shard),
            Side("create anywhere", writes.create, writes.choose_any_shard),
        ]
        bench.settle()
        medians = interleave(sides, rounds=scale.rounds, samples=scale.samples)
        full.manager.close()
    work = f"create_fact of the manager at the cap of {facts} facts"
    for side, where in (
        ("create", "in a shard that holds others"),
        ("create anywhere", "its shard as it comes"),
    ):
        title, floor = f"{work}, against P1 {where}", f"{_FLOOR}, {where}"
        yield Result.timed("P3", title, floor, medians["cap"], medians[side], bar=2.0)
