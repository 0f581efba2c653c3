"""Backups: each user at one committed state, all users in one archive."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from deermem.errors import Corruption, DeerMemError, LegacyFormat, UnsupportedFormat
from deermem.format.fact_markdown import decode_fact
from deermem.format.layout import parse_fact_parts
from deermem.maintenance.archive import Header, Parts, member_name
from deermem.maintenance.archive_contents import ArchivedFile, ArchivedUser, read_header, revision_of, walk
from deermem.maintenance.archive_writer import ArchiveWriter
from deermem.maintenance.bucket_files import list_files, read_file
from deermem.model.identity import Scope, UserId
from deermem.model.timestamps import parse_timestamp
from deermem.storage.bucket import Bucket
from deermem.storage.engine import Engine
from deermem.storage.predecessor import end_legacy_transaction
from deermem.storage.recovery import recover

MAX_PROBLEMS: Final = 1_000


@dataclass(frozen=True, slots=True)
class SavedUser:
    """Reports what a backup has of a user; `problems` say what it lacks."""

    user: UserId
    revision: int | None = None
    files: int = 0
    problems: tuple[DeerMemError | OSError, ...] = ()


@dataclass(slots=True)
class Verification:
    """Reports what an archive holds, and the facts in it that cannot be read."""

    header: Header
    users: list[SavedUser] = field(default_factory=list)
    facts: int = 0
    problems: list[Corruption | UnsupportedFormat] = field(default_factory=list)


def back_up(
    engine: Engine,
    users: Iterable[UserId],
    stream: BinaryIO,
    *,
    tool: str,
    with_agents: bool = False,
) -> list[SavedUser]:
    """Writes an archive of users; each as it is at one moment, under the user's lock.

    A hot journal is completed first, as any access does. Files are copied as they are, whether they hold
    facts or not, so that a damaged store can be saved before it is mended. What cannot be copied is left
    out and reported, be it a file, or a user whom another process keeps locked.

    Args:
        engine: The store.
        users: Whom to save.
        stream: Where to write; nothing is kept in memory but one file and the index of one user.
        tool: The program, with its version.
        with_agents: Whether the `config.yaml` and `SOUL.md` of agents are saved, too.

    Raises:
        OSError: The archive cannot be written.
    """
    header = Header(tool, engine.now(), engine.manifest_name, with_agents)
    seconds = int(parse_timestamp(header.created, "created").timestamp())
    writer = ArchiveWriter(stream, header, seconds)
    saved = [_save(engine, user, writer, with_agents=with_agents) for user in users]
    writer.close()
    return saved


def _save(engine: Engine, user: UserId, writer: ArchiveWriter, *, with_agents: bool) -> SavedUser:
    with ExitStack() as stack:
        try:
            bucket = stack.enter_context(engine.maintenance(user))
            complete(engine, bucket)
            listed = list_files(bucket, with_agents=with_agents)
        except (DeerMemError, OSError) as error:
            return SavedUser(user, problems=(error,))
        return _copy(bucket, listed, writer)


def _copy(bucket: Bucket, listed: Iterable[Parts], writer: ArchiveWriter) -> SavedUser:
    """Adds files to an archive; what cannot be one of its members is left out and reported."""
    user, revision = bucket.user, None
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
        if parts == (bucket.manifest_name,):
            revision = revision_of(data)
        writer.add(user.bucket, parts, data)
        added.append(parts)
    if added:
        writer.end_user(user.bucket, revision)
    if not problems:
        problems += without_manifest(user.bucket, bucket.manifest_name, added)
    return SavedUser(user, revision, len(added), tuple(problems))


def complete(engine: Engine, bucket: Bucket) -> None:
    """Completes an interrupted transaction of a bucket whose lock is held."""
    try:
        recover(bucket)
    except LegacyFormat:
        end_legacy_transaction(bucket, engine.stamps.operation())
        recover(bucket)


def verify(stream: BinaryIO) -> Verification:
    """Reads an archive from end to end: every name, every hash, every fact.

    Raises:
        ArchiveError: The archive is damaged, or holds what no backup has.
    """
    items = walk(stream)
    report = Verification(read_header(items))
    for item in items:
        if isinstance(item, ArchivedUser):
            report.users.append(SavedUser(item.entry.user, item.entry.revision, item.entry.files))
            report.problems += without_manifest(item.bucket, report.header.manifest_name, item.files)
        elif isinstance(item, ArchivedFile) and parse_fact_parts(item.parts) is not None:
            problem = fact_problem(item)
            if problem is None:
                report.facts += 1
            elif len(report.problems) < MAX_PROBLEMS:
                report.problems.append(problem)
    return report


def fact_problem(file: ArchivedFile) -> Corruption | UnsupportedFormat | None:
    """Returns what is wrong with a file that is a fact's; nothing for any other file."""
    key = parse_fact_parts(file.parts)
    if key is None:
        return None
    scope = Scope(UserId(file.bucket, file.bucket), key[0])
    try:
        decode_fact(file.data, path=member_name(file.bucket, file.parts), scope=scope, fact_id=key[1])
    except (Corruption, UnsupportedFormat) as error:
        return error
    return None


def without_manifest(bucket: str | None, manifest_name: str, files: Collection[Parts]) -> list[Corruption]:
    """Returns what is wrong with a user's files if there are facts and no manifest; else nothing."""
    if (manifest_name,) in files or not any(parse_fact_parts(parts) for parts in files):
        return []
    hint = "the facts are there; where they are restored, `deermem check --repair` writes a new one"
    return [Corruption(member_name(bucket, (manifest_name,)), "is missing although there are facts", hint)]
