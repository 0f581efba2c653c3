"""`.memory.fences.json`: the revisions of the last clears (guarantee G7).

{"format": 1, "everything": 0, "agents": {"research-agent": 12}, "migrated": {"memory.json": SHA-256}}

`migrated` is there once a file of version 1 was.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any, Final

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.strict_json import dump_document, load_object
from deermem.model.identity import AgentName, stored_agent_name
from deermem.model.resolution import Fences

FENCES_FORMAT: Final = 1
MAX_FENCES_BYTES: Final = 4_000_000

_DIGEST = re.compile(r"[0-9a-f]{64}")


def encode_fences(fences: Fences) -> bytes:
    """Returns the bytes of the file."""
    agents = dict(sorted(fences.agents.items()))
    document: dict[str, Any] = {"format": FENCES_FORMAT, "everything": fences.everything, "agents": agents}
    if fences.migrated:
        document["migrated"] = dict(sorted(fences.migrated.items()))
    return dump_document(document)


def decode_fences(data: bytes, path: str) -> Fences:
    """Reads the file.

    Raises:
        Corruption: The document breaks a rule.
        UnsupportedFormat: The document is of a later format.
    """
    document = load_object(data, path)
    if document.get("format") != FENCES_FORMAT:
        raise UnsupportedFormat(path, str(document.get("format"))[:40], str(FENCES_FORMAT))
    agents = document.get("agents", {})
    if not isinstance(agents, dict):
        raise Corruption(path, "agents: must be an object")
    known: dict[AgentName, int] = {}
    for name, revision in agents.items():
        agent = stored_agent_name(name)
        if agent is None:
            raise Corruption(path, "agents: a key is no agent name")
        known[agent] = _revision(revision, path)
    migrated = document.get("migrated", {})
    if not isinstance(migrated, dict) or not all(map(_is_digest, migrated.values())):
        raise Corruption(path, "migrated: must be an object of SHA-256 digests")
    return Fences(
        _revision(document.get("everything"), path), MappingProxyType(known), MappingProxyType(migrated)
    )


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _revision(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Corruption(path, "a revision is no integer of at least 0")
    return value
