"""Looks at one disk after an interruption: what the next access finds, and whether the store works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from deermem.errors import Corruption, RevisionConflict, UnsupportedFormat
from deermem.format.layout import BACKUP_SUFFIX, DEFAULT_MANIFEST, bucket_parts
from deermem.format.manifest_json import decode_manifest
from deermem.format.safety_json import decode_safety_copy, is_safety_copy, revision_in
from deermem.model.fact import FactDraft
from deermem.model.identity import FactId, Scope, UserId
from deermem.model.manifest import Manifest
from deermem.repository import MemoryRepository
from deermem.testing.crash_scenario import Laboratory
from deermem.testing.memory_model import MemoryModel, Observation, observe, public_name
from deermem.testing.simulated_disk import SimulatedDisk

PROBE: Final = FactId("probe")
LATE: Final = FactId("late")
TEXT: Final = "Written after the interruption."
BEFORE: Final = 0
AFTER: Final = 1

_OURS: Final = frozenset(["memory.json", ".memory.lock", ".memory.fences.json"])


class Problem(NamedTuple):
    """Is something that is wrong with a disk state, however it came about."""

    kind: str
    detail: str


class Examiner:
    """Recovers copies of disks, and remembers what it found, since equal disks recover equally.

    `memories` lists every memory that was seen; those before and after the operation come first.
    `shown` are manifests that a read may show while a journal waits.

    Args:
        laboratory: Starts the processes.
        losses: How many losses of power to try after a write.
        seed: Chooses them where there are more.
    """

    def __init__(self, laboratory: Laboratory, losses: int, seed: int) -> None:
        self.memories: list[Observation] = []
        self.shown: list[Manifest] = []
        self._laboratory = laboratory
        self._scenario = laboratory.scenario
        self._losses = losses
        self._seed = seed
        start = laboratory.initial_disk().tree()
        self._shared = {path: data for path, data in start.items() if self._is_shared(path)}
        self._at_first = self._manifest_in(start)
        self._found: dict[bytes, int | Problem] = {}
        self._written: dict[tuple[bytes, MemoryModel], list[Problem]] = {}

    def read(self, disk: SimulatedDisk, first: int, answers: list[bool] | None = None) -> Observation:
        """Reads everything, and so recovers the disk itself.

        Args:
            disk: What to read.
            first: Which kind of read comes first, and therefore recovers.
            answers: Gets an entry when that first read returned.
        """
        process, repository = self._laboratory.open(disk, "recovery")
        self._access(repository)
        seen = observe(
            repository,
            self._scenario.user_id,
            self._scenario.agents,
            (*self._scenario.fact_ids(), PROBE),
            first=first,
            answered=lambda: None if answers is None else answers.append(True),
        )
        if process.handles:
            raise ValueError(f"handles left open: {sorted(handle.path for handle in process.handles)}")
        return seen

    def number_of(self, seen: Observation) -> int:
        """Returns the place of a memory among those that were seen."""
        if seen not in self.memories:
            self.memories.append(seen)
        return self.memories.index(seen)

    def find(self, disk: SimulatedDisk, key: bytes) -> int | Problem:
        """Returns which memory the next access finds on a disk; `key` is the disk's digest."""
        known = self._found.get(key)
        if known is None:
            try:
                recovered = disk.fork()
                seen = self.read(recovered, key[0])
                known = next(self._problems_of(seen, recovered), None) or self.number_of(seen)
            except Exception as error:  # noqa: BLE001 - a recovery must not raise at all
                known = Problem(f"recovery raised {type(error).__name__}", str(error))
            self._found[key] = known
        return known

    def _is_shared(self, path: str) -> bool:
        return bool(self._scenario.snapshot) and path.startswith(f"{self._scenario.snapshot}/")

    def _manifest_in(self, tree: Mapping[str, bytes | None]) -> Manifest | None:
        """Returns what readers may have seen of `memory.json` before the operation."""
        path = "/".join((*bucket_parts(UserId.parse(self._scenario.user_id)), DEFAULT_MANIFEST))
        try:
            return decode_manifest(tree.get(path) or b"", path)
        except (Corruption, UnsupportedFormat):
            return None

    def _problems_of(self, seen: Observation, disk: SimulatedDisk) -> Iterator[Problem]:
        tree = disk.tree()
        yield from self._problems_of_other_files(seen, tree)
        first, committed = self._at_first, [*self.shown, *(memory.manifest for memory in self.memories)]
        if first is not None and seen.manifest != first and seen.manifest.revision <= first.revision:
            detail = f"{seen.manifest.revision}, after {first.revision} had been seen"
            yield Problem("a revision is used for two states", detail)
        if seen.earlier is not None and seen.earlier not in committed:
            detail = f"revision {seen.earlier.revision} of memory.json"
            yield Problem("a reader saw an uncommitted state", detail)

    def _problems_of_other_files(
        self, seen: Observation, tree: Mapping[str, bytes | None]
    ) -> Iterator[Problem]:
        if {path: data for path, data in tree.items() if self._is_shared(path)} != self._shared:
            yield Problem("a file was written in place", "its other name shows that")
        for path in self._scenario.backed_up:
            files = self._scenario.files
            original = files.get(path + BACKUP_SUFFIX) or files[path]
            if original not in (tree.get(path), tree.get(path + BACKUP_SUFFIX)):
                yield Problem("a file of version 1 is lost, and so is its backup", path)
        gone = [path for path in self._scenario.removed_files if path not in tree]
        kept = any(fact.scope.agent in self._scenario.cleared for fact in seen.facts)
        if len(gone) != (0 if kept else len(self._scenario.removed_files)):
            yield Problem("files of the scope are not as its facts are", f"missing: {gone}")
        copies = {path.rpartition("/")[2]: data for path, data in tree.items() if "/.safety/" in path}
        wanted = self._scenario.safety_copy
        # The write that comes after the interruption takes a revision, too.
        revision = seen.manifest.revision - any(fact.id == PROBE for fact in seen.facts)
        if ((revision_in(wanted) or revision + 1) <= revision) != (wanted in copies):
            yield Problem("the safety copy is not as the memory is", f"there are {sorted(copies)}")
        for name, data in copies.items():
            decode_safety_copy(data or b"", name)

    def write(self, disk: SimulatedDisk, found: int) -> list[Problem]:
        """Writes to copies of a disk as the first access after the interruption, and says what is wrong."""
        before = self.memories[found].model()
        copy = disk.fork()
        _, repository = self._laboratory.open(copy, "write")
        scope = Scope.of(self._scenario.user_id)
        try:
            self._access(repository)
            delta = repository.upsert_fact(scope, FactDraft(TEXT, id=PROBE))
        except Exception as error:  # noqa: BLE001 - the next write must work
            return [Problem(f"the next write raised {type(error).__name__}", str(error))]
        if delta.revision != before.revision + 1:
            detail = f"{delta.revision} after {before.revision}"
            return [Problem("the next write got a wrong revision", detail)]
        after = before.put(scope.agent, PROBE, TEXT).committed()
        key = (copy.digest(), after)
        if key not in self._written:
            self._written[key] = list(self._problems_of_a_write(copy, after))
        return [*self._written[key], *self._problems_of_late_writes(disk, found)]

    def _access(self, repository: MemoryRepository) -> None:
        """Does what every access of the scenario begins with."""
        if self._scenario.first is not None:
            self._scenario.first.run(repository)

    def difference(self, seen: Observation) -> str:
        """Says in a line how a memory differs from those before and after the operation."""
        before, after, found = (memory.model() for memory in (*self.memories[: AFTER + 1], seen))
        parts = [f"revision {found.revision} (before: {before.revision}, after: {after.revision})"]
        for name, model in (("before", before), ("after", after)):
            missing = sorted(fact.fact_id for fact in model.facts - found.facts)
            added = sorted(fact.fact_id for fact in found.facts - model.facts)
            summaries = "" if found.summaries == model.summaries else ", other summaries"
            parts.append(f"compared with {name}: lacks {missing}, has {added} beyond it{summaries}")
        return "; ".join(parts)

    def _problems_of_a_write(self, disk: SimulatedDisk, after: MemoryModel) -> Iterator[Problem]:
        names = {fact.fact_id + ".md" for fact in after.facts} | _OURS
        files = [path for path, data in disk.tree().items() if data is not None]
        strays = [
            path
            for path in files
            if path.rpartition("/")[2] not in names
            and not is_safety_copy(tuple(path.split("/")[-2:]))
            and path not in self._scenario.removed_files
            and path.removesuffix(BACKUP_SUFFIX) not in self._scenario.backed_up
        ]
        if strays:
            yield Problem("files left over after the next write", ", ".join(strays))
        for survivor in disk.crash_states(self._losses, self._seed):
            found = self.find(survivor.disk, survivor.digest)
            if isinstance(found, Problem):
                detail = f"{found.detail} (lost: {survivor.lost})"
                yield Problem(f"after the next write: {found.kind}", detail)
            elif self.memories[found].model() != after:
                difference = self.difference(self.memories[found])
                yield Problem("another memory after the next write", f"{difference} (lost: {survivor.lost})")

    def _problems_of_late_writes(self, disk: SimulatedDisk, found: int) -> Iterator[Problem]:
        """Writes what was based on the time before the operation cleared a scope (guarantee G7).

        If the operation took place, its fence must refuse that; if not, there must be no fence.
        """
        for agent in self._scenario.cleared if found in (BEFORE, AFTER) else ():
            _, repository = self._laboratory.open(disk.fork(), "write")
            self._access(repository)
            repository.upsert_fact(Scope.of(self._scenario.user_id), FactDraft(TEXT, id=PROBE))
            scope = Scope.of(self._scenario.user_id, public_name(agent))
            base = self.memories[BEFORE].manifest.revision
            try:
                repository.upsert_fact(scope, FactDraft(TEXT, id=LATE), expected_manifest_revision=base)
            except RevisionConflict:
                refused = True
            except Exception as error:  # noqa: BLE001 - it must be refused for the right reason
                yield Problem(f"a late write raised {type(error).__name__}", str(error))
                continue
            else:
                refused = False
            if refused and found == BEFORE:
                yield Problem("the fence of a clear that did not happen", str(scope))
            if not refused and found == AFTER:
                yield Problem("a late write brought a cleared scope back", str(scope))
