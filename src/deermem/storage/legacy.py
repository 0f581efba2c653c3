"""Files of version 1 in a user bucket: which are there, and what they say."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from deermem.errors import Corruption, LegacyFormat
from deermem.format.journal_json import Parts
from deermem.format.layout import legacy_parts
from deermem.format.legacy_json import MAX_LEGACY_BYTES
from deermem.format.legacy_v1 import LegacyDocument, decode_legacy
from deermem.model.identity import DEFAULT_AGENT, AgentName, Scope
from deermem.model.manifest import MANIFEST_VERSION, Manifest
from deermem.storage.bucket import Bucket, ManifestImage
from deermem.storage.opening import trusted

# How far beyond all that was seen the revision goes where the last one is unknown.
LEAP: Final = 1_000_000
_LONG_AGO: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class LegacySource:
    """Is a file of version 1 as it lies in a bucket, and whose facts are in it."""

    agent: AgentName
    parts: Parts
    data: bytes
    document: LegacyDocument


def refuse_legacy(bucket: Bucket, agent: AgentName) -> None:
    """Makes sure that an agent's facts are all in their own files: costs one look at a name.

    Raises:
        LegacyFormat: The agent has a file of version 1.
    """
    if has_legacy(bucket, agent):
        path = bucket.path_of(legacy_parts(agent, bucket.manifest_name))
        raise LegacyFormat(path, "1.0", MANIFEST_VERSION, agent)


def has_legacy(bucket: Bucket, agent: AgentName) -> bool:
    """Tells whether an agent has a file of version 1."""
    return is_there(bucket, legacy_parts(agent, bucket.manifest_name))


def is_there(bucket: Bucket, parts: Parts) -> bool:
    """Tells whether there is a file at a path."""
    with suppress(FileNotFoundError), bucket.directory_at(parts[:-1]) as directory, trusted():
        directory.identify(parts[-1])
        return True
    return False


def legacy_agents(bucket: Bucket) -> list[AgentName]:
    """Returns the agents that have a file of version 1, sorted."""
    return [agent for agent in bucket.agent_directories() if has_legacy(bucket, agent)]


def read_source(bucket: Bucket, agent: AgentName, parts: Parts, now: str) -> LegacySource:
    """Reads a file of version 1.

    Raises:
        Corruption: It is no JSON object.
        UnsupportedFormat: It has a version that is not known.
    """
    data = _read(bucket, parts)
    document = decode_legacy(data, bucket.path_of(parts), Scope(bucket.user, agent), now)
    return LegacySource(agent, parts, data, document)


def read_user_source(bucket: Bucket, now: str) -> LegacySource | None:
    """Reads the user's own `memory.json`, if it is of version 1: its facts are the default agent's."""
    parts = (bucket.manifest_name,)
    if bucket.manifest_on_disk()[1] is not None:
        return None
    return read_source(bucket, DEFAULT_AGENT, parts, now)


def read_agent_sources(bucket: Bucket, agents: Iterable[AgentName], now: str) -> list[LegacySource]:
    """Reads the files of version 1 of these agents."""
    return [read_source(bucket, agent, legacy_parts(agent, bucket.manifest_name), now) for agent in agents]


def read_raw(bucket: Bucket, agent: AgentName, now: str) -> tuple[Parts, bytes]:
    """Reads an agent's file of version 1 to be backed up and removed, whatever is wrong with it.

    Raises:
        UnsupportedFormat: It has a version that is not known.
    """
    parts = legacy_parts(agent, bucket.manifest_name)
    data = _read(bucket, parts)
    with suppress(Corruption):
        decode_legacy(data, bucket.path_of(parts), Scope(bucket.user, agent), now)
    return parts, data


def _read(bucket: Bucket, parts: Parts) -> bytes:
    with bucket.directory_at(parts[:-1]) as directory, trusted():
        return directory.read(parts[-1], MAX_LEGACY_BYTES)[0]


def base_image(bucket: Bucket, source: LegacySource) -> ManifestImage:
    """Returns a `memory.json` of version 1 as the state that a migration starts from.

    It may have come back over a later version. The fences remember revisions that were seen; the last one
    of all is not known then.
    """
    document = source.document
    fences = bucket.read_fences()
    revision = max(document.revision, fences.everything, *fences.agents.values())
    if bucket.manifest_name in fences.migrated:
        revision += LEAP
    last_updated = document.last_updated or _LONG_AGO
    manifest = Manifest(revision, last_updated, document.summaries, document.extra)
    with trusted():
        identity = bucket.directory.identify(bucket.manifest_name)
    return ManifestImage(manifest, source.data, identity)
