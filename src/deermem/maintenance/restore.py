"""Restoring a backup: byte for byte where nothing is, as an ordinary transaction where somebody is."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import BinaryIO, Final, NamedTuple

from deermem.errors import ArchiveError, Corruption, InvalidInputError, RestoreConflict, UnsupportedFormat
from deermem.maintenance.archive import Entry, Header, Parts, UserEntry, is_agents_own, member_name
from deermem.maintenance.archive_contents import ArchivedFile, ArchivedUser, read_header, walk
from deermem.maintenance.backup import MAX_PROBLEMS, problem_of
from deermem.maintenance.bucket_files import list_files, read_file
from deermem.maintenance.placing import Placing, empty_bucket
from deermem.maintenance.replacing import Replacement, put_beside
from deermem.maintenance.saving import complete, without_manifest
from deermem.repository import MemoryRepository
from deermem.storage.bucket import Bucket
from deermem.storage.engine import Engine
from deermem.storage.erasures import erased_at

_SHOWN: Final = 20


class OnConflict(StrEnum):
    """Says what becomes of users who have another memory than the archive has of them."""

    FAIL = "fail"
    SKIP = "skip"
    OVERWRITE = "overwrite"


class Fate(StrEnum):
    """Says what a restore does, or did, with a user."""

    RESTORE = "restored"
    THERE = "already there"
    SKIP = "skipped"
    REPLACE = "replaced"
    RENEW = "restored at a new revision"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Selection:
    """Says what of an archive to restore; `buckets` is `None` for all users."""

    buckets: Collection[str | None] | None = None
    with_agents: bool = False

    def has(self, bucket: str | None) -> bool:
        """Tells whether a user is selected."""
        return self.buckets is None or bucket in self.buckets

    def takes(self, parts: Parts) -> bool:
        """Tells whether a file of a selected user is restored."""
        return self.with_agents or not is_agents_own(parts)


class PlannedUser(NamedTuple):
    """Says what becomes of a user; `manifest` is the SHA-256 of the archive's `memory.json`."""

    entry: UserEntry
    fate: Fate
    manifest: str | None

    def is_overwritten(self, on_conflict: OnConflict) -> bool:
        """Tells whether another memory than the archive's is there and goes."""
        return self.fate is Fate.REPLACE and on_conflict is OnConflict.OVERWRITE


@dataclass(slots=True)
class RestorePlan:
    """Is what a restore would do: the archive was read from end to end, and nothing was written.

    `left_out` has the users who cannot be on this file system, with the reason. That a file system takes
    two of the archive's users for one shows only once one of them is there, so a restore may add to it.
    """

    header: Header
    selection: Selection
    users: dict[str | None, PlannedUser] = field(default_factory=dict)
    problems: list[Corruption | UnsupportedFormat] = field(default_factory=list)
    left_out: dict[str | None, InvalidInputError] = field(default_factory=dict)

    def leave_out(self, planned: PlannedUser, error: InvalidInputError) -> None:
        """Notes that a user cannot be here; raises the reason if this very user was asked for."""
        if self.selection.buckets is not None:
            raise error
        bucket = planned.entry.bucket
        self.users[bucket] = planned._replace(fate=Fate.LEFT_OUT)
        self.left_out[bucket] = error


def plan_restore(
    engine: Engine, stream: BinaryIO, selection: Selection, on_conflict: OnConflict = OnConflict.FAIL
) -> RestorePlan:
    """Reads an archive from end to end and decides what to do with each user; writes nothing.

    Raises:
        ArchiveError: The archive is damaged, or holds what no backup has.
        RestoreConflict: Users have another memory, and nothing was said of that.
        InvalidInputError: The archive is of a store with another name for `memory.json`, or has
            nothing of the users that are wanted, or one of them cannot be on this file system.
    """
    items = walk(stream)
    plan = RestorePlan(read_header(items), selection)
    _check_header(plan.header, engine, selection)
    unreadable: Corruption | UnsupportedFormat | None = None
    archived: list[str | None] = []
    for item in items:
        if isinstance(item, ArchivedUser):
            archived.append(item.bucket)
        if isinstance(item, Header) or not selection.has(item.bucket):
            continue
        if isinstance(item, ArchivedFile):
            problem = problem_of(item, engine.manifest_name)
            if problem is not None:
                unreadable = unreadable or problem
                plan.problems += [problem] if len(plan.problems) < MAX_PROBLEMS else []
            continue
        plan.problems += without_manifest(item.bucket, engine.manifest_name, item.files)
        manifest = item.files.get((engine.manifest_name,))
        planned = PlannedUser(item.entry, Fate.RESTORE, manifest.sha256 if manifest else None)
        try:
            planned = planned._replace(fate=_fate_of(engine, item, selection, on_conflict))
        except InvalidInputError as error:
            plan.leave_out(planned, error)
        else:
            plan.users[item.bucket] = planned
            if planned.fate is Fate.RENEW or planned.is_overwritten(on_conflict):
                _check_replaceable(item, engine.manifest_name, unreadable)
        unreadable = None
    _check_selection(plan, archived)
    live = [entry.user for entry, fate, _ in plan.users.values() if fate is Fate.REPLACE]
    if live and on_conflict is OnConflict.FAIL:
        raise RestoreConflict(*map(str, live))
    return plan


