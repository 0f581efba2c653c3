"""Replaces a memory that is there by that of a backup: one ordinary transaction, above both revisions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from deermem.errors import ArchiveError, Corruption, UnsupportedFormat
from deermem.format.fact_markdown import decode_fact
from deermem.format.layout import FENCES, parse_fact_parts
from deermem.format.manifest_json import decode_manifest
from deermem.maintenance.archive import Parts, member_name
from deermem.maintenance.placing import put_if_missing
from deermem.model.changes import ANYTHING, ChangeSet, Delete, Upsert
from deermem.model.fact import Fact
from deermem.model.identity import AgentName, FactId, Scope, UserId
from deermem.model.manifest import NO_MANIFEST, Manifest
from deermem.model.summaries import SummaryPatch
from deermem.storage.engine import Engine
from deermem.storage.view import View

FactKey = tuple[AgentName, FactId]


@dataclass(slots=True)
class Replacement:
    """Collects what an archive has of a user; it is as large as the transaction that it becomes.

    `floor` is the revision at which the user was erased, 0 for one who was not.
    """

    user: UserId
    manifest_name: str
    floor: int = 0
    manifest: Manifest = NO_MANIFEST
    facts: dict[FactKey, Fact] = field(default_factory=dict)
    beside: list[tuple[Parts, bytes]] = field(default_factory=list)

    def takes(self, parts: Parts, data: bytes) -> bool:
        """Takes a file that belongs to the memory; tells whether it did.

        Raises:
            ArchiveError: The file cannot be read, or is of version 1.
        """
        name = member_name(self.user.bucket, parts)
        key = parse_fact_parts(parts)
        try:
            if key is not None:
                scope = Scope(self.user, key[0])
                self.facts[key] = decode_fact(data, path=name, scope=scope, fact_id=key[1])
            elif parts == (self.manifest_name,):
                self.manifest = decode_manifest(data, name)
        except (Corruption, UnsupportedFormat) as error:
            raise ArchiveError(name, f"cannot replace a memory: {error}") from None
        return key is not None or parts in ((self.manifest_name,), (FENCES,))

    def changes(self, view: View) -> ChangeSet:
        """Returns the change set that makes a memory say what the archive says."""
        upserts: list[Upsert] = []
        deletes: list[Delete] = []
        agents = {agent for agent, _ in self.facts} | set(view.agents())
        for agent in sorted(agents):
            present = view.snapshot(Scope(self.user, agent)).by_id
            for fact_id, fact in self._facts_of(agent):
                found = present.get(fact_id)
                renew = found is None or not found.same_meaning(fact)
                upserts.append(Upsert(agent, fact.draft(), ANYTHING, renew=renew))
            deletes.extend(
                Delete(agent, fact_id) for fact_id in present if (agent, fact_id) not in self.facts
            )
        return ChangeSet(
            upserts=tuple(upserts),
            deletes=tuple(deletes),
            summaries=SummaryPatch.replace_all(self.manifest.summaries),
            least_revision=max(view.manifest.revision, self.manifest.revision, self.floor) + 1,
            fences_all=True,
            keeps="restore",
        )

    def _facts_of(self, agent: AgentName) -> Iterable[tuple[FactId, Fact]]:
        return [(fact_id, fact) for (of, fact_id), fact in self.facts.items() if of == agent]


def put_beside(engine: Engine, user: UserId, parts: Parts, data: bytes) -> None:
    """Puts a file that is not of the memory itself where its name is free; a stray copy of a fact is none."""
    if len(parts) < 5:
        with engine.maintenance(user) as bucket:
            put_if_missing(bucket, engine.stamps.operation(), parts, data)
