"""A stream of operations on one user, the memory after each of them, and what is found of it later."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from deermem import (
    ANYTHING,
    ChangeSet,
    Delete,
    FactDraft,
    MemoryRepository,
    Scope,
    Section,
    Summaries,
    Upsert,
)
from deermem.maintenance.check import check_store
from deermem.maintenance.findings import Severity
from deermem.model.identity import DEFAULT_AGENT, AgentName, FactId
from deermem.testing.memory_model import Action, MemoryModel, ModelFact, observe

USER: Final = "alice"
HERE: Final = Scope.of(USER)
RESEARCH: Final = AgentName("research")
THERE: Final = Scope.of(USER, RESEARCH)
AGENTS: Final = (HERE.agent, THERE.agent)


class Stream:
    """Is a row of actions, each one transaction; `models[n]` is the memory after the first n of them."""

    def __init__(self, seed: int, length: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
        self.models = [MemoryModel()]
        self.actions: list[Action] = []
        for number in range(length):
            action = self._next(self.models[-1], number)
            self.actions.append(action)
            self.models.append(action.model(self.models[-1]))

    def _next(self, memory: MemoryModel, number: int) -> Action:
        facts = sorted(memory.facts)
        if len(facts) < 3 or (len(facts) < 40 and self._rng.random() < 0.4):
            return _put(self._rng.choice(AGENTS), f"f{number}", self._text(number))
        kinds: list[Callable[[list[ModelFact], int], Action]] = [
            self._update,
            self._update,
            self._delete,
            self._several,
            self._summarise,
            self._clear,
            self._import,
        ]
        weights = [8, 8, 8, 8, 3, 1, 1]
        return self._rng.choices(kinds, weights)[0](facts, number)

    def _text(self, number: int) -> str:
        # Some facts need several blocks of the disk, and large transactions keep their images aside.
        return f"Text {number}." + " More of it." * self._rng.choice([0, 0, 10, 100, 1_500])

    def _update(self, facts: list[ModelFact], number: int) -> Action:
        fact = self._rng.choice(facts)
        return _put(fact.agent, fact.fact_id, self._text(number), fact.revision)

    def _delete(self, facts: list[ModelFact], number: int) -> Action:
        agent, fact_id, *_ = self._rng.choice(facts)
        scope = Scope(HERE.user, AgentName(agent))
        return Action(
            f"{number}: delete {fact_id}",
            lambda repository: repository.delete_fact(scope, fact_id),
            lambda memory: memory.drop(agent, fact_id).committed(),
        )

    def _several(self, facts: list[ModelFact], number: int) -> Action:
        chosen = self._rng.sample(facts, min(len(facts), 5))
        gone, changed = chosen[:2], chosen[2:]
        texts = {fact: self._text(number) for fact in changed}
        new = self._text(number)
        changes = ChangeSet(
            upserts=(
                *(
                    Upsert(AgentName(fact.agent), FactDraft(text, id=FactId(fact.fact_id)), ANYTHING)
                    for fact, text in texts.items()
                ),
                Upsert(RESEARCH, FactDraft(new, id=FactId(f"f{number}"))),
            ),
            deletes=tuple(Delete(AgentName(fact.agent), FactId(fact.fact_id)) for fact in gone),
        )

        def model(memory: MemoryModel) -> MemoryModel:
            for fact, text in texts.items():
                memory = memory.put(fact.agent, fact.fact_id, text)
            for fact in gone:
                memory = memory.drop(fact.agent, fact.fact_id)
            return memory.put(RESEARCH, f"f{number}", new).committed()

        return Action(f"{number}: several", lambda repository: repository.apply_changes(USER, changes), model)

    def _summarise(self, _: list[ModelFact], number: int) -> Action:
        text = self._text(number)
        return Action(
            f"{number}: summary",
            lambda repository: repository.update_summaries(USER, {"user": {"topOfMind": {"summary": text}}}),
            lambda memory: memory.summarise("user", "topOfMind", text).committed(),
        )

    def _clear(self, facts: list[ModelFact], number: int) -> Action:
        agent = self._rng.choice(facts).agent
        scope = Scope(HERE.user, AgentName(agent))
        return Action(
            f"{number}: clear {agent}",
            lambda repository: repository.clear(scope),
            lambda memory: memory.drop(agent).committed(),
        )

    def _import(self, _: list[ModelFact], number: int) -> Action:
        texts = {f"f{number}x{each}": self._text(number) for each in range(5)}
        summary = f"Imported {number}."
        drafts = [FactDraft(text, id=FactId(fact_id)) for fact_id, text in texts.items()]
        summaries = Summaries.of({("history", "recentMonths"): Section(summary, "2026-01-01T00:00:00Z")})

        def model(memory: MemoryModel) -> MemoryModel:
            memory = memory.drop(DEFAULT_AGENT).without_summaries()
            for fact_id, text in texts.items():
                memory = memory.put(DEFAULT_AGENT, fact_id, text)
            return memory.summarise("history", "recentMonths", summary).committed()

        return Action(
            f"{number}: import", lambda repository: repository.replace_all(HERE, drafts, summaries), model
        )


def _put(agent: str, fact_id: str, text: str, expected: int | None = None) -> Action:
    scope = Scope(HERE.user, AgentName(agent))
    return Action(
        f"{'create' if expected is None else 'update'} {fact_id}",
        lambda repository: repository.upsert_fact(
            scope, FactDraft(text, id=FactId(fact_id)), expected=expected
        ),
        lambda memory: memory.put(agent, fact_id, text).committed(),
    )


class Found(NamedTuple):
    """Is what a store shows after an interruption: how far the stream came, and what is wrong."""

    revision: int
    problems: list[str]


def examine(root: Path, stream: Stream, acknowledged: int, begun: int) -> Found:
    """Recovers a store by opening it, and compares it with the memory after some prefix of the stream.

    Args:
        root: The storage root.
        stream: What was written.
        acknowledged: How many operations had returned.
        begun: How many had been called.
    """
    repository = MemoryRepository(root)
    fact_ids = {fact.fact_id for fact in stream.models[acknowledged].facts | stream.models[begun].facts}
    try:
        memory = observe(repository, USER, AGENTS, sorted(fact_ids)).model()
    except Exception as error:  # noqa: BLE001 - a recovery must not raise at all
        return Found(-1, [f"recovery raised {error!r}"])
    problems = []
    if not acknowledged <= memory.revision <= begun:
        problems.append(f"revision {memory.revision} where {acknowledged} to {begun} may be")
    elif memory != stream.models[memory.revision]:
        problems.append(f"revision {memory.revision} is not the memory that was written")
    problems += [
        f"check: {finding.path}: {finding.message}"
        for finding in check_store(repository).findings
        if finding.severity is Severity.ERROR
    ]
    return Found(memory.revision, problems)
