"""Deciding what a migration from version 1 changes (plan section 10).

A migration never takes anything away: a fact that is there already, and says the same, stays as it
is; one that says something else, or a summary that does, stops the migration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from deermem.errors import MigrationError
from deermem.model.changes import ABSENT, FactKey, Upsert
from deermem.model.fact import Fact, FactDraft, next_fact
from deermem.model.identity import AgentName, FactId, Scope, UserId
from deermem.model.summaries import EMPTY_SECTION, Section, SectionKey, Summaries


@dataclass(frozen=True, slots=True)
class Candidate:
    """Is a fact of a version-1 file: where it was found, and what it becomes.

    `titled` tells whether the file gave a title; a derived one is no difference to a fact that is there.
    """

    agent: AgentName
    path: str
    place: str
    draft: FactDraft
    titled: bool = True

    @property
    def key(self) -> FactKey:
        """Where the fact goes."""
        return self.agent, FactId(self.draft.id or "")


def adopted_summaries(base: Summaries, adopted: Summaries, path: str) -> Summaries:
    """Returns the summaries with those that an agent's file had of its own.

    Raises:
        MigrationError: Both have a text and the two differ.
    """
    merged: dict[SectionKey, Section] = dict(base.sections)
    for key, section in adopted.sections.items():
        present = base.sections.get(key, EMPTY_SECTION)
        if not section.summary.strip() or present.summary == section.summary:
            continue
        if present.summary.strip():
            name = ".".join(key)
            raise MigrationError(path, f"{name} differs from the {name} of the user's memory.json")
        merged[key] = section
    return Summaries.of(merged)


def migrated_facts(
    user: UserId, candidates: Iterable[Candidate], present: Mapping[FactKey, Fact | None], now: str
) -> tuple[Upsert, ...]:
    """Returns the facts to write; those that are there already are left out.

    Args:
        user: Whose facts they are.
        candidates: What the version-1 files hold.
        present: The facts with the same ids, as they are stored; an entry for each candidate.
        now: The time of the migration, as stored.

    Raises:
        MigrationError: A fact with the same id says something else.
    """
    upserts: dict[FactKey, Upsert] = {}
    coming: dict[FactKey, Fact] = {}
    for candidate in candidates:
        scope = Scope(user, candidate.agent)
        there = present[candidate.key] or coming.get(candidate.key)
        draft = candidate.draft
        if there is None:
            upserts[candidate.key] = Upsert(candidate.agent, draft, ABSENT)
            coming[candidate.key] = next_fact(draft, scope, now, None)
            continue
        if not candidate.titled:
            draft = replace(draft, title=there.title)
        if next_fact(draft, scope, now, there) is not there:
            raise MigrationError(
                candidate.path,
                f"{candidate.place} says something else than the fact {there.id} that is there already",
            )
    return tuple(upserts.values())
