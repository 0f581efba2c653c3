"""P5: the historical document, which is made of dictionaries, from the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from benchmarks.bench import Bench
from benchmarks.measuring import PROCESSOR, Side, interleave
from benchmarks.results import Result
from benchmarks.samples import build_scope
from deermem import DeerMem, Scope

_USER: Final = "alice"
_AGENT: Final = "assistant"


def copies(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Is the floor: copies each dictionary and the three containers in it."""
    found = []
    for fact in facts:
        copy = dict(fact)
        copy["topics"] = list(fact["topics"])
        copy["scope"] = dict(fact["scope"])
        copy["consolidatedFrom"] = list(fact["consolidatedFrom"])
        found.append(copy)
    return found


def measure(bench: Bench) -> Iterator[Result]:
    """Measures what `get_memory` takes while nothing changes."""
    scale = bench.scale
    facts = scale.sized(1_000)
    with bench.folder() as folder:
        build_scope(folder, Scope.of(_USER, _AGENT), facts)
        bench.settle()
        with DeerMem({"storage_path": str(folder)}) as manager:
            document = manager.get_memory(user_id=_USER, agent_name=_AGENT)
            sides = [
                Side("document", lambda: manager.get_memory(user_id=_USER, agent_name=_AGENT)),
                Side("floor", lambda: copies(document["facts"])),
            ]
            medians = interleave(sides, rounds=scale.rounds, samples=scale.samples, clock=PROCESSOR)
    yield Result.timed(
        "P5",
        f"historical document of {facts:,} facts from the cache",
        "copy each dictionary with its three containers",
        medians["document"],
        medians["floor"],
        bar=2.5,
    )
