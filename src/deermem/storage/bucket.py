"""An open user bucket: finds, reads and lists what lies in it, without locks and without a cache."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final, NamedTuple, cast

from deermem.errors import Corruption, InvalidInputError, LegacyFormat, UnsupportedFormat
from deermem.format.fact_markdown import decode_fact
from deermem.format.fences_json import MAX_FENCES_BYTES, decode_fences
from deermem.format.layout import (
    AGENTS,
    FACT_SUFFIX,
    FACTS,
    FENCES,
    JOURNAL,
    fact_id_of,
    fact_parts,
    facts_parts,
    is_in_own_shard,
    is_shard,
    shard_of,
)
from deermem.format.legacy_json import MAX_LEGACY_BYTES
from deermem.format.manifest_json import decode_manifest
from deermem.model.fact import Fact
from deermem.model.hand_edits import is_hand_edit
from deermem.model.identity import AgentName, FactId, Scope, UserId, stored_agent_name
from deermem.model.manifest import NO_MANIFEST, Manifest
from deermem.model.resolution import NO_FENCES, Fences
from deermem.storage.fact_files import MAX_FACT_FILE_BYTES, holds_a_fact, id_in, is_own_name
from deermem.storage.open_directories import OpenDirectories
from deermem.storage.opening import refuse_devices, trusted
from deermem.storage.port import Directory, FileIdentity, UnexpectedFileType

Problem = Corruption | UnsupportedFormat


class ManifestImage(NamedTuple):
    """Is `memory.json` as it was read; `identity` is `None` when there is no such file."""

    manifest: Manifest
    data: bytes
    identity: FileIdentity | None


ABSENT_MANIFEST: Final = ManifestImage(NO_MANIFEST, b"", None)


class StoredFact(NamedTuple):
    """Is a fact with the identity of the file that it was read from.

    `identity` is `None` where it proves nothing: the file was so young when it was read that a
    later version may have the same time stamp.
    """

    fact: Fact
    identity: FileIdentity | None


_STEM: Final = -len(FACT_SUFFIX)


class FactFile(NamedTuple):
    """Names a fact file that was found in a listing."""

    shard: str
    fact_id: FactId

    @property
    def misplaced(self) -> bool:
        """Whether the file lies in a shard that is not its own."""
        return not is_in_own_shard(self.fact_id, self.shard)


class Bucket(OpenDirectories):
    """Reads one user's files through an open directory."""

    def __init__(
        self, directory: Directory, user: UserId, manifest_name: str, *, windows_names: bool = False
    ) -> None:
        super().__init__(directory)
        self.user = user
        self.manifest_name = manifest_name
        self._windows_names = windows_names

    def journal_is_there(self) -> bool:
        """Tells whether a transaction runs or was interrupted."""
        with trusted():
            try:
                self.directory.identify(JOURNAL)
            except FileNotFoundError:
                return False
            return True

    def read_manifest(self, known: ManifestImage = ABSENT_MANIFEST) -> ManifestImage:
        """Reads `memory.json`; bytes that are those of `known` are not parsed again.

        Raises:
            LegacyFormat: The file is still to be migrated.
            Corruption: The file cannot be trusted, or is missing although facts are there.
        """
        with trusted():
            try:
                data, identity = self.directory.read(self.manifest_name, MAX_LEGACY_BYTES)
            except FileNotFoundError:
                return self._confirm_absence()
        if known.identity is not None and data == known.data:
            return ManifestImage(known.manifest, known.data, identity)
        return ManifestImage(decode_manifest(data, self.path_of((self.manifest_name,))), data, identity)

    def manifest_on_disk(self) -> tuple[bytes, int | None]:
        """Returns the bytes of `memory.json` and its revision, whatever else lies in the bucket.

        Without a manifest the revision is 0; one of version 1 has none.
        """
        data = self.manifest_bytes()
        if data is None:
            return b"", 0
        try:
            return data, decode_manifest(data, self.path_of((self.manifest_name,))).revision
        except LegacyFormat:
            return data, None

    def manifest_bytes(self) -> bytes | None:
        """Returns the bytes of `memory.json`, whatever they are; `None` when there is none."""
        with trusted():
            try:
                return self.directory.read(self.manifest_name, MAX_LEGACY_BYTES)[0]
            except FileNotFoundError:
                return None

    def _confirm_absence(self) -> ManifestImage:
        """Makes sure that "no such file" means that nothing was ever stored.

        A caching network client may say ENOENT of a file that is there; its directory tells.
        """
        if self.manifest_name in self.directory.names():
            raise OSError(errno.ESTALE, "a file is listed but cannot be opened", self.manifest_name)
        for agent in self.agents():
            if self.list_facts(agent):
                raise Corruption(
                    self.path_of((self.manifest_name,)),
                    f"is missing although facts of {agent} are there",
                    "put the file back from a backup; do not start with an empty one",
                )
        return ABSENT_MANIFEST

    def read_fences(self) -> Fences:
        """Reads the revisions of the last clears."""
        with trusted():
            try:
                data, _ = self.directory.read(FENCES, MAX_FENCES_BYTES)
            except FileNotFoundError:
                return NO_FENCES
        return decode_fences(data, self.path_of((FENCES,)))

    def read_fact(self, scope: Scope, fact_id: FactId) -> StoredFact | None:
        """Reads one fact by its path, without looking at any other.

        Raises:
            Corruption: The file cannot be trusted.
            InvalidInputError: On a file system that ignores case, another fact has this name; or it
                is that of a device.
        """
        if self._windows_names:
            refuse_devices(scope.agent, fact_id)
        parts = fact_parts(scope.agent, fact_id)
        name = parts[-1]
        try:
            with self.directory_at(parts[:-1]) as shard, trusted():
                data, identity = shard.read(name, MAX_FACT_FILE_BYTES)
                if not is_own_name(shard, name):
                    raise InvalidInputError("id", f"{fact_id!r} differs only in case from another fact's id")
        except FileNotFoundError:
            return None
        path = self.path_of(parts)
        return StoredFact(decode_fact(data, path=path, scope=scope, fact_id=fact_id), identity)

    def agents(self) -> tuple[AgentName, ...]:
        """Returns the agents that have a directory for facts, or a version-1 file of them, sorted."""
        return tuple(agent for agent in self.agent_directories() if self._has_memory(agent))

    def agent_directories(self) -> list[AgentName]:
        """Returns the agents that have a directory, sorted."""
        try:
            with self.directory_at((AGENTS,)) as directory, trusted():
                entries = directory.identities().items()
        except FileNotFoundError:
            return []
        # A stray file that is named like an agent is none.
        return sorted(agent for name, file in entries if file is None and (agent := stored_agent_name(name)))

    def _has_memory(self, agent: AgentName) -> bool:
        try:
            with self.directory_at((AGENTS, agent)) as directory, trusted():
                names = directory.names()
                if self.manifest_name not in names:
                    directory.child(FACTS).close()
        except FileNotFoundError:
            return False
        return True

    def list_facts(self, agent: AgentName) -> list[FactFile]:
        """Lists an agent's fact files; foreign files and stray copies are left out.

        In the shard that it belongs to a file is known by its name alone; elsewhere it may be a note.

        Raises:
            Corruption: A directory or a link lies where a fact should be.
        """
        found: list[FactFile] = []
        for shard, directory in self._shards(agent):
            for name, identity in directory.identities().items():
                fact_id = fact_id_of(name)
                if fact_id is None:
                    continue
                if not is_in_own_shard(fact_id, shard):
                    if holds_a_fact(directory, name):
                        found.append(FactFile(shard, fact_id))
                    continue
                if identity is None:
                    path = self.path_of((*facts_parts(agent), shard, name))
                    raise Corruption(path, "is not a regular file")
                found.append(FactFile(shard, fact_id))
        return found

    def read_facts(
        self,
        scope: Scope,
        known: Mapping[FactId, StoredFact],
        young_after: int | None,
        problems: list[Problem] | None = None,
    ) -> dict[FactId, StoredFact]:
        """Reads all facts of a scope, and only those that changed since `known` was read.

        Args:
            scope: The scope to read.
            known: Facts that were read before; one is taken over when its file has the same identity.
            young_after: Files with a later modification time (ns) get no identity in the result;
                `None` gives none to any.
            problems: Collects what is wrong with files that cannot be read; without it the first
                one is raised.
        """
        found: dict[FactId, StoredFact] = {}
        oldest = 0 if young_after is None else young_after
        for shard, directory in self._shards(scope.agent, problems):
            # Without anything to compare with, the identities that reading shows are enough.
            entries = directory.identities() if known else dict.fromkeys(directory.names())
            for name, identity in entries.items():
                if identity is not None:
                    # What has the identity of a known fact's file has its name, too: it needs no check.
                    before = known.get(cast("FactId", name[:_STEM]))
                    if before is not None and before.identity == identity:
                        found[before.fact.id] = before
                        continue
                fact_id = fact_id_of(name)
                if fact_id is None:
                    continue
                try:
                    fact, proof = self._read_listed(directory, shard, scope, fact_id)
                except (Corruption, UnsupportedFormat) as error:
                    if problems is None:
                        raise
                    problems.append(error)
                    continue
                if fact is None:
                    continue
                before = known.get(fact_id)
                if before is not None and is_hand_edit(before.fact, fact):
                    fact = before.fact
                found[fact_id] = StoredFact(fact, proof if proof.mtime_ns < oldest else None)
        return found

    def _read_listed(
        self, directory: Directory, shard: str, scope: Scope, fact_id: FactId
    ) -> tuple[Fact | None, FileIdentity]:
        """Reads a fact file that a listing showed; no fact if it only has a fact's name."""
        name = fact_id + FACT_SUFFIX
        try:
            data, identity = directory.read(name, MAX_FACT_FILE_BYTES)
            if is_in_own_shard(fact_id, shard):
                return decode_fact(data, path="", scope=scope, fact_id=fact_id), identity
        except UnexpectedFileType as error:
            raise Corruption(error.path, error.reason) from None
        except (Corruption, UnsupportedFormat) as error:
            # The path is put together only when it is needed: that takes as long as opening the file.
            error.path = self.path_of((*facts_parts(scope.agent), shard, name))
            error.args = (error.path, *error.args[1:])
            raise
        if id_in(data) == fact_id:
            path = self.path_of((*facts_parts(scope.agent), shard, name))
            raise Corruption(path, f"lies in the wrong shard, not in {shard_of(fact_id)}")
        return None, identity

    def _shards(
        self, agent: AgentName, problems: list[Problem] | None = None
    ) -> Iterator[tuple[str, Directory]]:
        """Opens one shard after the other; one that cannot be trusted is raised, or noted in `problems`."""
        if self._windows_names:
            refuse_devices(agent)
        with ExitStack() as stack:
            try:
                facts = stack.enter_context(self.directory_at(facts_parts(agent)))
            except FileNotFoundError:
                return
            for name in filter(is_shard, facts.names()):
                try:
                    shard = facts.child(name)
                except UnexpectedFileType as error:
                    problem = Corruption(error.path, error.reason)
                    if problems is None:
                        raise problem from None
                    problems.append(problem)
                    continue
                with trusted(), shard:
                    yield name, shard
