"""Backups: each user at one committed state, all users in one archive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from deermem.errors import Corruption, LegacyFormat, UnsupportedFormat
from deermem.format.fact_markdown import decode_fact
from deermem.format.layout import parse_fact_parts
from deermem.format.manifest_json import decode_manifest
from deermem.maintenance.archive import Header, member_name
from deermem.maintenance.archive_contents import ArchivedFile, ArchivedUser, read_header, walk
from deermem.maintenance.archive_writer import ArchiveWriter
from deermem.maintenance.saving import SavedUser, save_user, without_manifest
from deermem.model.identity import Scope, UserId
from deermem.model.timestamps import parse_timestamp
from deermem.storage.engine import Engine

MAX_PROBLEMS: Final = 1_000


@dataclass(slots=True)
class Verification:
    """Reports what an archive holds, and the files in it that cannot be read."""

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
    out and reported, be it a file, or a user whom another process keeps locked. Where nothing may be
    written, as on a snapshot, a user is read without the lock, again if somebody wrote meanwhile; one with
    a hot journal is left out.

    Args:
        engine: The store.
        users: Whom to save.
        stream: Where to write, and to seek; nothing is kept in memory but one file and the index of
            one user.
        tool: The program, with its version.
        with_agents: Whether the `config.yaml` and `SOUL.md` of agents are saved, too.

    Raises:
        OSError: The archive cannot be written.
    """
    header = Header(tool, engine.now(), engine.manifest_name, with_agents)
    seconds = int(parse_timestamp(header.created, "created").timestamp())
    writer = ArchiveWriter(stream, header, seconds)
    saved = [save_user(engine, user, writer, with_agents=with_agents) for user in users]
    writer.close()
    return saved


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
        elif isinstance(item, ArchivedFile):
            problem = problem_of(item, report.header.manifest_name)
            if problem is None:
                report.facts += parse_fact_parts(item.parts) is not None
            elif len(report.problems) < MAX_PROBLEMS:
                report.problems.append(problem)
    return report


def problem_of(file: ArchivedFile, manifest_name: str) -> Corruption | UnsupportedFormat | None:
    """Returns what is wrong with a file that is a fact's or the summaries'; nothing for any other file."""
    key = parse_fact_parts(file.parts)
    if file.parts == (manifest_name,):
        return _manifest_problem(file)
    if key is None:
        return None
    scope = Scope(UserId(file.bucket, file.bucket), key[0])
    try:
        decode_fact(file.data, path=member_name(file.bucket, file.parts), scope=scope, fact_id=key[1])
    except (Corruption, UnsupportedFormat) as error:
        return error
    return None


def _manifest_problem(file: ArchivedFile) -> Corruption | UnsupportedFormat | None:
    try:
        decode_manifest(file.data, file.name)
    except LegacyFormat:
        return None  # it is migrated where it is read
    except (Corruption, UnsupportedFormat) as error:
        return error
    return None
