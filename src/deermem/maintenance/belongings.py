"""What in a user bucket is DeerMem's, and what is the host's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from deermem.format.journal_json import Parts, is_staged_name
from deermem.format.layout import (
    AGENTS,
    BACKUP_SUFFIX,
    DEFAULT_MANIFEST,
    ERASED,
    FACTS,
    FENCES,
    JOURNAL,
    LOCK,
    METADATA,
    QUARANTINE,
    RECOVERY,
    SAFETY,
    USERS,
    fact_id_of,
    is_in_own_shard,
    is_shard,
)
from deermem.maintenance.check_names import begins_as_ours, kind_of_stray
from deermem.model.identity import stored_agent_name
from deermem.storage.bucket import Bucket
from deermem.storage.fact_files import holds_a_fact
from deermem.storage.opening import trusted
from deermem.storage.port import Directory, EntryKind

_TREES: Final = frozenset([RECOVERY, QUARANTINE, SAFETY])


@dataclass(slots=True)
class Belongings:
    """Lists what lies in a bucket, as paths below it.

    `settled` are the files that say what state the bucket is in: `memory.json`, the journal, the fences.
    `files` are all others of ours, `links` what lies in place of one of ours and is no file, `directories`
    ours from the deepest up. `kept` is the host's; names of directories end in a slash.
    """

    settled: list[Parts] = field(default_factory=list)
    files: list[Parts] = field(default_factory=list)
    links: list[Parts] = field(default_factory=list)
    directories: list[Parts] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def ours(self) -> list[Parts]:
        """Everything of ours but directories and the lock, sorted."""
        return sorted([*self.settled, *self.files, *self.links])


def survey(bucket: Bucket) -> Belongings:
    """Lists what lies in a bucket; reads names, and of strange files in `facts/` the first lines.

    The caller holds the user's lock, or knows that what it gets may change.
    """
    surveyor = _Surveyor(bucket)
    surveyor.look_at_bucket(bucket.directory)
    return surveyor.found


class _Surveyor:
    def __init__(self, bucket: Bucket) -> None:
        self.found = Belongings()
        self._manifest = bucket.manifest_name
        self._manifests = frozenset([bucket.manifest_name, DEFAULT_MANIFEST])
        # The root bucket lies around the others.
        self._of_others = frozenset([USERS, ERASED]) if bucket.user.bucket is None else frozenset()

    def look_at_bucket(self, directory: Directory) -> None:
        settled = frozenset([self._manifest, JOURNAL, FENCES])
        for name, status in sorted(directory.statuses().items()):
            parts = (name,)
            if name == LOCK or name in self._of_others:
                continue
            if name in settled and status.kind is EntryKind.FILE:
                self.found.settled.append(parts)
            elif name in _TREES and status.kind is EntryKind.DIRECTORY:
                self._take_tree(directory, parts)
            elif name == AGENTS and status.kind is EntryKind.DIRECTORY:
                with trusted(), directory.child(name) as agents:
                    self._look_at_agents(agents)
                self.found.directories.append(parts)
            elif name in settled or name in _TREES or name == AGENTS or self._is_ours(name):
                self._take(parts, status.kind)
            else:
                self._keep(parts, status.kind)

    def _look_at_agents(self, agents: Directory) -> None:
        for name, status in sorted(agents.statuses().items()):
            parts = (AGENTS, name)
            if stored_agent_name(name) is None or status.kind is not EntryKind.DIRECTORY:
                self._keep(parts, status.kind)
                continue
            with trusted(), agents.child(name) as agent:
                self._look_at_agent(agent, parts)
            self.found.directories.append(parts)

    def _look_at_agent(self, agent: Directory, above: Parts) -> None:
        for name, status in sorted(agent.statuses().items()):
            parts = (*above, name)
            if name == METADATA and status.kind is EntryKind.DIRECTORY:
                self._take_tree(agent, parts)
            elif name == FACTS and status.kind is EntryKind.DIRECTORY:
                self._look_at_facts(agent, parts)
            elif name in (METADATA, FACTS) or self._is_ours(name):
                self._take(parts, status.kind)
            else:
                self._keep(parts, status.kind)

    def _look_at_facts(self, parent: Directory, above: Parts) -> None:
        """Looks into `facts` and whatever lies below it: sync clients copy whole shards, too."""
        with trusted(), parent.child(above[-1]) as directory:
            for name, status in sorted(directory.statuses().items()):
                parts = (*above, name)
                if status.kind is EntryKind.DIRECTORY:
                    self._look_at_facts(directory, parts)
                elif _is_of_facts(directory, parts, status.kind):
                    self._take(parts, status.kind)
                else:
                    self._keep(parts, status.kind)
        self.found.directories.append(above)

    def _take_tree(self, parent: Directory, above: Parts) -> None:
        with trusted(), parent.child(above[-1]) as directory:
            for name, status in sorted(directory.statuses().items()):
                parts = (*above, name)
                if status.kind is EntryKind.DIRECTORY:
                    self._take_tree(directory, parts)
                else:
                    self._take(parts, status.kind)
        self.found.directories.append(above)

    def _take(self, parts: Parts, kind: EntryKind) -> None:
        if kind is EntryKind.FILE:
            self.found.files.append(parts)
        elif kind is EntryKind.DIRECTORY:
            self._keep(parts, kind)
        else:
            self.found.links.append(parts)

    def _keep(self, parts: Parts, kind: EntryKind) -> None:
        self.found.kept.append("/".join(parts) + ("/" if kind is EntryKind.DIRECTORY else ""))

    def _is_ours(self, name: str) -> bool:
        """Tells whether a name in a directory that is shared with the host is one of ours."""
        if name in self._manifests or name.endswith(BACKUP_SUFFIX) or is_staged_name(name):
            return True
        if kind_of_stray(name) is None or not begins_as_ours(name, self._manifest):
            return False
        # A copy or a temporary file of a JSON file, and not of a note that happens to begin like one.
        return re.search(r"\.json\b|\.tmp$", name) is not None


def _is_of_facts(directory: Directory, parts: Parts, kind: EntryKind) -> bool:
    """Tells whether an entry below `facts` is a fact, or was made of one."""
    name, shard = parts[-1], parts[-2]
    fact_id = fact_id_of(name)
    if kind is not EntryKind.FILE:
        return fact_id is not None or is_shard(name)
    if fact_id is not None and is_shard(shard) and is_in_own_shard(fact_id, shard):
        return True
    return kind_of_stray(name) is not None or holds_a_fact(directory, name)
