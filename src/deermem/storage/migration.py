"""Migrating from version 1: an ordinary transaction, after the backups (plan section 10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Final, Literal

from deermem.errors import MigrationError
from deermem.format.journal_json import Parts
from deermem.format.layout import fact_parts
from deermem.format.legacy_v1 import Refusal
from deermem.format.strict_json import dump_document
from deermem.model.changes import ChangeSet, FactKey
from deermem.model.fact import Fact
from deermem.model.identity import DEFAULT_AGENT, AgentName, Scope
from deermem.model.migration import Candidate, adopted_summaries, migrated_facts
from deermem.model.resolution import NO_FENCES, Fences
from deermem.storage.agents import is_custom
from deermem.storage.bucket import Bucket, ManifestImage
from deermem.storage.copies import backup_parts, check_backup, put
from deermem.storage.legacy import LegacySource
from deermem.storage.legacy_references import Referred, as_draft, aside_parts, follow
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
    """Says what a migration would change: nothing is written yet.

    `leaving` are files, and what they hold, that lie where they would be taken for facts and are none.
    """

    base: ManifestImage
    sources: tuple[LegacySource, ...]
    changes: ChangeSet
    found: int
    refused: tuple[RefusedValue, ...]
    leaving: tuple[tuple[Parts, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Migrated:
    """Reports a migration of one user: its transaction, and what was left out with `quarantine`.

    `set_aside` are the copies of files that had lain where they would be taken for facts.
    """

    plan: MigrationPlan
    committed: Committed
    quarantine: str | None = None
    set_aside: tuple[str, ...] = ()


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
    leaving: dict[Parts, bytes] = {}
    summaries = base.manifest.summaries
    fences = bucket.read_fences() if sources else NO_FENCES
    for source in sources:
        _check_new(bucket, fences, source)
        referred = list(follow(bucket, source))
        found, left_out = candidates_of(bucket, source, referred)
        candidates += found
        refused += left_out
        leaving.update((each.parts, each.leaves) for each in referred if each.leaves is not None)
        if source.parts != (bucket.manifest_name,):
            path = bucket.path_of(source.parts)
            summaries = adopted_summaries(summaries, source.document.summaries, path)
    for candidate in candidates:
        if fact_parts(*candidate.key) in leaving:
            reason = f"{candidate.place} has the file that another reference leads to, which is not sound"
            raise MigrationError(candidate.path, reason)
    present = _read_present(bucket, candidates)
    upserts = migrated_facts(bucket.user, candidates, present, now)
    changes = ChangeSet(upserts=upserts, least_revision=base.manifest.revision + 1)
    manifest = replace(base.manifest, summaries=summaries)
    return MigrationPlan(
        base._replace(manifest=manifest),
        tuple(sources),
        changes,
        len(candidates),
        tuple(refused),
        tuple(sorted(leaving.items())),
    )


def _check_new(bucket: Bucket, fences: Fences, source: LegacySource) -> None:
    """Makes sure that a file was not migrated before: what was deleted since would come back with it.

    Raises:
        MigrationError: It was, or another backup is in the way.
    """
    is_backed_up = check_backup(bucket, source.parts, source.data)
    digest = sha256(source.data).hexdigest()
    if is_backed_up and fences.migrated.get("/".join(source.parts)) == digest:
        backup = bucket.path_of(backup_parts(source.parts))
        reason = (
            "was migrated before and came back, over what was made of it; facts that were deleted since "
            "would come back with it. Restore a backup of version 2, or, to migrate it once more, move "
            f"{backup} away"
        )
        raise MigrationError(bucket.path_of(source.parts), reason)


def candidates_of(
    bucket: Bucket, source: LegacySource, referred: Iterable[Referred]
) -> tuple[list[Candidate], list[RefusedValue]]:
    """Returns the facts of a version-1 file, and what cannot become part of a version-2 memory.

    `referred` is where the file's references lead.
    """
    path = bucket.path_of(source.parts)
    document = source.document
    refused = [_refused(path, refusal) for refusal in document.refusals]
    candidates = [
        Candidate(source.agent, path, fact.place, fact.draft, fact.titled) for fact in document.facts
    ]
    for each in referred:
        place = each.reference.place
        if each.draft is None:
            refused.append(RefusedValue(path, place, "path", each.reason, each.text))
        else:
            candidates.append(Candidate(source.agent, path, place, each.draft))
    return candidates, refused


def _refused(path: str, refusal: Refusal) -> RefusedValue:
    return RefusedValue(path, refusal.place, refusal.field, refusal.reason, refusal.text)


def _read_present(bucket: Bucket, candidates: Iterable[Candidate]) -> dict[FactKey, Fact | None]:
    present: dict[FactKey, Fact | None] = {}
    for key in dict.fromkeys(candidate.key for candidate in candidates):
        stored = bucket.read_fact(Scope(bucket.user, key[0]), key[1])
        present[key] = None if stored is None else stored.fact
    return present


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
    parts = aside_parts(now, (REFUSED_FILE,))
    put(bucket, operation, parts, dump_document({"format": 1, "refused": entries}))
    return bucket.path_of(parts)


def set_aside(bucket: Bucket, plan: MigrationPlan, operation: str, now: str) -> tuple[str, ...]:
    """Keeps copies, verbatim, of the files that leave; returns their paths."""
    copies = []
    for parts, data in plan.leaving:
        target = aside_parts(now, parts)
        put(bucket, operation, target, data)
        copies.append(bucket.path_of(target))
    return tuple(copies)


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
        Candidate(DEFAULT_AGENT, bucket.path_of(fact_parts(LEAD_AGENT, fact.id)), "it", as_draft(fact))
        for fact in facts
    ]
    upserts = migrated_facts(bucket.user, candidates, _read_present(bucket, candidates), now)
    return ChangeSet(upserts=upserts, clears=frozenset([LEAD_AGENT]))
