"""Walks through an archive and makes sure that it is one of ours: every name, every hash, every index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from deermem.errors import ArchiveError, Corruption, LegacyFormat, UnsupportedFormat
from deermem.format.legacy_v1 import decode_legacy
from deermem.format.manifest_json import decode_manifest
from deermem.maintenance.archive import (
    HEADER,
    MANIFEST,
    MAX_FILES_OF_A_USER,
    OWN,
    Entry,
    Header,
    Parts,
    UserEntry,
    decode_header,
    encode_index,
    encode_manifest,
    index_name,
    is_own_file,
    may_be_referred_to,
    member_name,
    parse_name,
)
from deermem.maintenance.archive_names import MemberNames
from deermem.maintenance.archive_reader import Member, read_members
from deermem.model.identity import DEFAULT_AGENT, Scope, UserId, stored_agent_name

_SOME_TIME: Final = "1970-01-01T00:00:00Z"


class ArchivedFile(NamedTuple):
    """Is a file of a user; its hash is compared only when the user's index comes."""

    bucket: str | None
    parts: Parts
    data: bytes

    @property
    def name(self) -> str:
        """The name in the archive."""
        return member_name(self.bucket, self.parts)


class ArchivedUser(NamedTuple):
    """Ends a user's files: they were all that the index names, with their hashes."""

    entry: UserEntry
    files: dict[Parts, Entry]

    @property
    def bucket(self) -> str | None:
        """Whose files ended."""
        return self.entry.bucket


Item = Header | ArchivedFile | ArchivedUser


def walk(stream: BinaryIO) -> Iterator[Item]:
    """Yields the header, then the files of each user, each time with the user behind them.

    What was yielded is proved only by what follows it: a file by its user, all by the end.

    Raises:
        ArchiveError: The archive is damaged, or holds what no backup has.
    """
    members = read_members(stream)
    first = next(members, None)
    if first is None or first.name != HEADER:
        raise ArchiveError("", f"is no backup: it does not begin with {HEADER}")
    header = decode_header(first.data)
    yield header
    contents = _Contents(header, first)
    for member in members:
        if contents.complete:
            raise ArchiveError(member.name, "stands behind the manifest")
        item = contents.take(member)
        if item is not None:
            yield item
    if not contents.complete:
        raise ArchiveError("", f"is cut short: it does not end with {MANIFEST}")


def read_header(items: Iterator[Item]) -> Header:
    """Takes the header, with which every archive begins."""
    header = next(items)
    if not isinstance(header, Header):
        raise ArchiveError("", "has no header")
    return header


class _Contents:
    """Knows the users that were complete, and the files of the one at hand."""

    def __init__(self, header: Header, first: Member) -> None:
        if first.data != header.encode():
            raise ArchiveError(HEADER, "has more in it than a header")
        self.complete = False
        self._header = header
        self._users: list[UserEntry] = []
        self._seen: set[str | None] = set()
        self._start()

    def take(self, member: Member) -> ArchivedFile | ArchivedUser | None:
        """Takes the next member: a file, an index, or the manifest, which gives nothing."""
        if member.name == MANIFEST:
            self._finish(member)
            return None
        if member.name.startswith(f"{OWN}/"):
            return self._end_user(member)
        return self._file(member)

    def _start(self) -> None:
        self._bucket: str | None = None
        self._files: dict[Parts, Entry] = {}
        self._names = MemberNames()
        self._loose: set[Parts] = set()
        self._referred: set[Parts] = set()
        self._revision: int | None = None

    def _file(self, member: Member) -> ArchivedFile:
        bucket, parts = parse_name(member.name)
        if not self._files:
            self._bucket = bucket
            if bucket in self._seen:
                raise ArchiveError(member.name, "is of a user whose files have ended")
        if bucket != self._bucket:
            raise ArchiveError(member.name, "stands among the files of another user")
        if len(self._files) >= MAX_FILES_OF_A_USER:
            raise ArchiveError(member.name, f"is one file more than {MAX_FILES_OF_A_USER:,}")
        if not is_own_file(parts, self._header.manifest_name, with_agents=self._header.with_agents):
            if not may_be_referred_to(parts):
                raise ArchiveError(member.name, "is no file of a memory")
            self._loose.add(parts)
        objection = self._names.objection(parts)
        if objection:
            raise ArchiveError(member.name, objection)
        self._look_into(parts, member)
        self._files[parts] = Entry.of(member.name, member.data)
        return ArchivedFile(bucket, parts, member.data)

    def _look_into(self, parts: Parts, member: Member) -> None:
        """Takes the revision, and which other files a document of version 1 refers to."""
        if parts[-1] != self._header.manifest_name:
            return
        if len(parts) == 1:
            self._revision = revision_of(member.data)
        agent = DEFAULT_AGENT if len(parts) == 1 else stored_agent_name(parts[1])
        scope = Scope(UserId(self._bucket, self._bucket), agent or DEFAULT_AGENT)
        self._referred |= references_of(member.data, parts, scope)

    def _end_user(self, member: Member) -> ArchivedUser:
        if not self._files or member.name != index_name(self._bucket):
            raise ArchiveError(member.name, "is not the index of the files before it")
        loose = self._loose - self._referred
        if loose:
            raise ArchiveError(member_name(self._bucket, min(loose)), "is no file of a memory")
        index = encode_index(list(self._files.values()))
        if member.data != index:
            raise ArchiveError(self._first_difference(member, index), "is not what the index says")
        entry = UserEntry(self._bucket, self._revision, len(self._files), Entry.of(member.name, member.data))
        user = ArchivedUser(entry, self._files)
        self._users.append(entry)
        self._seen.add(self._bucket)
        self._start()
        return user

    def _first_difference(self, member: Member, index: bytes) -> str:
        told, found = member.data.split(b"\n"), index.split(b"\n")
        for line, entry in zip(found, self._files.values(), strict=False):
            if line not in told:
                return entry.path
        return member.name

    def _finish(self, member: Member) -> None:
        if self._files:
            raise ArchiveError(member.name, f"comes before {index_name(self._bucket)}")
        if member.data != encode_manifest(self._header, self._users):
            raise ArchiveError(member.name, "does not name the users that are there")
        self.complete = True


def revision_of(data: bytes) -> int | None:
    """Returns the revision of a `memory.json`; `None` for one of version 1, or that cannot be read."""
    try:
        return decode_manifest(data, "").revision
    except (Corruption, UnsupportedFormat):
        return None


def references_of(data: bytes, parts: Parts, scope: Scope) -> set[Parts]:
    """Returns the files, from the bucket on, that a document of version 1 refers to."""
    try:
        decode_manifest(data, "")
    except LegacyFormat:
        pass
    except (Corruption, UnsupportedFormat):
        if len(parts) == 1:
            return set()
    try:
        document = decode_legacy(data, "", scope, _SOME_TIME)
    except (Corruption, UnsupportedFormat):
        return set()
    return {(*parts[:-1], *reference.parts) for reference in document.references}
