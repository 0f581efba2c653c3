"""A backup as an archive: its members, their names, and what its own documents say.

    deermem-backup/archive.json          the header: what kind of archive this is
    users/{bucket}/…                     a user's files, memory.json last
    deermem-backup/users/{bucket}.jsonl  the index of that user's files
    …                                    the next user; for the memory without a user the files stand
    deermem-backup/no-user.jsonl         at the top, and this is their index
    deermem-backup/manifest.json         last: every user with the revision and the hash of the index

An index has one line for each file, in the order of the archive: `{"path": …, "size": …, "sha256": …}`.
So a program holds the index of one user at a time, however large the store is.
`docs/internals/backups.md` has the whole format.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

from deermem.errors import ArchiveError, Corruption, InvalidInputError
from deermem.format.layout import (
    AGENT_FILES,
    AGENTS,
    BACKUP_SUFFIX,
    FACT_SUFFIX,
    FACTS,
    FENCES,
    METADATA,
    USERS,
    check_manifest_name,
    fact_id_of,
    is_shard,
)
from deermem.format.strict_json import dump_compact, dump_document, load_object
from deermem.model.identity import UserId, is_bucket_name, stored_agent_name

ARCHIVE_FORMAT: Final = 1
OWN: Final = "deermem-backup"
HEADER: Final = f"{OWN}/archive.json"
MANIFEST: Final = f"{OWN}/manifest.json"

MAX_FILE_BYTES: Final = 32_000_000
MAX_INDEX_BYTES: Final = 128_000_000
MAX_DOCUMENT_BYTES: Final = 128_000_000
MAX_FILES_OF_A_USER: Final = 500_000
MAX_MEMBERS: Final = 20_000_000
MAX_TOTAL_BYTES: Final = 1_000_000_000_000
MAX_NAME_BYTES: Final = 4_000

_MAX_PARTS: Final = 12
_PART: Final = re.compile(r"(?!\.\.?$)[^/\\:\x00-\x1f\x7f\ud800-\udfff]{1,255}(?<![. ])")

Parts = tuple[str, ...]


class Entry(NamedTuple):
    """Describes a member: its path below the storage root, its size and its SHA-256."""

    path: str
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str, data: bytes) -> Entry:
        """Describes these bytes under this name."""
        return cls(path, len(data), sha256(data).hexdigest())

    def document(self) -> dict[str, Any]:
        """Returns the entry as JSON."""
        return {"path": self.path, "size": self.size, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Header:
    """Says what kind of archive it is, before anything else in it."""

    tool: str
    created: str
    manifest_name: str
    with_agents: bool

    def encode(self) -> bytes:
        """Returns the bytes of the member."""
        return dump_document(
            {
                "format": ARCHIVE_FORMAT,
                "tool": self.tool,
                "created": self.created,
                "manifestName": self.manifest_name,
                "withAgents": self.with_agents,
            }
        )


def decode_header(data: bytes) -> Header:
    """Reads the header.

    Raises:
        ArchiveError: It is none, or one of a later format.
    """
    document = _object(HEADER, data)
    if document.get("format") != ARCHIVE_FORMAT:
        raise ArchiveError(HEADER, f"has the format {str(document.get('format'))[:40]}, not {ARCHIVE_FORMAT}")
    tool, created, with_agents = (document.get(key) for key in ("tool", "created", "withAgents"))
    if not (isinstance(tool, str) and isinstance(created, str) and isinstance(with_agents, bool)):
        raise ArchiveError(HEADER, "lacks tool, created or withAgents")
    try:
        name = check_manifest_name(document.get("manifestName"))  # type: ignore[arg-type]  # it checks the type
    except InvalidInputError as error:
        raise ArchiveError(HEADER, error.reason) from None
    return Header(tool, created, name, with_agents)


class UserEntry(NamedTuple):
    """Is a user as the manifest lists one; `revision` is `None` where `memory.json` has none."""

    bucket: str | None
    revision: int | None
    files: int
    listing: Entry

    @property
    def user(self) -> UserId:
        """The user, known by the name of the bucket."""
        return UserId(self.bucket, self.bucket)

    def document(self) -> dict[str, Any]:
        """Returns the entry as JSON."""
        return {
            "bucket": self.bucket,
            "revision": self.revision,
            "files": self.files,
            "index": self.listing.document(),
        }


def encode_manifest(header: Header, users: list[UserEntry]) -> bytes:
    """Returns the bytes of the last member; from the same archive always the same."""
    data = header.encode()
    return dump_document(
        {
            "format": ARCHIVE_FORMAT,
            "tool": header.tool,
            "header": Entry.of(HEADER, data).document(),
            "users": [user.document() for user in users],
        }
    )


def encode_index(entries: list[Entry]) -> bytes:
    """Returns the bytes of an index; from the same files always the same."""
    return "".join(f"{dump_compact(entry.document())}\n" for entry in entries).encode("utf-8")


def index_name(bucket: str | None) -> str:
    """Returns the name of the index of a user's files."""
    return f"{OWN}/no-user.jsonl" if bucket is None else f"{OWN}/{USERS}/{bucket}.jsonl"


def member_name(bucket: str | None, parts: Parts) -> str:
    """Returns the name of a file's member: its path below the storage root."""
    return "/".join(parts if bucket is None else (USERS, bucket, *parts))


def parse_name(name: str) -> tuple[str | None, Parts]:
    """Returns whose file a member is, and its path below the bucket.

    Raises:
        ArchiveError: The name leads upwards or out, or is none that a store has.
    """
    parts = tuple(name.split("/"))
    if len(parts) > _MAX_PARTS or not all(_PART.fullmatch(part) for part in parts):
        raise ArchiveError(name, "is no path below a storage root")
    if parts[0] != USERS:
        return None, parts
    if len(parts) < 3 or not is_bucket_name(parts[1]):
        raise ArchiveError(name, "lies in no user bucket")
    return parts[1], parts[2:]


def is_own_file(parts: Parts, manifest_name: str, *, with_agents: bool) -> bool:
    """Tells whether a path below a bucket is one that a backup has.

    The Markdown files that a document of version 1 refers to can lie anywhere, and are not told by
    their paths.
    """
    documents = (manifest_name, manifest_name + BACKUP_SUFFIX)
    if len(parts) == 1:
        return parts[0] in (*documents, FENCES)
    if parts[0] != AGENTS or len(parts) < 3 or stored_agent_name(parts[1]) is None:
        return False
    match parts[2:]:
        case (name,):
            return name in documents or (with_agents and name in AGENT_FILES)
        case (directory, _):
            return directory == METADATA
        case (directory, shard, name):
            return directory == FACTS and is_shard(shard) and fact_id_of(name) is not None
        case _:
            return False


def is_agents_own(parts: Parts) -> bool:
    """Tells whether a file is an agent's configuration, which is the host's."""
    return len(parts) == 3 and parts[2] in AGENT_FILES


def may_be_referred_to(parts: Parts) -> bool:
    """Tells whether a path may be that of a fact which a document of version 1 refers to."""
    return parts[-1].endswith(FACT_SUFFIX) and not parts[0].startswith(".") and parts[0] not in (USERS, OWN)


def folded(path: str) -> str:
    """Returns what a path is on a file system that ignores case and ways to compose characters."""
    return unicodedata.normalize("NFC", path).casefold()


def _object(name: str, data: bytes) -> dict[str, Any]:
    try:
        return load_object(data, name)
    except Corruption as error:
        raise ArchiveError(name, error.reason) from None
