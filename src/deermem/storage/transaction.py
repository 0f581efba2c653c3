"""The transaction: the one way in which anything in a user bucket changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from deermem.errors import CommitInDoubt, Corruption, FactConflict, InvalidInputError
from deermem.format.fact_markdown import decode_fact, encode_fact
from deermem.format.fences_json import encode_fences
from deermem.format.journal_json import Journal, Parts
from deermem.format.layout import FACT_SUFFIX, FENCES, RECOVERY, SAFETY, fact_parts, facts_parts
from deermem.format.manifest_json import encode_manifest
from deermem.model.changes import ChangeSet
from deermem.model.fact import Fact
from deermem.model.hand_edits import differs, is_hand_edit
from deermem.model.identity import AgentName, FactId, Scope
from deermem.model.resolution import NO_FENCES, Before, Resolution, resolve
from deermem.storage.agents import agent_files
from deermem.storage.bucket import (
    Bucket,
    FactFile,
    ManifestImage,
    StoredFact,
)
from deermem.storage.copies import NOTHING, Superseded, back_up
from deermem.storage.journal import (
    Staged,
    apply,
    discard,
    is_below_agents,
    prepare_shards,
    publish,
    stage,
    withdraw,
)
from deermem.storage.known_facts import KnownFact
from deermem.storage.opening import refuse_devices
from deermem.storage.port import Directory
from deermem.storage.recovery import recover
from deermem.storage.safety import keep_aside

_log = logging.getLogger(__name__)

FindKnown = Callable[[Scope, FactId], KnownFact | None]


@dataclass(frozen=True, slots=True)
class Committed:
    """Reports a transaction: the manifest before and after it, and the identities of new files.

    Both manifests are the same object when there was nothing to commit.
    """

    resolution: Resolution
    base: ManifestImage
    image: ManifestImage
    written: tuple[StoredFact, ...] = ()


def commit(  # noqa: PLR0913 - a transaction gets all that it knows of the world from its caller
    bucket: Bucket,
    base: ManifestImage,
    changes: ChangeSet,
    *,
    now: str,
    operation: str,
    known_fact: FindKnown,
    superseded: Superseded = NOTHING,
    erased_at: int = 0,
    undo_days: int = 0,
) -> Committed:
    """Commits a change set as a whole, or changes nothing.

    The caller holds the user's lock, has recovered the bucket and has read `base` under the lock.

    Args:
        bucket: The user's bucket.
        base: `memory.json` as it is.
        changes: What to change.
        now: The time of the commit, as stored.
        operation: 32 hex digits that no other transaction has.
        known_fact: Tells what this process last saw of a fact, so that an edit made by hand since
            then is a conflict and is not overwritten.
        superseded: What this transaction takes the place of. The fences note files of version 1.
        erased_at: The revision at which the user was erased before this memory began, else 0.
        undo_days: How long safety copies are kept; 0 keeps none.

    Raises:
        RevisionConflict: A precondition does not hold; nothing was written.
        Corruption: A file that is addressed cannot be trusted; nothing was written.
        MigrationError: A backup of another content is in the way; nothing was written.
        CommitInDoubt: The disk failed after the commit point; the next access completes the change.
        OSError: The disk failed before the commit point; nothing of the change is visible.
    """
    listed = _list_cleared(bucket, changes)
    before = _read_before(bucket, base, changes, listed, known_fact)
    if erased_at:
        before = replace(before, erased_at=erased_at, fences=bucket.read_fences())
    resolution = resolve(changes, before, now)
    if superseded.sources:
        fences = resolution.fences or bucket.read_fences()
        resolution = replace(resolution, fences=fences.noting(superseded.digests()))
    if resolution.manifest is base.manifest:
        return Committed(resolution, base, base)
    files = _encode_files(resolution)
    manifest = ((bucket.manifest_name,), encode_manifest(resolution.manifest))
    revisions = (base.manifest.revision, resolution.manifest.revision)
    side_files = {parts for agent in changes.removes for parts in agent_files(bucket, agent)}
    side_files |= superseded.removed() - {parts for parts, _ in files}
    deletes = (*sorted(side_files), *_paths_to_delete(resolution, listed))
    if changes.keeps:
        manifests = (base.manifest, resolution.manifest)
        aside = keep_aside(bucket, changes.keeps, manifests, files, deletes, now=now, days=undo_days)
        files, deletes = [*files, *aside.files], (*deletes, *aside.deletes)
    if changes.undoes:
        deletes = (*deletes, (SAFETY, changes.undoes))
    staged = write_all(bucket, operation, revisions, files, manifest, deletes, superseded)
    return _report(resolution, base, staged, manifest)


def write_all(
    bucket: Bucket,
    operation: str,
    revisions: tuple[int, int],
    files: Sequence[tuple[Parts, bytes]],
    manifest: tuple[Parts, bytes],
    deletes: tuple[Parts, ...],
    superseded: Superseded = NOTHING,
    *,
    replaces_journal: bool = False,
) -> Staged:
    """Writes new images and removes files, all or nothing: the steps of every transaction on disk.

    Args:
        bucket: The user's bucket, whose lock is held.
        operation: 32 hex digits that no other transaction has.
        revisions: The manifest revision on disk, 0 where it has none, and that of the new manifest.
        files: Paths below the bucket and what they shall hold.
        manifest: The same for `memory.json`, which comes last.
        deletes: The files to remove.
        superseded: What this takes the place of, see `commit`.
        replaces_journal: Whether there is a journal of the predecessor, whose place this one takes. Then
            it is not taken back where its name could not be made durable: the other is gone.
    """
    prepare_shards(bucket, dict.fromkeys(parts[:-1] for parts, _ in files if is_below_agents(parts)))
    if any(parts[0] == SAFETY for parts, _ in files):
        with bucket.directory_at((SAFETY,), make=True):
            pass  # the sync of the bucket at the commit point makes it durable
    for directory in dict.fromkeys(parts[:-1] for parts in (*(parts for parts, _ in files), *deletes)):
        _check_changeable(bucket, directory)
    back_up(bucket, operation, superseded.sources)
    with bucket.directory_at((RECOVERY,), make=True) as recovery:
        try:
            staged = stage(recovery, operation, revisions, files, manifest, deletes, superseded.base)
            _promise(bucket, recovery, staged, may_withdraw=not replaces_journal)
        except BaseException:
            discard(recovery, operation)
            raise
        try:
            apply(bucket, recovery, staged.journal)
        except OSError as error:
            _roll_forward(bucket, staged.journal, error)
    return staged


def check_first(resolution: Resolution, *, windows_names: bool) -> None:
    """Makes sure that a user's first transaction can be written, before a bucket is made for it.

    Raises:
        InvalidInputError: It cannot.
    """
    if windows_names:
        for fact in resolution.written:
            refuse_devices(fact.scope.agent, fact.id)
    _encode_files(resolution)
    encode_manifest(resolution.manifest)


def _check_changeable(bucket: Bucket, parts: Parts) -> None:
    """Makes sure that names in a directory can be changed, before that is promised."""
    with suppress(FileNotFoundError), bucket.directory_at(parts) as directory:
        directory.check_changeable()


def _promise(bucket: Bucket, recovery: Directory, staged: Staged, *, may_withdraw: bool) -> None:
    """Passes the commit point, or leaves no journal behind."""
    try:
        publish(bucket, recovery, staged)
    except BaseException as error:
        if not may_withdraw:
            raise CommitInDoubt(staged.journal.revision, str(error)) from error
        try:
            withdraw(bucket)
        except OSError as worse:
            raise CommitInDoubt(staged.journal.revision, str(worse)) from error
        raise


def _roll_forward(bucket: Bucket, journal: Journal, error: OSError) -> None:
    """Completes a promised transaction from its journal after the disk failed once."""
    _log.warning("applying revision %d of %s failed (%s); trying again", journal.revision, bucket.user, error)
    try:
        recover(bucket)
    except OSError as worse:
        raise CommitInDoubt(journal.revision, str(worse)) from error


def _list_cleared(bucket: Bucket, changes: ChangeSet) -> dict[AgentName, list[FactFile]]:
    agents = bucket.agents() if changes.clear_all else sorted(changes.emptied)
    return {agent: bucket.list_facts(agent) for agent in agents}


def _read_before(
    bucket: Bucket,
    base: ManifestImage,
    changes: ChangeSet,
    listed: dict[AgentName, list[FactFile]],
    known_fact: FindKnown,
) -> Before:
    facts: dict[tuple[AgentName, FactId], Fact | None] = {}
    adopted = {upsert.key for upsert in changes.upserts if upsert.renew}
    for agent, fact_id in changes.fact_keys():
        scope = Scope(bucket.user, agent)
        stored = bucket.read_fact(scope, fact_id)
        known = known_fact(scope, fact_id)
        if stored is not None and known is not None and (agent, fact_id) not in adopted:
            _refuse_hand_edit(*known, stored.fact, base)
        facts[agent, fact_id] = None if stored is None else stored.fact
    stale = changes.expected_manifest_revision not in (None, base.manifest.revision)
    clears = bool(changes.emptied) or changes.clear_all or changes.fences_all
    return Before(
        user=bucket.user,
        manifest=base.manifest,
        facts=facts,
        listed={agent: tuple({file.fact_id: None for file in files}) for agent, files in listed.items()},
        fences=bucket.read_fences() if stale or clears else NO_FENCES,
    )


def _refuse_hand_edit(known: Fact, seen_under: ManifestImage, present: Fact, base: ManifestImage) -> None:
    """Makes sure that a fact was not changed by hand since this process saw it.

    While `memory.json` is the same no commit can have changed it, so any difference is an edit.
    """
    edited = differs if seen_under.data == base.data else is_hand_edit
    if edited(known, present):
        raise FactConflict(known.id, known.revision, present.revision, known.content, present.content)


def _encode_files(resolution: Resolution) -> list[tuple[Parts, bytes]]:
    files = [(fact_parts(fact.scope.agent, fact.id), _encode_readable(fact)) for fact in resolution.written]
    files.sort()
    if resolution.fences is not None:
        files.append(((FENCES,), encode_fences(resolution.fences)))
    return files


def _encode_readable(fact: Fact) -> bytes:
    """Encodes a fact and makes sure that it can be read again: nothing a caller passes wedges a store."""
    data = encode_fact(fact)
    try:
        if decode_fact(data, path=fact.id, scope=fact.scope, fact_id=fact.id).same_meaning(fact):
            return data
        reason = "it would read back as something else"
    except Corruption as error:
        reason = error.reason
    raise InvalidInputError(f"fact {fact.id}", f"cannot be stored: {reason}")


def _paths_to_delete(resolution: Resolution, listed: dict[AgentName, list[FactFile]]) -> tuple[Parts, ...]:
    """Returns the files to remove, those that a clear found in a wrong shard included."""
    paths = {fact_parts(agent, fact_id) for agent, fact_id in resolution.deleted}
    for agent in resolution.cleared:
        for file in listed.get(agent, ()):
            paths.add((*facts_parts(agent), file.shard, file.fact_id + FACT_SUFFIX))
    return tuple(sorted(paths))


def _report(
    resolution: Resolution, base: ManifestImage, staged: Staged, manifest: tuple[Parts, bytes]
) -> Committed:
    image = ManifestImage(resolution.manifest, manifest[1], staged.identities[manifest[0]])
    written = tuple(
        StoredFact(fact, staged.identities[fact_parts(fact.scope.agent, fact.id)])
        for fact in resolution.written
    )
    return Committed(resolution, base, image, written)
