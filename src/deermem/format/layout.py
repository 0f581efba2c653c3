"""Every path and file name below the storage root.

    {storage root}/
    └── users/{bucket}/                 the user bucket; the storage root itself for no user
        ├── memory.json                 the manifest
        ├── .memory.lock                the user's lock
        ├── .memory.journal.json        only while a transaction runs or is being recovered
        ├── .memory.fences.json         revisions of the last clears (guarantee G7)
        ├── .recovery/                  images that a transaction stages
        └── agents/{agent}/facts/{first two hex digits of SHA-256(id)}/{id}.md
    .erased/{digest}.json               up to which revision an erased user's memory had come

Paths are relative to the user bucket, with `/` between the parts.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from deermem.errors import InvalidInputError
from deermem.model.identity import MAX_FACT_ID, AgentName, FactId, UserId, stored_agent_name

USERS: Final = "users"
AGENTS: Final = "agents"
FACTS: Final = "facts"
LOCK: Final = ".memory.lock"
JOURNAL: Final = ".memory.journal.json"
FENCES: Final = ".memory.fences.json"
RECOVERY: Final = ".recovery"
QUARANTINE: Final = ".quarantine"
SAFETY: Final = ".safety"
ERASED: Final = ".erased"
DEFAULT_MANIFEST: Final = "memory.json"
FACT_SUFFIX: Final = ".md"
BACKUP_SUFFIX: Final = ".v1.bak"
AGENT_CONFIG: Final = "config.yaml"
AGENT_FILES: Final = (AGENT_CONFIG, "SOUL.md")
METADATA: Final = ".metadata"

_MANIFEST_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\.json")
_FACT_FILE = re.compile(rf"(?!(?i:readme)\.md$)[A-Za-z0-9_-]{{1,{MAX_FACT_ID}}}\.md")
_SHARD = re.compile(r"[0-9a-f]{2}")
_WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)


def bucket_parts(user: UserId) -> tuple[str, ...]:
    """Returns the directories from the storage root to a user's bucket."""
    return () if user.bucket is None else (USERS, user.bucket)


def erasure_name(user: UserId) -> str:
    """Returns the file below `.erased` that is about a user; the name does not say whose it is."""
    bucket = "/".join(bucket_parts(user)) or "."
    return f"{sha256(bucket.encode('ascii')).hexdigest()[:32]}.json"


def shard_of(fact_id: FactId) -> str:
    """Returns the fact's shard: the first two hex digits of the SHA-256 of its id (plan section 3)."""
    return sha256(fact_id.encode("ascii")).hexdigest()[:2]


def facts_parts(agent: AgentName) -> tuple[str, ...]:
    """Returns the directories from the bucket to an agent's shards."""
    return AGENTS, agent, FACTS


def fact_parts(agent: AgentName, fact_id: FactId) -> tuple[str, ...]:
    """Returns the directories from the bucket to a fact file, and its name."""
    return AGENTS, agent, FACTS, shard_of(fact_id), fact_id + FACT_SUFFIX


def legacy_parts(agent: AgentName, manifest_name: str) -> tuple[str, ...]:
    """Returns where version 1 kept an agent's facts and summaries, from the bucket on."""
    return AGENTS, agent, manifest_name


def fact_id_of(file_name: str) -> FactId | None:
    """Returns the id that a file name stands for; `None` for names that no fact has.

    Copies that sync tools and editors leave (`fact_a 2.md`, `fact_a.sync-conflict-….md`, `.#x`) and
    `README.md` are no facts.
    """
    return FactId(file_name[: -len(FACT_SUFFIX)]) if _FACT_FILE.fullmatch(file_name) else None


def is_in_own_shard(fact_id: FactId, shard: str) -> bool:
    """Tells whether a fact's file belongs into this shard."""
    return sha256(fact_id.encode("ascii")).digest()[0] == int(shard, 16)


def is_shard(name: str) -> bool:
    """Tells whether a directory name is one of the 256 shards."""
    return _SHARD.fullmatch(name) is not None


def parse_fact_parts(parts: tuple[str, ...]) -> tuple[AgentName, FactId] | None:
    """Returns the agent and the fact whose file this path is; `None` for any other path."""
    if len(parts) != 5 or parts[0] != AGENTS or parts[2] != FACTS:
        return None
    agent, fact_id = stored_agent_name(parts[1]), fact_id_of(parts[4])
    if agent is None or fact_id is None or parts[3] != shard_of(fact_id):
        return None
    return agent, fact_id


def is_fact_place(parts: tuple[str, ...]) -> bool:
    """Tells whether a path is one that a listing takes for a fact's, in whatever shard."""
    return (
        len(parts) == 5
        and parts[0] == AGENTS
        and stored_agent_name(parts[1]) is not None
        and parts[2] == FACTS
        and is_shard(parts[3])
        and fact_id_of(parts[4]) is not None
    )


def is_agent_file(parts: tuple[str, ...]) -> bool:
    """Tells whether a path is a file of a custom agent's that goes when the agent is deleted."""
    if len(parts) < 3 or parts[0] != AGENTS or stored_agent_name(parts[1]) is None:
        return False
    if len(parts) == 4:
        return parts[2] == METADATA and parts[3] not in ("", ".", "..")
    return len(parts) == 3 and parts[2] in AGENT_FILES


def check_manifest_name(name: str) -> str:
    """Returns the manifest's file name.

    Raises:
        InvalidInputError: It is not a plain `*.json` name.
    """
    if not isinstance(name, str) or len(name) > 100 or not _MANIFEST_NAME.fullmatch(name):
        raise InvalidInputError("manifest_filename", "must be a plain file name that ends in .json")
    return name


def is_windows_device(name: str) -> bool:
    """Tells whether Windows takes a name, with any suffix, for a device (`CON`, `nul.md`)."""
    return name.split(".", 1)[0].rstrip().casefold() in _WINDOWS_DEVICES
