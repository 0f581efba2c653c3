"""What agents a user has: each with what makes it one, without reading a fact."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from deermem.format.layout import AGENT_CONFIG, AGENTS, METADATA, is_agent_file, legacy_parts
from deermem.model.identity import AgentName
from deermem.storage.bucket import Bucket


class AgentEntry(NamedTuple):
    """Is an agent that has a `config.yaml`, which makes it a custom one, or facts."""

    name: AgentName
    is_custom: bool
    facts: int


def list_entries(bucket: Bucket) -> tuple[AgentEntry, ...]:
    """Returns the agents of a bucket, sorted by name; facts are counted, not read.

    Raises:
        Corruption: A directory or a link lies where a fact should be.
    """
    entries = (
        AgentEntry(agent, is_custom(bucket, agent), len(bucket.list_facts(agent)))
        for agent in bucket.agent_directories()
    )
    return tuple(entry for entry in entries if entry.is_custom or entry.facts)


def agent_files(bucket: Bucket, agent: AgentName) -> list[tuple[str, ...]]:
    """Lists the files that are known to be an agent's beside its facts, one of version 1 included."""
    found: list[tuple[str, ...]] = []
    for parts in ((AGENTS, agent), (AGENTS, agent, METADATA)):
        with suppress(FileNotFoundError), bucket.directory_at(parts) as directory:
            found.extend((*parts, name) for name, file in directory.identities().items() if file)
    legacy = legacy_parts(agent, bucket.manifest_name)
    return [parts for parts in found if parts == legacy or is_agent_file(parts)]


def is_custom(bucket: Bucket, agent: AgentName) -> bool:
    """Tells whether an agent has a `config.yaml`."""
    return (AGENTS, agent, AGENT_CONFIG) in agent_files(bucket, agent)
