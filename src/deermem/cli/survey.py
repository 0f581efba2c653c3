"""What there is to say of a store and of one user: gathered without stopping at what is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from deermem.cli.denial import told_of_denial
from deermem.cli.exits import ExitCode, Report, report_of
from deermem.cli.version_one import only_looking
from deermem.errors import DeerMemError
from deermem.format.layout import DEFAULT_MANIFEST, JOURNAL, bucket_parts
from deermem.migration.looking import look_at_waiting, version_one_files
from deermem.model.identity import AgentName, Scope, UserId
from deermem.repository import MemoryRepository
from deermem.storage.filesystem.probe import ProbeReport, probe
from deermem.storage.mounts import Mount, mounted_at
from deermem.storage.ownership import foreign_owner, is_writable, why_unusable


@dataclass(slots=True)
class Root:
    """Describes a storage root."""

    path: str
    exists: bool
    writable: bool
    mount: Mount | None
    probe: ProbeReport
    warnings: list[str] = field(default_factory=list)
    problems: list[Report] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Returns the description as JSON."""
        document: dict[str, Any] = {
            "storageRoot": self.path,
            "exists": self.exists,
            "writable": self.writable,
        }
        if self.mount is not None:
            document["fileSystem"] = {
                "type": self.mount.type,
                "source": self.mount.source,
                "mountPoint": self.mount.point,
            }
        document["probe"] = self._probe_document()
        return document

    def _probe_document(self) -> dict[str, Any]:
        found = {
            "skipped": self.probe.skipped or self.probe.failure or None,
            "locks": self.probe.locks,
            "replaces": self.probe.replaces,
            "syncsFiles": self.probe.syncs_files,
            "syncsDirectories": self.probe.syncs_directories,
            "timestampNs": self.probe.timestamp_ns,
            "ignoresCase": self.probe.ignores_case,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(slots=True)
class Memory:
    """Describes what is stored of one user; `agents` counts the facts of each.

    `None` stands for what could not be read. It must never pass for nothing. `version_one` are the files that
    are still to be migrated.
    """

    user: UserId
    revision: int | None = None
    last_updated: str = ""
    agents: dict[str, int | None] = field(default_factory=dict)
    journal: str = "unknown"
    version_one: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)
    problems: list[Report] = field(default_factory=list)

    @property
    def facts(self) -> int | None:
        """How many facts there are that can be read."""
        counts = list(self.agents.values())
        known = [count for count in counts if count is not None]
        return None if self.revision is None or len(known) < len(counts) else sum(known)

    def document(self) -> dict[str, Any]:
        """Returns the description as JSON."""
        document: dict[str, Any] = {
            "userId": self.user.raw,
            "directory": "/".join(bucket_parts(self.user)) or ".",
            "revision": self.revision,
            "lastUpdated": self.last_updated or None,
            "facts": self.facts,
            "agents": [
                {"agentName": name} if count is None else {"agentName": name, "facts": count}
                for name, count in self.agents.items()
            ],
            "journal": self.journal,
            "versionOneFiles": list(self.version_one) or None,
        }
        return {key: value for key, value in document.items() if value is not None}


def survey_root(path: str) -> Root:
    """Looks at a storage root, or at the nearest directory above it that exists."""
    nearest = path
    while not os.path.lexists(nearest) and os.path.dirname(nearest) != nearest:
        nearest = os.path.dirname(nearest)
    mount = mounted_at(nearest)
    root = Root(path, nearest == path, is_writable(nearest), mount, probe(path))
    if not root.writable:
        message = f"{nearest} is {'not writable' if os.path.isdir(nearest) else 'not a directory'}"
        why = why_unusable(path)
        root.problems.append(Report("NotWritable", message, "" if why == message else why, ExitCode.DENIED))
    else:
        root.warnings += root.probe.warnings
    return root


@contextmanager
def noted(problems: list[Report], root: str, top: str = "") -> Iterator[None]:
    """Adds what goes wrong inside to a list, once, and goes on; `top` is the user's directory."""
    try:
        yield
    except (DeerMemError, OSError) as error:
        report = report_of(error, root)
        if isinstance(error, PermissionError):
            report = told_of_denial(report, error, root, top or root)
        if report not in problems:
            problems.append(report)


def _count_facts(repository: MemoryRepository, memory: Memory) -> None:
    root, user = repository.storage_root, memory.user
    memory.agents = dict.fromkeys(repository.list_agents(user.raw))
    for agent in memory.agents:
        with noted(memory.problems, root, os.path.join(root, *bucket_parts(user))):
            snapshot, problems = repository.readable_snapshot(Scope(user, AgentName(agent)))
            memory.agents[agent] = len(snapshot.facts)
            memory.problems += [report_of(problem, root) for problem in problems]
    # Last, since reading facts completes an interrupted transaction, and with it comes a new revision.
    manifest = repository.get_manifest(user.raw)
    memory.revision, memory.last_updated = manifest.revision, manifest.last_updated


def _count_version_one(repository: MemoryRepository, memory: Memory) -> None:
    """Counts what a user would have once migrated.

    Raises:
        DeerMemError: What stops the migration, and so every read.
    """
    waiting = look_at_waiting(repository, memory.user)
    memory.revision, memory.agents = waiting.revision, dict(waiting.agents)


def survey_users(repository: MemoryRepository) -> list[UserId]:
    """Returns every user, by bucket; the memory without a user comes first, if there is one."""
    named = [UserId(bucket, bucket) for bucket in repository.list_users()]
    nobody = os.path.lexists(os.path.join(repository.storage_root, DEFAULT_MANIFEST))
    return [UserId.parse(None), *named] if nobody else named


def survey_user(repository: MemoryRepository, user: UserId) -> Memory:
    """Counts what is stored of a user, and notes what cannot be read."""
    root = repository.storage_root
    memory = Memory(user)

    bucket = os.path.join(root, *bucket_parts(user))
    if user.bucket is not None and (foreign := foreign_owner(bucket, is_root=False)):
        memory.warnings.append(foreign)
    journal = os.path.join(bucket, JOURNAL)
    interrupted = os.path.lexists(journal)
    with noted(memory.problems, root, bucket):
        memory.version_one = version_one_files(repository, user)
    with noted(memory.problems, root, bucket), only_looking(repository):
        (_count_version_one if memory.version_one else _count_facts)(repository, memory)
    if interrupted:
        memory.journal = "present" if os.path.lexists(journal) else "completed"
    elif memory.revision is not None:
        memory.journal = "none"
    return memory
