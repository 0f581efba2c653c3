"""A view of one user's memory at one state of `memory.json`."""

from __future__ import annotations

from typing import Final, Protocol

from deermem.errors import Corruption, UnsupportedFormat
from deermem.model.fact import Fact
from deermem.model.hand_edits import is_hand_edit
from deermem.model.identity import AgentName, FactId, Scope
from deermem.model.manifest import NO_MANIFEST, Manifest
from deermem.model.snapshot import Snapshot
from deermem.storage.agents import AgentEntry, list_entries
from deermem.storage.bucket import Bucket, ManifestImage
from deermem.storage.cache import ScopeEntry, SnapshotCache, weight_of
from deermem.storage.legacy import refuse_legacy

Problem = Corruption | UnsupportedFormat

# Time stamps that move in whole seconds (or two), and those of a kernel that ticks every 4 to 10 ms.
_COARSE_NS: Final = 2_000_000_000
_TICK_NS: Final = 20_000_000


class View(Protocol):
    """Shows one user's memory at one committed state."""

    @property
    def manifest(self) -> Manifest:
        """The manifest at this state."""
        ...

    def snapshot(self, scope: Scope) -> Snapshot:
        """Returns all facts of a scope.

        Raises:
            Corruption: One of the files cannot be trusted.
        """
        ...

    def fact(self, scope: Scope, fact_id: FactId) -> Fact | None:
        """Returns one fact without looking at any other."""
        ...

    def fact_on_disk(self, scope: Scope, fact_id: FactId) -> Fact | None:
        """Returns one fact as its file says it, edits by hand included."""
        ...

    def readable_facts(self, scope: Scope) -> tuple[Snapshot, tuple[Problem, ...]]:
        """Returns the facts that can be read, and what is wrong with each of the others."""
        ...

    def agents(self) -> tuple[AgentName, ...]:
        """Returns the agents that have a directory for facts."""
        ...

    def agent_entries(self) -> tuple[AgentEntry, ...]:
        """Returns the agents that are custom ones or have facts."""
        ...

    def cleared_at(self, agent: AgentName) -> int:
        """Returns the revision of the agent's last clear, 0 if it was never cleared."""
        ...


class BucketView:
    """Reads through an open bucket, and from the cache where that shows the same state.

    `used_disk` tells whether anything beside `memory.json` was read, so that the reading must be
    proved to belong to one state.
    """

    def __init__(self, bucket: Bucket, image: ManifestImage, cache: SnapshotCache) -> None:
        self.bucket = bucket
        self.image = image
        self.used_disk = False
        self.entries: list[ScopeEntry] = []
        self._singles: list[Fact] = []
        self._cache = cache

    @property
    def manifest(self) -> Manifest:
        """The manifest that the view shows."""
        return self.image.manifest

    def keep(self) -> None:
        """Lets the cache have what was read, once it is known to belong to one state."""
        for entry in self.entries:
            self._cache.put(entry)
        for fact in self._singles:
            self._cache.note(fact, self.image)

    def snapshot(self, scope: Scope) -> Snapshot:
        """Returns all facts of a scope; only files that changed since the last time are read."""
        cached = self._cache.hit(scope, self.image)
        if cached is not None:
            return cached
        self.used_disk = True
        refuse_legacy(self.bucket, scope.agent)
        known, weight = self._cache.known_facts(scope)
        facts = self.bucket.read_facts(scope, known, young_after(self.image))
        entry = ScopeEntry(scope, self.image, facts, weight_of(facts, known, weight))
        self.entries.append(entry)
        return entry.snapshot()

    def fact(self, scope: Scope, fact_id: FactId) -> Fact | None:
        """Returns one fact without looking at any other; edits by hand do not show before a reload."""
        cached = self._cache.peek(scope, self.image)
        if cached is not None:
            stored = cached.facts.get(fact_id)
            return None if stored is None else stored.fact
        fact = self.fact_on_disk(scope, fact_id)
        if fact is None:
            return None
        known = self._cache.known_fact(scope, fact_id)
        if known is not None and is_hand_edit(known.fact, fact):
            return known.fact
        self._singles.append(fact)
        return fact

    def fact_on_disk(self, scope: Scope, fact_id: FactId) -> Fact | None:
        """Returns one fact as its file says it, edits by hand included."""
        self.used_disk = True
        refuse_legacy(self.bucket, scope.agent)
        found = self.bucket.read_fact(scope, fact_id)
        return None if found is None else found.fact

    def readable_facts(self, scope: Scope) -> tuple[Snapshot, tuple[Problem, ...]]:
        """Returns the facts that can be read, and what is wrong with each of the others."""
        self.used_disk = True
        refuse_legacy(self.bucket, scope.agent)
        problems: list[Problem] = []
        facts = self.bucket.read_facts(scope, {}, None, problems)
        snapshot = Snapshot.of(scope, self.manifest, (stored.fact for stored in facts.values()))
        return snapshot, tuple(problems)

    def agents(self) -> tuple[AgentName, ...]:
        """Returns the agents that have a directory for facts."""
        self.used_disk = True
        return self.bucket.agents()

    def agent_entries(self) -> tuple[AgentEntry, ...]:
        """Returns the agents that are custom ones or have facts, sorted by name."""
        self.used_disk = True
        for agent in self.bucket.agents():
            refuse_legacy(self.bucket, agent)
        return list_entries(self.bucket)

    def cleared_at(self, agent: AgentName) -> int:
        """Returns the revision of the agent's last clear, 0 if it was never cleared."""
        self.used_disk = True
        return self.bucket.read_fences().of(agent)


class EmptyView:
    """Shows a user about whom nothing was ever stored."""

    manifest = NO_MANIFEST

    def snapshot(self, scope: Scope) -> Snapshot:
        """Returns the snapshot without facts."""
        return Snapshot.of(scope, NO_MANIFEST, ())

    def fact(self, scope: Scope, fact_id: FactId) -> Fact | None:  # noqa: ARG002 - as View has it
        """Returns nothing."""
        return None

    def fact_on_disk(self, scope: Scope, fact_id: FactId) -> Fact | None:  # noqa: ARG002 - as View has it
        """Returns nothing."""
        return None

    def readable_facts(self, scope: Scope) -> tuple[Snapshot, tuple[Problem, ...]]:
        """Returns the snapshot without facts."""
        return self.snapshot(scope), ()

    def agents(self) -> tuple[AgentName, ...]:
        """Returns no agent."""
        return ()

    def agent_entries(self) -> tuple[AgentEntry, ...]:
        """Returns no agent."""
        return ()

    def cleared_at(self, agent: AgentName) -> int:  # noqa: ARG002 - as View has it
        """Returns 0."""
        return 0


def young_after(image: ManifestImage) -> int | None:
    """Returns the time (ns) from which on a file is too young for its identity to prove anything.

    The manifest's own time stamp serves as the file system's clock and shows how coarse it is.
    """
    if image.identity is None:
        return None
    now = image.identity.mtime_ns
    return now - (_COARSE_NS if now % 1_000_000_000 == 0 else _TICK_NS)
