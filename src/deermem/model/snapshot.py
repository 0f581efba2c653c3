"""The snapshot: all facts of a scope and the summaries, at one manifest revision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from deermem.model.fact import Fact
from deermem.model.identity import FactId, Scope
from deermem.model.manifest import Manifest
from deermem.model.summaries import Summaries


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Is an immutable view of one scope; safe to keep, share and hand out without a copy.

    `facts` is sorted by id; `by_id` finds one of them.
    """

    scope: Scope
    manifest: Manifest
    facts: tuple[Fact, ...]
    by_id: Mapping[FactId, Fact]

    @classmethod
    def of(cls, scope: Scope, manifest: Manifest, facts: Iterable[Fact]) -> Snapshot:
        """Sorts the facts by id."""
        by_id = {fact.id: fact for fact in facts}
        ordered = tuple(by_id[fact_id] for fact_id in sorted(by_id))
        return cls(scope, manifest, ordered, MappingProxyType(by_id))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Snapshot.of, (self.scope, self.manifest, self.facts))

    @property
    def revision(self) -> int:
        """The manifest revision that this view shows."""
        return self.manifest.revision

    @property
    def summaries(self) -> Summaries:
        """The user's summaries at this revision."""
        return self.manifest.summaries
