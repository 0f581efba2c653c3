"""The rules of a storage for its seams: what passes them, and what its own may do."""

# ruff: noqa: D102 - the name of a test is its claim

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from deermem.errors import DeerMemError
from deermem.model.changes import ANYTHING, AtRevision, ChangeSet, Delete, Delta, Upsert
from deermem.model.identity import UserId
from deermem.model.manifest import NO_MANIFEST
from deermem.model.summaries import Summaries, SummaryPatch
from deermem.repository import MemoryRepository
from deermem.repository.seams import check_passed
from deermem.storage.view import EmptyView, View
from deermem.testing.claims import allowed, refused, require
from deermem.testing.places import write_file
from deermem.testing.storage_samples import HERE, OTHER_AGENT, StorageRules, bucket_of, contents, make_draft

_USER: Final = HERE.user.raw

# Each changes something where the facts `x` and `y` are; the last leaves nothing.
WRITES: Final[dict[str, Callable[[MemoryRepository], object]]] = {
    "upsert_fact": lambda storage: storage.upsert_fact(HERE, make_draft("new")),
    "edit_fact": lambda storage: storage.edit_fact(HERE, "x", {"content": "changed"}),
    "apply_changes": lambda storage: storage.apply_changes(
        _USER, ChangeSet(upserts=(Upsert(HERE.agent, make_draft("set")),))
    ),
    "create_fact": lambda storage: storage.create_fact(HERE, make_draft("made")),
    "update_summaries": lambda storage: storage.update_summaries(_USER, {"user": {"topOfMind": "tea"}}),
    "delete_fact": lambda storage: storage.delete_fact(HERE, "new"),
    "consolidate": lambda storage: storage.consolidate(HERE, ["x", "y"], make_draft("both")),
    "adopt_fact": lambda storage: storage.adopt_fact(HERE, "both"),
    "trim": lambda storage: storage.trim(HERE, 1),
    "replace_all": lambda storage: storage.replace_all(HERE, [make_draft("only")], Summaries.of({})),
    "run": lambda storage: storage.run(
        HERE, lambda _: ChangeSet(upserts=(Upsert(HERE.agent, make_draft("planned")),))
    ),
    "clear": lambda storage: storage.clear(HERE),
    "delete_agent": lambda storage: storage.delete_agent(OTHER_AGENT),
    "clear_all": lambda storage: storage.clear_all(_USER),
}
READS: Final[dict[str, Callable[[MemoryRepository], object]]] = {
    "get_fact": lambda storage: storage.get_fact(HERE, "x"),
    "list_facts": lambda storage: storage.list_facts(HERE),
    "snapshot": lambda storage: storage.snapshot(HERE),
    "snapshots": lambda storage: storage.snapshots([HERE, OTHER_AGENT]),
    "get_summaries": lambda storage: storage.get_summaries(_USER),
    "get_manifest": lambda storage: storage.get_manifest(_USER),
    "list_agents": lambda storage: storage.list_agents(_USER),
    "search_facts": lambda storage: storage.search_facts("text", [HERE]),
    "reload": lambda storage: storage.reload(HERE),
}
CHANGES: Final = (
    ChangeSet(
        upserts=(Upsert(HERE.agent, make_draft("x"), AtRevision(1), renew=True),),
        deletes=(Delete(HERE.agent, "y", AtRevision(2)), Delete(OTHER_AGENT.agent, "z", ANYTHING)),
        summaries=SummaryPatch.parse({"user": {"topOfMind": "tea"}}),
        expected_manifest_revision=3,
        may_rebase=True,
        least_revision=4,
        fences_all=True,
        keeps="import",
        undoes="copy",
    ),
    ChangeSet(clears=frozenset([HERE.agent]), removes=frozenset([OTHER_AGENT.agent]), keeps="clear"),
    ChangeSet(clear_all=True, summaries=SummaryPatch.replace_all(NO_MANIFEST.summaries)),
)


class Refused(DeerMemError):
    """Is raised by a seam, and by nothing else."""