def _check_header(header: Header, engine: Engine, selection: Selection) -> None:
    if header.manifest_name != engine.manifest_name:
        reason = f"is {engine.manifest_name} here and {header.manifest_name} in the archive"
        raise InvalidInputError("manifest_filename", reason)
    if selection.with_agents and not header.with_agents:
        raise InvalidInputError("with_agents", "is asked for, but the archive was made without it")


def _check_selection(plan: RestorePlan, archived: list[str | None]) -> None:
    wanted = plan.selection.buckets
    missing = [] if wanted is None else [bucket for bucket in wanted if bucket not in plan.users]
    if missing:
        raise InvalidInputError(
            "user_id", f"names nobody in the archive: {_named(missing)} (it has {_named(archived)})"
        )


def _named(buckets: list[str | None]) -> str:
    names = ["(no user)" if bucket is None else bucket for bucket in buckets]
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def _check_replaceable(
    archived: ArchivedUser, manifest_name: str, unreadable: Corruption | UnsupportedFormat | None
) -> None:
    """Makes sure that the archive has a memory that can be written by a transaction."""
    old = [entry for parts, entry in archived.files.items() if len(parts) == 3 and parts[2] == manifest_name]
    if unreadable is not None:
        raise ArchiveError(unreadable.path, f"cannot replace a memory: {unreadable}")
    if old or archived.entry.revision is None:
        name = old[0].path if old else member_name(archived.bucket, (manifest_name,))
        raise ArchiveError(name, "is missing or of version 1, and cannot replace a memory")


def _fate_of(engine: Engine, archived: ArchivedUser, selection: Selection, on_conflict: OnConflict) -> Fate:
    fate = _compared(engine, archived, selection)
    if fate is Fate.REPLACE and on_conflict is OnConflict.SKIP:
        return Fate.SKIP
    revision = archived.entry.revision
    if fate is Fate.RESTORE and revision is not None:
        # A revision number that was seen is never used again for another state (guarantee G1).
        erased = erased_at(engine.file_system, archived.entry.user)
        return Fate.RENEW if revision <= erased else fate
    return fate


def _compared(engine: Engine, archived: ArchivedUser, selection: Selection) -> Fate:
    """Compares what is on disk with what the archive has of a user."""
    with engine.opened(archived.entry.user) as bucket:
        if bucket is None:
            return Fate.RESTORE
        if bucket.journal_is_there():  # as any access does
            with engine.locked(bucket):
                complete(engine, bucket)
        wanted = {parts: entry for parts, entry in archived.files.items() if not is_agents_own(parts)}
        found = list_files(bucket, with_agents=False)
        if not all(_is_that(bucket, parts, wanted.get(parts)) for parts in found):
            return Fate.REPLACE
        if len(found) < len(wanted):
            return Fate.REPLACE if (bucket.manifest_name,) in found else Fate.RESTORE
        host = [parts for parts in archived.files if is_agents_own(parts) and selection.takes(parts)]
        lacking = any(read_file(bucket, parts) is None for parts in host)
    return Fate.RESTORE if lacking else Fate.THERE


def _is_that(bucket: Bucket, parts: Parts, entry: Entry | None) -> bool:
    """Tells whether the file that is there is the archive's; what is no file, or too large, is not."""
    with suppress(Corruption):
        data = read_file(bucket, parts)
        return data is not None and entry is not None and sha256(data).hexdigest() == entry.sha256
    return False


def restore(
    repository: MemoryRepository,
    stream: BinaryIO,
    plan: RestorePlan,
) -> None:
    """Does what was planned; the archive is read a second time, and checked as it was the first time.

    Where it is interrupted, running it again completes it. What is there already is made durable, since a
    restore that was interrupted may have left it. Who turns out to be another user on this file system,
    which ignores case, is left out, and the plan says so afterwards.

    Args:
        repository: The store.
        stream: The archive, at its start.
        plan: What `plan_restore` said of this archive.
    """
    with ExitStack() as stack:
        target: Placing | Replacement | None = None
        for item in walk(stream):
            if isinstance(item, Header):
                continue
            planned = plan.users.get(item.bucket)
            if planned is None or planned.fate in (Fate.SKIP, Fate.LEFT_OUT):
                continue
            if isinstance(item, ArchivedUser):
                _finish(repository, target)
                target = None
                stack.close()
            elif plan.selection.takes(item.parts):
                try:
                    target = target or _target_of(repository.engine, planned, stack)
                except InvalidInputError as error:
                    plan.leave_out(planned, error)
                    continue
                _put(target, item)


def _target_of(engine: Engine, planned: PlannedUser, stack: ExitStack) -> Placing | Replacement:
    user = planned.entry.user
    if planned.fate in (Fate.REPLACE, Fate.RENEW):
        with engine.opened(user):  # the name may have become another user's
            pass
        return Replacement(user, engine.manifest_name, erased_at(engine.file_system, user))
    return stack.enter_context(empty_bucket(engine, user, planned.manifest))


def _put(target: Placing | Replacement, file: ArchivedFile) -> None:
    if isinstance(target, Placing):
        target.add(file.parts, file.data)
    elif not target.takes(file.parts, file.data):
        target.beside.append((file.parts, file.data))


def _finish(repository: MemoryRepository, target: Placing | Replacement | None) -> None:
    """Makes a user's files count, now that the index has proved them."""
    if isinstance(target, Placing):
        target.finish()
    elif target is not None:
        repository.commit(target.user, target.changes)
        for parts, data in target.beside:
            put_beside(repository.engine, target.user, parts, data)
