"""Explaining where a memory lies and what state it is in, from what is on disk; nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from deermem.errors import Corruption, LegacyFormat, UnsupportedFormat
from deermem.format.journal_json import MAX_JOURNAL_BYTES, Journal, decode_journal
from deermem.format.layout import (
    ERASED,
    FENCES,
    JOURNAL,
    LOCK,
    RECOVERY,
    bucket_parts,
    erasure_name,
    facts_parts,
    legacy_parts,
)
from deermem.format.legacy_journal import decode_legacy_journal
from deermem.model.identity import Scope
from deermem.model.manifest import MANIFEST_VERSION
from deermem.model.resolution import NO_FENCES, Fences
from deermem.storage.access import BucketAccess
from deermem.storage.bucket import Bucket
from deermem.storage.cache import Token
from deermem.storage.erasures import erased_at
from deermem.storage.legacy import legacy_agents
from deermem.storage.opening import trusted

Problem = Corruption | UnsupportedFormat


@dataclass(slots=True)
class Explanation:
    """Describes one scope as it lies on disk; paths are below the storage root.

    `None` stands for what is not there, and for what cannot be read if `problems` names its file.

    Attributes:
        version: That of `memory.json`: "2.0", or "1.0" for one that is still to be migrated.
        token: What a cached state of the memory is compared with.
        journal: What becomes of an interrupted transaction, in a sentence.
        legacy: The files of version 1 that the next access of their agent migrates.
        facts: How many fact files the agent has.
        erased: The revision at which the user was erased last, 0 if never.
    """

    scope: Scope
    bucket_exists: bool
    paths: dict[str, str]
    version: str | None = None
    revision: int | None = None
    last_updated: str | None = None
    token: Token | None = None
    journal: str | None = None
    legacy: list[str] = field(default_factory=list)
    facts: int | None = None
    fences: Fences = NO_FENCES
    erased: int = 0
    problems: list[Problem] = field(default_factory=list)


def explain(access: BucketAccess, scope: Scope) -> Explanation:
    """Looks at the files of a scope without a lock; what a writer does meanwhile may show half."""
    with access.opened(scope.user) as bucket:
        found = Explanation(scope, bucket is not None, _paths(access, scope))
        looks = [] if bucket is None else [partial(look, bucket, found) for look in _LOOKS]
        for look in (*looks, partial(_look_at_erasure, access, found)):
            try:
                look()
            except (Corruption, UnsupportedFormat) as problem:
                found.problems.append(problem)
    return found


def _paths(access: BucketAccess, scope: Scope) -> dict[str, str]:
    """Returns where each file is, or would be."""

    def at(*parts: str) -> str:
        return "/".join((*bucket_parts(scope.user), *parts)) or "."

    return {
        "directory": at(),
        "manifest": at(access.manifest_name),
        "lock": at(LOCK),
        "journal": at(JOURNAL),
        "fences": at(FENCES),
        "staged": at(RECOVERY),
        "facts": at(*facts_parts(scope.agent)),
        "erasure": f"{ERASED}/{erasure_name(scope.user)}",
    }


def _look_at_manifest(bucket: Bucket, found: Explanation) -> None:
    try:
        image = bucket.read_manifest()
    except LegacyFormat as legacy:
        found.version = legacy.found
        found.legacy.append(bucket.path_of((bucket.manifest_name,)))
        return
    if image.identity is not None:
        found.version = MANIFEST_VERSION
        found.revision, found.last_updated = image.manifest.revision, image.manifest.last_updated
        found.token = Token.of(image)


def _look_at_journal(bucket: Bucket, found: Explanation) -> None:
    path = bucket.path_of((JOURNAL,))
    try:
        with trusted():
            data, _ = bucket.directory.read(JOURNAL, MAX_JOURNAL_BYTES)
    except FileNotFoundError:
        return
    found.journal = "cannot be read"
    try:
        journal = decode_journal(data, path, bucket.manifest_name)
    except LegacyFormat:
        legacy = decode_legacy_journal(data, path)
        done = "it is complete and the journal goes" if legacy.committed else "it is rolled back"
        revisions = f"from revision {legacy.expected_revision} to {legacy.next_revision}"
        found.journal = f"a change of the predecessor {revisions}: on the next access {done}"
    else:
        found.journal = _told(journal, bucket.manifest_on_disk()[1])


def _told(journal: Journal, revision: int | None) -> str:
    """Says what becomes of a journal beside a `memory.json` at a revision."""
    change = f"a change from revision {journal.base_revision} to {journal.revision}"
    if revision is not None and revision >= journal.revision:
        return f"{change}: it is complete, the journal goes on the next access"
    if revision is not None and revision != journal.base_revision:
        return f"{change}: it fits no memory.json of revision {revision}, and every access fails"
    files = f"{len(journal.images)} written, {len(journal.deletes)} removed"
    return f"{change}: the next access completes it (files beside memory.json: {files})"


def _look_at_legacy(bucket: Bucket, found: Explanation) -> None:
    for agent in legacy_agents(bucket):
        found.legacy.append(bucket.path_of(legacy_parts(agent, bucket.manifest_name)))


def _look_at_facts(bucket: Bucket, found: Explanation) -> None:
    found.facts = len(bucket.list_facts(found.scope.agent))


def _look_at_fences(bucket: Bucket, found: Explanation) -> None:
    found.fences = bucket.read_fences()


def _look_at_erasure(access: BucketAccess, found: Explanation) -> None:
    found.erased = erased_at(access.file_system, found.scope.user)


_LOOKS: Final = (_look_at_manifest, _look_at_journal, _look_at_legacy, _look_at_facts, _look_at_fences)
