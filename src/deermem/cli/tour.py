"""The steps of the demonstration, on a repository that is empty."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from deermem.cli.texts import fact_cells
from deermem.format.layout import bucket_parts, fact_parts
from deermem.model.changes import ChangeSet, Upsert
from deermem.model.fact import FactDraft
from deermem.model.identity import FactId, Scope, parse_agent_name
from deermem.model.summaries import SummaryPatch
from deermem.repository import MemoryRepository

_SHOWN: tuple[str, None, FactId] = ("alice@example.com", None, FactId("fact_5d0c41aa"))


@dataclass(slots=True)
class Tour:
    """Tells what was done, what came of it, and what is on the disk afterwards."""

    steps: list[tuple[str, list[str]]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    shown_path: str = ""
    shown_text: str = ""

    def tell(self, did: str, *outcome: str) -> None:
        """Adds a step."""
        self.steps.append((did, list(outcome)))


def take_tour(repository: MemoryRepository) -> Tour:
    """Loads the sample, then adds, updates, searches and clears."""
    tour = Tour()
    _load(repository, tour)
    user, agent, shown = _SHOWN
    scope = Scope.of(user, agent)
    draft = FactDraft("Deploys only with a second pair of eyes.", category="constraint", confidence=0.9)
    delta, _ = repository.create_fact(scope, draft)
    tour.tell(f"Added a fact about {user}", f"{delta.written[0].id}: {delta.written[0].content}")
    before = repository.get_fact(scope, shown)
    delta = repository.edit_fact(
        scope,
        shown,
        {"content": "The project uses Python 3.13 since the cluster was updated."},
        expected=before,
    )
    tour.tell(
        f"Updated a fact, if it is still as it was read: {shown}",
        f"before, revision 1: {'' if before is None else before.content}",
        f"now, revision {delta.written[0].revision}: {delta.written[0].content}",
    )
    _search(repository, tour, user, "PREFER")
    _search(repository, tour, "用户-7", "咖啡")
    delta = repository.clear(Scope.of(user, "research-agent"))
    tour.tell(
        f"Cleared the research-agent of {user}",
        f"{len(delta.deleted)} facts are gone, those of {_count_agents(repository, user)} other agents stay",
    )
    tour.files = _files_below(repository.storage_root)
    tour.shown_path = "/".join((*bucket_parts(scope.user), *fact_parts(scope.agent, shown)))
    with open(os.path.join(repository.storage_root, tour.shown_path), encoding="utf-8", newline="") as file:
        tour.shown_text = file.read()
    return tour


def read_sample() -> list[dict[str, Any]]:
    """Returns the bundled memories: users with their summaries and, by agent, facts."""
    text = files("deermem.cli").joinpath("sample", "memories.json").read_text("utf-8")
    sample: list[dict[str, Any]] = json.loads(text)
    return sample


def changes_of(memory: Mapping[str, Any]) -> ChangeSet:
    """Returns one user of the sample as one change set; the agent `""` is the default one."""
    upserts = tuple(
        Upsert(parse_agent_name(agent or None), FactDraft(**fact))
        for agent, facts in memory["agents"].items()
        for fact in facts
    )
    return ChangeSet(upserts=upserts, summaries=SummaryPatch.parse(memory["summaries"]))


def _load(repository: MemoryRepository, tour: Tour) -> None:
    outcome = []
    for memory in read_sample():
        changes = changes_of(memory)
        delta = repository.apply_changes(memory["userId"], changes)
        agents = sorted(changes.agents())
        outcome.append(f"{memory['userId']}: {len(delta.written)} facts of {', '.join(agents)}")
    tour.tell("Loaded the sample, one transaction for each user", *outcome)


def _search(repository: MemoryRepository, tour: Tour, user: str, query: str) -> None:
    scopes = [Scope(Scope.of(user).user, agent) for agent in repository.list_agents(user)]
    hits = repository.search_facts(query, scopes)
    found = ["  ".join(fact_cells(hit.fact, with_agent=True)) for hit in hits]
    tour.tell(f"Searched all agents of {user} for {query!r}", *found)


def _count_agents(repository: MemoryRepository, user: str) -> int:
    scope = Scope.of(user)
    agents = repository.list_agents(user)
    return sum(bool(repository.snapshot(Scope(scope.user, agent)).facts) for agent in agents)


def _files_below(root: str) -> list[str]:
    found = [
        os.path.relpath(os.path.join(directory, name), root)
        for directory, _, names in os.walk(root)
        for name in names
    ]
    return sorted(path.replace(os.sep, "/") for path in found)
