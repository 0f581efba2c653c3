"""Snapshots of scopes that were read before, each valid for one state of `memory.json`.

The token is the plan's `(mtime_ns, size, revision)` (section 9); the bytes of `memory.json`, which
are read on every check anyway, are compared too, so that no coarse clock can make a stale hit.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from deermem.model.fact import Fact
from deermem.model.identity import AgentName, FactId, Scope, UserId
from deermem.model.resolution import Resolution
from deermem.model.snapshot import Snapshot
from deermem.storage.bucket import ManifestImage, StoredFact
from deermem.storage.costs import cost_of_fact, cost_of_scope
from deermem.storage.forks import follows_forks
from deermem.storage.known_facts import KnownFact, KnownFacts

DEFAULT_CACHE_BYTES: Final = 64_000_000

_KNOWN_FACTS_SHARE: Final = 8
_MAX_IMAGES: Final = 1_000


class Token(NamedTuple):
    """Validates a cached state; times are in nanoseconds."""

    mtime_ns: int
    size: int
    revision: int

    @classmethod
    def of(cls, image: ManifestImage) -> Token:
        """Returns the token of a manifest; that of an absent one is all zero."""
        if image.identity is None:
            return cls(0, 0, 0)
        return cls(image.identity.mtime_ns, image.identity.size, image.manifest.revision)


Facts = dict[FactId, StoredFact]


class ScopeEntry:
    """Holds the facts of a scope as they were read, and the snapshot made of them on demand.

    Args:
        scope: Whose facts they are.
        image: The `memory.json` that they were read under.
        facts: The facts.
        weight: What they weigh, see `weight_of`.
    """

    def __init__(self, scope: Scope, image: ManifestImage, facts: Facts, weight: int) -> None:
        self.scope = scope
        self.image = image
        self.facts = facts
        self._snapshot: Snapshot | None = None
        self.cost = cost_of_scope(image) + weight

    def is_valid_for(self, image: ManifestImage) -> bool:
        """Tells whether `memory.json` is still the one that the facts were read under."""
        return Token.of(self.image) == Token.of(image) and self.image.data == image.data

    def snapshot(self) -> Snapshot:
        """Returns the immutable view; the same object until something changes."""
        if self._snapshot is None:
            facts = (stored.fact for stored in self.facts.values())
            self._snapshot = Snapshot.of(self.scope, self.image.manifest, facts)
        return self._snapshot

    def advance(self, image: ManifestImage, written: Iterable[StoredFact], deleted: Iterable[FactId]) -> None:
        """Follows a commit of this process without reading anything."""
        self.cost += cost_of_scope(image) - cost_of_scope(self.image)
        self.image = image
        self._snapshot = None
        for stored in written:
            before = self.facts.get(stored.fact.id)
            self.cost += cost_of_fact(stored.fact) - (cost_of_fact(before.fact) if before else 0)
            self.facts[stored.fact.id] = stored
        for fact_id in deleted:
            before = self.facts.pop(fact_id, None)
            self.cost -= cost_of_fact(before.fact) if before else 0


def weight_of(facts: Facts, known: Facts, known_weight: int) -> int:
    """Returns what facts weigh; those among them that are known, whose weight is, are not weighed again."""
    new = [stored for fact_id, stored in facts.items() if known.get(fact_id) is not stored]
    weight = known_weight + sum(cost_of_fact(stored.fact) for stored in new)
    if len(facts) - len(new) < len(known):
        gone = (stored for fact_id, stored in known.items() if facts.get(fact_id) is not stored)
        weight -= sum(cost_of_fact(stored.fact) for stored in gone)
    return weight


def _shown_as(scope: Scope, entry: ScopeEntry) -> Snapshot:
    """Returns the snapshot under the raw user id of the caller; several may have one bucket."""
    snapshot = entry.snapshot()
    if entry.scope.user == scope.user:
        return snapshot
    return Snapshot(scope, snapshot.manifest, snapshot.facts, snapshot.by_id)


class SnapshotCache:
    """Keeps the entries that were used last, up to a number of bytes; 0 keeps none."""

    def __init__(self, limit: int = DEFAULT_CACHE_BYTES) -> None:
        self._limit = limit
        self._mutex = threading.RLock()
        self._entries: OrderedDict[tuple[str | None, AgentName], ScopeEntry] = OrderedDict()
        self._agents: dict[str | None, set[AgentName]] = {}
        self._images: OrderedDict[str | None, ManifestImage] = OrderedDict()
        self._known = KnownFacts(limit // _KNOWN_FACTS_SHARE)
        self._cost = 0
        self.hits = 0
        self.misses = 0
        follows_forks(self)

    def begin_in_child(self) -> None:
        """Keeps what is known in a forked child, unless another thread was just changing it."""
        if self._mutex.acquire(blocking=False):
            self._mutex.release()
            return
        self._mutex = threading.RLock()
        self.clear()

    @property
    def cost(self) -> int:
        """The estimated size of what is kept, in bytes."""
        return self._cost

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, scope: Scope) -> ScopeEntry | None:
        """Returns what is known of a scope, valid or not."""
        with self._mutex:
            entry = self._entries.get((scope.user.bucket, scope.agent))
            if entry is not None:
                self._entries.move_to_end((scope.user.bucket, scope.agent))
            return entry

    def known_facts(self, scope: Scope) -> tuple[Facts, int]:
        """Returns the facts that are known of a scope, valid or not, and what they weigh."""
        with self._mutex:
            entry = self.find(scope)
            return ({}, 0) if entry is None else (dict(entry.facts), entry.cost - cost_of_scope(entry.image))

    def known_fact(self, scope: Scope, fact_id: FactId) -> KnownFact | None:
        """Returns the fact as this process saw it last."""
        with self._mutex:
            known = self._known.find(scope, fact_id)
            entry = self._entries.get((scope.user.bucket, scope.agent))
            if entry is None or (known and known.image.manifest.revision > entry.image.manifest.revision):
                return known
            stored = entry.facts.get(fact_id)
            return None if stored is None else KnownFact(stored.fact, entry.image)

    def note(self, fact: Fact, image: ManifestImage) -> None:
        """Remembers a fact that was read alone."""
        with self._mutex:
            self._known.note(fact, image)

    def newest_image(self, user: UserId) -> ManifestImage | None:
        """Returns the latest manifest of a user that this process has seen and still knows."""
        return self._images.get(user.bucket)

    def peek(self, scope: Scope, image: ManifestImage) -> ScopeEntry | None:
        """Returns what is known of a scope if it shows this state of `memory.json`."""
        with self._mutex:
            entry = self.find(scope)
            return entry if entry is not None and entry.is_valid_for(image) else None

    def current(self, scope: Scope, image: ManifestImage) -> Snapshot | None:
        """Returns the cached snapshot if it shows this state of `memory.json`; nothing is no miss yet."""
        with self._mutex:
            entry = self.peek(scope, image)
            if entry is None:
                return None
            self.hits += 1
            return _shown_as(scope, entry)

    def hit(self, scope: Scope, image: ManifestImage) -> Snapshot | None:
        """Returns the cached snapshot if it shows this state of `memory.json`."""
        with self._mutex:
            found = self.current(scope, image)
            if found is None:
                self.misses += 1
            return found

    def since(self, scope: Scope, revision: int) -> Snapshot | None:
        """Returns the cached snapshot if it shows this revision or a later one."""
        with self._mutex:
            entry = self.find(scope)
            known = entry is not None and entry.image.manifest.revision >= revision
            return _shown_as(scope, entry) if known and entry is not None else None

    def put(self, entry: ScopeEntry) -> None:
        """Keeps an entry, unless a newer one is there."""
        key = (entry.scope.user.bucket, entry.scope.agent)
        with self._mutex:
            present = self._entries.get(key)
            if present is not None and present.image.manifest.revision > entry.image.manifest.revision:
                return
            self._drop(key)
            self._entries[key] = entry
            self._agents.setdefault(key[0], set()).add(key[1])
            self._cost += entry.cost
            self.remember(entry.scope.user, entry.image)
            self._shrink()

    def remember(self, user: UserId, image: ManifestImage) -> None:
        """Notes a manifest that was read, unless a newer one is known."""
        with self._mutex:
            known = self._images.get(user.bucket)
            if known is None or known.manifest.revision <= image.manifest.revision:
                self._images[user.bucket] = image
                self._images.move_to_end(user.bucket)
                if len(self._images) > _MAX_IMAGES:
                    self._images.popitem(last=False)

    def advance(
        self,
        user: UserId,
        base: ManifestImage,
        image: ManifestImage,
        resolution: Resolution,
        written: Sequence[StoredFact],
    ) -> None:
        """Carries every cached scope of a user over a commit of this process.

        Args:
            user: Whose memory it is.
            base: The manifest before the commit; entries that show another state stay as they are.
            image: The manifest after it.
            resolution: What the commit did.
            written: Its facts with the identities of their new files.
        """
        stored_by_agent: dict[AgentName, list[StoredFact]] = {}
        for stored in written:
            stored_by_agent.setdefault(stored.fact.scope.agent, []).append(stored)
        deleted_by_agent: dict[AgentName, list[FactId]] = {}
        for agent, fact_id in resolution.deleted:
            deleted_by_agent.setdefault(agent, []).append(fact_id)
        with self._mutex:
            self.remember(user, image)
            for stored in written:
                self._known.note(stored.fact, image)
            for agent, fact_id in resolution.deleted:
                self._known.drop(Scope(user, agent), fact_id)
            for agent in self._agents.get(user.bucket, ()):
                entry = self._entries[user.bucket, agent]
                if entry.is_valid_for(base):
                    self._cost -= entry.cost
                    entry.advance(image, stored_by_agent.get(agent, ()), deleted_by_agent.get(agent, ()))
                    self._cost += entry.cost
            self._shrink()

    def forget_user(self, user: UserId) -> None:
        """Drops all that is known of a user; the next read sees what is on disk, hand edits included."""
        with self._mutex:
            self._images.pop(user.bucket, None)
            self._known.drop_user(user.bucket)
            for agent in tuple(self._agents.get(user.bucket, ())):
                self._drop((user.bucket, agent))

    def clear(self) -> None:
        """Drops everything."""
        with self._mutex:
            self._entries.clear()
            self._agents.clear()
            self._images.clear()
            self._known.clear()
            self._cost = 0

    def _drop(self, key: tuple[str | None, AgentName]) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._cost -= entry.cost
            agents = self._agents[key[0]]
            agents.discard(key[1])
            if not agents:
                del self._agents[key[0]]

    def _shrink(self) -> None:
        while self._cost > self._limit and self._entries:
            self._drop(next(iter(self._entries)))
