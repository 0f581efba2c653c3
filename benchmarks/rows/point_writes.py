"""P1 and P2: one fact is created, updated or deleted, durably."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count, cycle
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.floors import DurableReplacements
from benchmarks.measuring import Side, interleave
from benchmarks.results import Result
from benchmarks.samples import (
    build_scope,
    draft_of,
    fact_of,
    manifest_bytes,
    new_contents,
    unused_ids,
)
from deermem import MemoryRepository, Scope
from deermem.format.fact_markdown import encode_fact
from deermem.format.journal_json import Image, Journal, encode_journal
from deermem.format.layout import bucket_parts, fact_parts, facts_parts, shard_of
from deermem.model.identity import FactId

_SCOPE: Final = Scope.of("alice", "assistant")
_FEW: Final = 100
_MANY: Final = 100_000
_FLOOR: Final = "three durable atomic replacements"


class PointWrites:
    """Creates, updates and deletes in one scope, whose size stays what it is."""

    def __init__(self, root: Path, facts: int) -> None:
        ids = build_scope(root, _SCOPE, facts)
        self._repository = MemoryRepository(root)
        self._facts = root.joinpath(*bucket_parts(_SCOPE.user), *facts_parts(_SCOPE.agent))
        self._present = cycle(ids)
        self._anywhere = cycle(unused_ids(facts))
        self._in_used_shards = cycle(unused_ids(facts, {shard_of(one) for one in ids}))
        self._number = count(facts)
        self._contents = new_contents()
        self._next: FactId = ids[0]
        self._created: FactId | None = None

    def create(self) -> None:
        """Creates a fact."""
        self._created = self._next
        self._repository.upsert_fact(_SCOPE, draft_of(next(self._number), self._next))

    def update(self) -> None:
        """Gives a fact another text."""
        self._repository.edit_fact(_SCOPE, next(self._present), {"content": next(self._contents)})

    def delete(self) -> None:
        """Deletes the fact that was created last."""
        self._repository.delete_fact(_SCOPE, self._next)
        self._created = None

    def choose_used_shard(self) -> None:
        """Makes the next fact one whose shard holds others."""
        self._tidy()
        self._next = next(self._in_used_shards)

    def choose_any_shard(self) -> None:
        """Makes the next fact one whose shard may have to be made."""
        self._tidy()
        self._next = next(self._anywhere)

    def create_one_to_delete(self) -> None:
        """Creates a fact beside others."""
        self.choose_used_shard()
        self.create()

    def _tidy(self) -> None:
        if self._created is not None:
            self._repository.delete_fact(_SCOPE, self._created)
            with suppress(OSError):  # it is in use
                os.rmdir(self._facts / shard_of(self._created))
            self._created = None

    def sides(self, label: str) -> list[Side]:
        """Returns what is the same at every size."""
        return [
            Side(f"create{label}", self.create, self.choose_used_shard),
            Side(f"update{label}", self.update),
            Side(f"delete{label}", self.delete, self.create_one_to_delete),
        ]


def few_facts(bench: Bench) -> Iterator[Result]:
    """P1: against three durable atomic file replacements."""
    scale = bench.scale
    with bench.folder() as folder:
        writes = PointWrites(folder / "store", _FEW)
        with closing(replacements(folder / "floor")) as floor:
            sides = [
                Side("floor", floor),
                *writes.sides(""),
                Side("create anywhere", writes.create, writes.choose_any_shard),
            ]
            bench.settle()
            medians = interleave(sides, rounds=scale.rounds, samples=scale.samples)
    works = {
        "create": "create a fact in a shard that holds others",
        "create anywhere": "create a fact, its shard as it comes (two in three are new)",
        "update": "update a fact",
        "delete": "delete a fact",
    }
    for name, work in works.items():
        title = f"{work}, {_FEW} facts there"
        yield Result.timed("P1", title, _FLOOR, medians[name], medians["floor"], bar=1.5)


def many_facts(bench: Bench) -> Iterator[Result]:
    """P2: against the same in a small scope."""
    scale = bench.scale
    many = scale.sized(_MANY)
    with bench.folder() as folder:
        small = PointWrites(folder / "small", _FEW)
        large = PointWrites(folder / "large", many)
        bench.settle()
        sides = [*small.sides(" in few"), *large.sides(" in many")]
        medians = interleave(sides, rounds=scale.rounds, samples=scale.samples)
    for work in ("create", "update", "delete"):
        title = f"{work} a fact, {many:,} facts there"
        few, much = medians[f"{work} in few"], medians[f"{work} in many"]
        yield Result.timed("P2", title, f"the same with {_FEW} facts", much, few, bar=1.2)


def replacements(folder: Path) -> DurableReplacements:
    """Returns the floor of P1, with files of the sizes that the store writes."""
    one = unused_ids(_FEW)[0]
    fact, manifest = encode_fact(fact_of(0, one, _SCOPE)), manifest_bytes()
    images = (
        Image.of(fact_parts(_SCOPE.agent, one), "0" * 32 + "-0", fact),
        Image.of(("memory.json",), "0" * 32 + "-1", manifest),
    )
    journal = encode_journal(Journal("0" * 32, 1, 2, images[:1], images[1], ()))
    return DurableReplacements(folder, journal, fact, manifest)
