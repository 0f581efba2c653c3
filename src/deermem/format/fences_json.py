"""`.memory.fences.json`: the revisions of the last clears (guarantee G7).

{"format": 1, "everything": 0, "agents": {"research-agent": 12}}
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.strict_json import dump_document, load_object
from deermem.model.identity import AgentName, stored_agent_name
from deermem.model.resolution import Fences

FENCES_FORMAT: Final = 1
MAX_FENCES_BYTES: Final = 4_000_000


def encode_fences(fences: Fences) -> bytes:
    """Returns the bytes of the file."""
    agents = dict(sorted(fences.agents.items()))
    return dump_document({"format": FENCES_FORMAT, "everything": fences.everything, "agents": agents})


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
    return Fences(_revision(document.get("everything"), path), MappingProxyType(known))


def _revision(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Corruption(path, "a revision is no integer of at least 0")
    return value
