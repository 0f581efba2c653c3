"""Saves one user into an archive as of one moment: under the lock, or without it where it cannot be had."""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from deermem.errors import ArchiveError, Corruption, DeerMemError, LegacyFormat, LockTimeout
from deermem.format.layout import JOURNAL, LOCK, parse_fact_parts
from deermem.maintenance.archive import Parts, member_name, parse_name
from deermem.maintenance.archive_contents import revision_of
from deermem.maintenance.archive_names import MemberNames
from deermem.maintenance.archive_writer import ArchiveWriter
from deermem.maintenance.bucket_files import list_files, read_file
from deermem.model.identity import UserId
from deermem.storage.access import no_bucket
from deermem.storage.bucket import Bucket
from deermem.storage.engine import Engine
from deermem.storage.predecessor import end_legacy_transaction
from deermem.storage.recovery import recover

_MAY_NOT_WRITE: Final = frozenset([errno.EACCES, errno.EPERM, errno.EROFS])
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 1.0
_COMPLETE_IT: Final = (
    "any read of this user where the store can be written completes it: then make a new snapshot, or copy "
    "this one to where it can be written, and save that"
)


@dataclass(frozen=True, slots=True)
class SavedUser:
    """Reports what a backup has of a user; `problems` say what it lacks."""

    user: UserId
    revision: int | None = None
    files: int = 0
    problems: tuple[DeerMemError | OSError, ...] = ()


def save_user(engine: Engine, user: UserId, writer: ArchiveWriter, *, with_agents: bool) -> SavedUser:
    """Adds a user's files to an archive, and reports what could not be added.

    Where the lock cannot be had because nothing may be written there, the files count only if nobody
    wrote while they were read.
    """
    with ExitStack() as stack:
        try:
            bucket = stack.enter_context(engine.maintenance(user))
            complete(engine, bucket)
            listed = list_files(bucket, with_agents=with_agents)
        except (DeerMemError, OSError) as error:
            refusal = error
        else:
            return _copy(bucket, listed, writer)
    if isinstance(refusal, OSError) and refusal.errno in _MAY_NOT_WRITE:
        return _save_without_lock(engine, user, writer, refusal, with_agents=with_agents)
    return SavedUser(user, problems=(refusal,))


def _copy(bucket: Bucket, listed: Iterable[Parts], writer: ArchiveWriter) -> SavedUser:
    """Adds files to an archive; what cannot be one of its members is left out and reported."""
    user, revision = bucket.user, None
    names = MemberNames()
    added: list[Parts] = []
    problems: list[DeerMemError | OSError] = []
    for parts in listed:
        try:
            data = read_file(bucket, parts)
        except (Corruption, OSError) as error:
            problems.append(error)
            continue
        if data is None:  # somebody removed it by hand meanwhile
            continue
        if unfit := _unfit(bucket, parts, names):
            problems.append(unfit)
            continue
        if parts == (bucket.manifest_name,):
            revision = revision_of(data)
        writer.add(user.bucket, parts, data)
        added.append(parts)
    if added:
        writer.end_user(user.bucket, revision)
    if not problems:
        problems += without_manifest(user.bucket, bucket.manifest_name, added)
    return SavedUser(user, revision, len(added), tuple(problems))


def _unfit(bucket: Bucket, parts: Parts, names: MemberNames) -> Corruption | None:
    """Returns what keeps a file out of every backup: one odd name would make the whole archive useless."""
    name, what = member_name(bucket.user.bucket, parts), ""
    try:
        parse_name(name)
        what = "is another file's on some file systems" if names.objection(parts) else ""
    except ArchiveError:
        what = "not every file system takes"
    hint = "rename it, or save it by other means; everything else is saved"
    return Corruption(name, f"has a name that {what}, so it is in no backup", hint) if what else None


class State(NamedTuple):
    """Is what a writer changes: of two equal ones without a journal, nobody wrote in between."""

    has_journal: bool = False
    manifest: bytes | None = None
    listed: list[Parts] = []  # noqa: RUF012 - never changed
    problem: DeerMemError | OSError | None = None

    @property
    def may_be_half(self) -> bool:
        """Whether facts are there and what makes them count is not: a restore may be at work."""
        return self.manifest is None and any(parse_fact_parts(parts) for parts in self.listed)


def _state_of(bucket: Bucket, *, with_agents: bool) -> State:
    try:
        # The order matters: a journal goes after memory.json was replaced.
        has_journal = bucket.journal_is_there()
        manifest: bytes | None = None
        with suppress(Corruption):  # it is left out and reported, as it is under the lock
            manifest = read_file(bucket, (bucket.manifest_name,))
        return State(has_journal, manifest, list_files(bucket, with_agents=with_agents))
    except (DeerMemError, OSError) as error:
        return State(problem=error)


def is_settled(before: State, after: State) -> bool:
    """Tells whether what was read between two looks is one committed state."""
    return before == after  # and there was no journal before


def _save_without_lock(
    engine: Engine, user: UserId, writer: ArchiveWriter, refusal: OSError, *, with_agents: bool
) -> SavedUser:
    """Waits for a moment in which nobody writes; what was added in another one is taken back."""
    mark = writer.mark()
    waited, pause = 0.0, _FIRST_PAUSE
    while True:
        is_last = waited >= engine.lock_timeout
        with ExitStack() as stack:
            try:
                bucket = stack.enter_context(engine.opened(user))
            except (DeerMemError, OSError) as error:
                return SavedUser(user, problems=(error,))
            if bucket is None:
                return SavedUser(user, problems=(no_bucket(user),))
            before = _state_of(bucket, with_agents=with_agents)
            if before.problem is not None:
                return SavedUser(user, problems=(before.problem,))
            if not before.has_journal:
                saved = _copy(bucket, before.listed, writer)
                after = _state_of(bucket, with_agents=with_agents)
                if is_settled(before, after) and (is_last or not before.may_be_half):
                    return saved
                writer.take_back(mark)
            if is_last:
                return SavedUser(user, problems=(_why_not(bucket, before, refusal, waited),))
        engine.file_system.wait(pause)
        waited += pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _why_not(bucket: Bucket, state: State, refusal: OSError, waited: float) -> Corruption | LockTimeout:
    if not state.has_journal:
        return LockTimeout(bucket.path_of((LOCK,)), waited)
    reason = f"is of an interrupted change, and completing it would write: {refusal.strerror}"
    return Corruption(bucket.path_of((JOURNAL,)), reason, _COMPLETE_IT)


def complete(engine: Engine, bucket: Bucket) -> None:
    """Completes an interrupted transaction of a bucket whose lock is held."""
    try:
        recover(bucket)
    except LegacyFormat:
        end_legacy_transaction(bucket, engine.stamps.operation())
        recover(bucket)


def without_manifest(bucket: str | None, manifest_name: str, files: Collection[Parts]) -> list[Corruption]:
    """Returns what is wrong with a user's files if there are facts and no manifest; else nothing."""
    if (manifest_name,) in files or not any(parse_fact_parts(parts) for parts in files):
        return []
    hint = "the facts are there; where they are restored, `deermem check --repair` writes a new one"
    return [Corruption(member_name(bucket, (manifest_name,)), "is missing although there are facts", hint)]