class _Passing:
    """Notes what passes the seams of a storage, and refuses reads or commits if it is told to."""

    def __init__(self, storage: MemoryRepository) -> None:
        self.refuses_reads = self.refuses_commits = False
        self.changes: list[ChangeSet] = []
        self.deltas: list[Delta] = []
        self.faults: list[str] = []
        self._own = storage.before_read, storage.before_commit, storage.after_commit
        vars(storage).update(
            before_read=self._before_read, before_commit=self._before_commit, after_commit=self._after_commit
        )

    def _before_read(self, user: UserId) -> None:
        _refuse_if(self.refuses_reads)
        self._own[0](user)

    def _before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:
        self.changes.append(changes)
        _refuse_if(self.refuses_commits)
        return self._own[1](user, changes, view)

    def _after_commit(self, user: UserId, delta: Delta) -> None:
        self.deltas.append(delta)
        try:
            self._own[2](user, delta)
        except Exception as error:  # noqa: BLE001 - what it raises is what the test is about
            self.faults.append(f"{type(error).__name__}: {error}")


def _refuse_if(refusing: bool) -> None:
    if refusing:
        raise Refused


class SeamRules(StorageRules):
    """Says what passes `before_read`, `before_commit` and `after_commit`, and what a storage's own keep."""

    def _storage_of_two(self, opened: Callable[..., MemoryRepository]) -> MemoryRepository:
        storage = opened()
        for fact_id in ("x", "y"):
            storage.upsert_fact(HERE, make_draft(fact_id))
        storage.upsert_fact(OTHER_AGENT, make_draft("z"))
        write_file(bucket_of(storage) / "agents" / OTHER_AGENT.agent / "config.yaml", "")
        return storage

    def test_every_write_passes_before_a_commit_and_after_it(self) -> None:
        with self._root() as opened:
            storage = self._storage_of_two(opened)
            passing = _Passing(storage)
            for revision, (name, write) in enumerate(WRITES.items(), 4):
                passing.changes.clear()
                passing.deltas.clear()
                write(storage)
                require(bool(passing.changes), f"{name} does not pass before_commit")
                told = [delta.revision for delta in passing.deltas]
                require(told == [revision], f"{name} made revision {revision}; after_commit is told {told}")

    def test_a_commit_that_is_refused_writes_nothing(self) -> None:
        with self._root() as opened:
            storage = self._storage_of_two(opened)
            passing = _Passing(storage)
            for name, write in WRITES.items():
                with opened() as other:
                    before = [other.snapshot(scope) for scope in (HERE, OTHER_AGENT)]
                passing.refuses_commits = True
                with refused(Refused, f"{name} that before_commit refuses"):
                    write(storage)
                passing.refuses_commits = False
                with opened() as other:
                    after = [other.snapshot(scope) for scope in (HERE, OTHER_AGENT)]
                require(after == before, f"{name} was refused, and there is {contents(after[0])}")
                write(storage)

    def test_a_write_that_changes_nothing_is_not_told(self) -> None:
        with self._root() as opened:
            storage = self._storage_of_two(opened)
            passing = _Passing(storage)
            storage.upsert_fact(HERE, make_draft("x"), expected=1)
            storage.delete_fact(HERE, "absent")
        require(not passing.deltas, f"after_commit is told {passing.deltas}")

    def test_a_read_that_is_refused_shows_nothing(self) -> None:
        with self._root() as opened:
            storage = self._storage_of_two(opened)
            storage.snapshot(HERE)
            passing = _Passing(storage)
            passing.refuses_reads = True
            for name, read in READS.items():
                with refused(Refused, f"{name} that before_read refuses"):
                    read(storage)

    def test_its_own_before_commit_may_run_again(self) -> None:
        with self._root() as opened:
            storage = self._storage_of_two(opened)
            revision = storage.snapshot(HERE).revision
            changes = ChangeSet(upserts=(Upsert(HERE.agent, make_draft("new")),))
            view = EmptyView()
            with allowed("before_commit"):
                first = storage.before_commit(HERE.user, changes, view)
            with allowed("before_commit, called again for the same commit"):
                second = storage.before_commit(HERE.user, changes, view)
            require(first == second, f"before_commit returns {first}, and then {second}")
            now = storage.snapshot(HERE).revision
            require(now == revision, f"before_commit has made revision {now} of {revision}")

    def test_its_own_before_commit_keeps_what_callers_rely_on(self) -> None:
        with self._root() as opened:
            storage = opened()
            for changes in CHANGES:
                with allowed("before_commit"):
                    passed = storage.before_commit(HERE.user, changes, EmptyView())
                with allowed("a commit of what it returned"):
                    check_passed(passed, changes, type(storage).__name__)

    def test_its_own_after_commit_raises_nothing(self) -> None:
        with self._root() as opened:
            storage = self._storage_of_two(opened)
            passing = _Passing(storage)
            for write in WRITES.values():
                write(storage)
        require(not passing.faults, f"after_commit raises {passing.faults}, and nobody is told")
