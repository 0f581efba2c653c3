"""What a user's memory should be: a model in plain values, and everything that can be read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from deermem.model.fact import Fact
from deermem.model.identity import FactId, Scope, UserId, parse_agent_name, stored_agent_name
from deermem.model.manifest import Manifest
from deermem.model.snapshot import Snapshot
from deermem.repository import MemoryRepository


class ModelFact(NamedTuple):
    """Is what the model knows of a fact."""

    agent: str
    fact_id: str
    content: str
    revision: int


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """Is one user's memory at one manifest revision; each method returns the memory after a change.

    `summaries` holds the non-empty ones as group, name and text.
    """

    revision: int = 0
    facts: frozenset[ModelFact] = frozenset()
    summaries: frozenset[tuple[str, str, str]] = frozenset()

    def put(self, agent: str, fact_id: str, content: str) -> MemoryModel:
        """Writes a fact."""
        before = next((fact for fact in self.facts if fact[:2] == (agent, fact_id)), None)
        after = ModelFact(agent, fact_id, content, 1 if before is None else before.revision + 1)
        return replace(self, facts=self.facts - {before} | {after} if before else self.facts | {after})

    def drop(self, agent: str, *fact_ids: str) -> MemoryModel:
        """Removes some facts of an agent, or all if none is named."""
        kept = (
            fact for fact in self.facts if fact.agent != agent or (fact_ids and fact.fact_id not in fact_ids)
        )
        return replace(self, facts=frozenset(kept))

    def summarise(self, group: str, name: str, text: str) -> MemoryModel:
        """Replaces one summary."""
        kept = {summary for summary in self.summaries if summary[:2] != (group, name)}
        return replace(self, summaries=frozenset(kept | {(group, name, text)}))

    def without_summaries(self) -> MemoryModel:
        """Empties all summaries."""
        return replace(self, summaries=frozenset())

    def committed(self) -> MemoryModel:
        """Counts one transaction."""
        return replace(self, revision=self.revision + 1)


@dataclass(frozen=True)
class Action:
    """Is a call of the repository, and what it should make of the memory."""

    name: str
    run: Callable[[MemoryRepository], object]
    model: Callable[[MemoryModel], MemoryModel]


class ReadsDisagree(Exception):
    """Says that two ways of reading the same memory showed different things."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Is everything that can be read of a user's memory: the facts of all agents, and the manifest.

    `earlier` is a manifest that was shown before: a read that needs no fact does not look for a
    journal, and shows the last committed state while a change waits to be completed.
    """

    manifest: Manifest
    facts: tuple[Fact, ...]
    earlier: Manifest | None = field(default=None, compare=False)

    def model(self) -> MemoryModel:
        """Returns the part of it that a model predicts."""
        sections = self.manifest.summaries.sections.items()
        return MemoryModel(
            self.manifest.revision,
            frozenset(
                ModelFact(fact.scope.agent, fact.id, fact.content, fact.revision) for fact in self.facts
            ),
            frozenset(
                (group, name, section.summary) for (group, name), section in sections if section.summary
            ),
        )


READS: Final = 4


def observe(
    repository: MemoryRepository,
    user_id: str | None,
    agents: Iterable[str],
    fact_ids: Iterable[str],
    *,
    first: int = 0,
    answered: Callable[[], None] = lambda: None,
) -> Observation:
    """Reads everything through the public API and checks that all ways of reading agree.

    Args:
        repository: What to read from.
        user_id: Whose memory.
        agents: The agents to read beside those that the repository lists.
        fact_ids: Facts to ask for by id in each scope, whether they are there or not.
        first: Which of the `READS` kinds of reads comes first.
        answered: Is called when the first read returned.

    Raises:
        ReadsDisagree: What was read does not belong to one revision.
    """
    scopes = [Scope.of(user_id, agent) for agent in dict.fromkeys(map(public_name, agents))]
    wanted = [FactId(fact_id) for fact_id in fact_ids]
    snapshots: dict[Scope, Snapshot] = {}
    single: dict[tuple[Scope, FactId], Fact | None] = {}
    manifests: list[Manifest] = []

    def read_snapshots() -> None:
        snapshots.update({scope: repository.snapshot(scope) for scope in scopes})

    def read_single() -> None:
        keys = [(scope, fact_id) for scope in scopes for fact_id in wanted]
        single.update({(scope, fact_id): repository.get_fact(scope, fact_id) for scope, fact_id in keys})

    def read_manifest() -> None:
        manifests.append(repository.get_manifest(user_id))

    def read_agents() -> None:
        listed = [Scope(UserId.parse(user_id), agent) for agent in repository.list_agents(user_id)]
        snapshots.update({scope: repository.snapshot(scope) for scope in listed})

    reads = (read_snapshots, read_single, read_manifest, read_agents)
    for number in range(READS):
        reads[(first + number) % READS]()
        if number == 0:
            answered()
    read_manifest()
    return _agreed(snapshots, single, manifests)


def _agreed(
    snapshots: dict[Scope, Snapshot],
    single: dict[tuple[Scope, FactId], Fact | None],
    manifests: list[Manifest],
) -> Observation:
    earlier, manifest = manifests
    if earlier.revision > manifest.revision:
        raise ReadsDisagree(f"memory.json went from revision {earlier.revision} to {manifest.revision}")
    for scope, snapshot in snapshots.items():
        if snapshot.manifest != manifest:
            raise ReadsDisagree(
                f"{scope} shows revision {snapshot.revision}, memory.json {manifest.revision}"
            )
    for (scope, fact_id), fact in single.items():
        if snapshots[scope].by_id.get(fact_id) != fact:
            raise ReadsDisagree(f"get_fact and the snapshot of {scope} show different facts {fact_id}")
    facts = [fact for snapshot in snapshots.values() for fact in snapshot.facts]
    ordered = tuple(sorted(facts, key=lambda fact: (fact.scope.agent, fact.id)))
    return Observation(manifest, ordered, None if earlier == manifest else earlier)


def public_name(agent: str) -> str | None:
    """Returns what a caller passes for a stored agent name: `None` for the reserved default."""
    name = stored_agent_name(agent)
    return None if name == parse_agent_name(None) else agent
