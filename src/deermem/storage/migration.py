"""Migrating from version 1: an ordinary transaction, after the backups (plan section 10)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Final, Literal

from deermem.errors import Corruption, MigrationError, UnsupportedFormat
from deermem.format.fact_markdown import decode_fact
from deermem.format.journal_json import Parts
from deermem.format.layout import QUARANTINE, fact_parts
from deermem.format.legacy_v1 import LegacyReference, Refusal
from deermem.format.strict_json import dump_document
from deermem.model.changes import ChangeSet, FactKey
from deermem.model.fact import Fact, FactDraft
from deermem.model.identity import DEFAULT_AGENT, AgentName, Scope
from deermem.model.migration import Candidate, adopted_summaries, migrated_facts
from deermem.model.timestamps import normalise_timestamp
from deermem.storage.agents import is_custom
from deermem.storage.bucket import Bucket, ManifestImage
from deermem.storage.copies import check_backup, put
from deermem.storage.fact_files import MAX_FACT_FILE_BYTES
from deermem.storage.legacy import LegacySource
from deermem.storage.opening import trusted
from deermem.storage.transaction import Committed

OnInvalid = Literal["fail", "quarantine"]

LEAD_AGENT: Final = AgentName("lead-agent")
REFUSED_FILE: Final = "refused-facts.json"


@dataclass(frozen=True, slots=True)
class RefusedValue:
    """Is what cannot become part of a version-2 memory, and where it was found."""

    path: str
    place: str
    field: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {'.'.join(filter(None, (self.place, self.field)))} {self.reason}"


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """Says what a migration would change: nothing is written yet."""

    base: ManifestImage
    sources: tuple[LegacySource, ...]
    changes: ChangeSet
    found: int
    refused: tuple[RefusedValue, ...]


@dataclass(frozen=True, slots=True)
class Migrated:
    """Reports a migration of one user: its transaction, and what was left out with `quarantine`."""

    plan: MigrationPlan
    committed: Committed
    quarantine: str | None = None


def plan_migration(
    bucket: Bucket, base: ManifestImage, sources: Sequence[LegacySource], now: str
) -> MigrationPlan:
    """Decides what becomes of files of version 1; reads, and writes nothing.

    Raises:
        MigrationError: What a file says contradicts what is stored.
        Corruption: A file that is needed cannot be trusted.
    """
    candidates: list[Candidate] = []
    refused: list[RefusedValue] = []
    summaries = base.manifest.summaries
    for source in sources:
        check_backup(bucket, source.parts, source.data)
        found, left_out = candidates_of(bucket, source)
        candidates += found
        refused += left_out
        if source.parts != (bucket.manifest_name,):
            path = bucket.path_of(source.parts)
            summaries = adopted_summaries(summaries, source.document.summaries, path)
    present = _read_present(bucket, candidates)
    upserts = migrated_facts(bucket.user, candidates, present, now)
    changes = ChangeSet(upserts=upserts, least_revision=base.manifest.revision + 1)
    manifest = replace(base.manifest, summaries=summaries)
    return MigrationPlan(
        base._replace(manifest=manifest), tuple(sources), changes, len(candidates), tuple(refused)
    )


def candidates_of(bucket: Bucket, source: LegacySource) -> tuple[list[Candidate], list[RefusedValue]]:
    """Returns the facts of a version-1 file, and what cannot become part of a version-2 memory."""
    path = bucket.path_of(source.parts)
    document = source.document
    refused = [_refused(path, refusal) for refusal in document.refusals]
    candidates = [
        Candidate(source.agent, path, fact.place, fact.draft, fact.titled) for fact in document.facts
    ]
    for reference in document.references:
        read = _read_reference(bucket, source, reference)
        if isinstance(read, Candidate):
            candidates.append(read)
        else:
            refused.append(read)
    return candidates, refused


def _refused(path: str, refusal: Refusal) -> RefusedValue:
    return RefusedValue(path, refusal.place, refusal.field, refusal.reason, refusal.text)


def _read_present(bucket: Bucket, candidates: Iterable[Candidate]) -> dict[FactKey, Fact | None]:
    present: dict[FactKey, Fact | None] = {}
    for key in dict.fromkeys(candidate.key for candidate in candidates):
        stored = bucket.read_fact(Scope(bucket.user, key[0]), key[1])
        present[key] = None if stored is None else stored.fact
    return present


def _read_reference(
    bucket: Bucket, source: LegacySource, reference: LegacyReference
) -> Candidate | RefusedValue:
    """Reads a fact that a version-1 file does not hold itself but names the file of."""
    path = bucket.path_of(source.parts)
    parts = (*source.parts[:-1], *reference.parts)
    scope = Scope(bucket.user, source.agent)

    def refused(reason: str) -> RefusedValue:
        text = json.dumps({"path": "/".join(reference.parts), "contentHash": reference.content_hash})
        return RefusedValue(path, reference.place, "path", reason, text)

    try:
        with bucket.directory_at(parts[:-1]) as directory, trusted():
            data, _ = directory.read(parts[-1], MAX_FACT_FILE_BYTES)
        fact = decode_fact(data, path=bucket.path_of(parts), scope=scope, fact_id=reference.fact_id)
        draft = _as_draft(fact)
    except FileNotFoundError:
        return refused("leads to a file that is not there")
    except (Corruption, UnsupportedFormat) as error:
        return refused(f"leads to a file that cannot be read: {error}")
    digest = sha256(data).hexdigest()
    if reference.content_hash and reference.content_hash.removeprefix("sha256:").lower() != digest:
        return refused("leads to a file with another content than contentHash says")
    return Candidate(source.agent, path, reference.place, draft)


def quarantine_refused(
    bucket: Bucket, plan: MigrationPlan, operation: str, now: str, on_invalid: OnInvalid
) -> str | None:
    """Keeps what cannot be migrated, verbatim, in a file of its own; returns its path.

    Raises:
        MigrationError: There is something, and it is not to be left out; nothing was written.
    """
    if not plan.refused:
        return None
    if on_invalid == "fail":
        first = plan.refused[0]
        more = f" (and {len(plan.refused) - 1} more)" if len(plan.refused) > 1 else ""
        where = ".".join(filter(None, (first.place, first.field)))
        raise MigrationError(first.path, f"{where} {first.reason}{more}")
    entries = [asdict(value) for value in plan.refused]
    parts: Parts = (QUARANTINE, now.replace(":", "-"), REFUSED_FILE)
    put(bucket, operation, parts, dump_document({"format": 1, "refused": entries}))
    return bucket.path_of(parts)


def plan_adoption(bucket: Bucket, now: str) -> ChangeSet | None:
    """Says how the facts of `lead-agent` become the default agent's; `None` if there are none to move.

    One with a `config.yaml` is a custom agent like any other.

    Raises:
        MigrationError: The default agent has a fact with the same id that says something else.
    """
    if is_custom(bucket, LEAD_AGENT):
        return None
    scope = Scope(bucket.user, LEAD_AGENT)
    facts = [stored.fact for stored in bucket.read_facts(scope, {}, None).values()]
    if not facts:
        return None
    candidates = [
        Candidate(DEFAULT_AGENT, bucket.path_of(fact_parts(LEAD_AGENT, fact.id)), "it", _as_draft(fact))
        for fact in facts
    ]
    upserts = migrated_facts(bucket.user, candidates, _read_present(bucket, candidates), now)
    return ChangeSet(upserts=upserts, clears=frozenset([LEAD_AGENT]))


def _as_draft(fact: Fact) -> FactDraft:
    created_at = normalise_timestamp(fact.created_at, "createdAt")
    return replace(fact.draft(), id=fact.id, created_at=created_at)
