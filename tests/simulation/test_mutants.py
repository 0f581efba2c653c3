"""The simulation can fail: each of these broken engines is found within a few hundred schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from deermem.errors import FactConflict
from deermem.model import plans, resolution
from deermem.model.identity import Scope
from deermem.model.resolution import Resolution
from deermem.model.snapshot import Snapshot
from deermem.storage import engine, journal, transaction
from deermem.storage.bucket import Bucket
from deermem.storage.cache import SnapshotCache
from deermem.storage.locks import UserLocks
from deermem.testing.simulated_directory import SimulatedDirectory
from deermem.testing.simulation.runs import Run, simulate

SCHEDULES: Final = 1_500

Plant = Callable[[pytest.MonkeyPatch], None]


def no_lock(patch: pytest.MonkeyPatch) -> None:
    """Two writers at once."""

    @contextmanager
    def hold(_self: UserLocks, _bucket: object) -> Iterator[None]:
        yield

    patch.setattr(UserLocks, "hold", hold)


def no_look_for_a_journal(patch: pytest.MonkeyPatch) -> None:
    """Readers that do not mind a writer at work."""
    patch.setattr(Bucket, "journal_is_there", lambda _: False)


def no_second_look_at_the_manifest(patch: pytest.MonkeyPatch) -> None:
    """Readers that do not look whether a writer overtook them."""
    read = Bucket.read_manifest

    def read_manifest(self: Bucket, known: Any = None) -> Any:
        seen = getattr(self, "seen", None)
        if seen is None:
            seen = self.__dict__["seen"] = read(self) if known is None else read(self, known)
        return seen

    patch.setattr(Bucket, "read_manifest", read_manifest)


def no_sync_of_directories(patch: pytest.MonkeyPatch) -> None:
    """Names that a loss of power takes away."""
    patch.setattr(SimulatedDirectory, "sync", lambda _: None)


def no_sync_of_data(patch: pytest.MonkeyPatch) -> None:
    """Data that a loss of power takes away."""
    patch.setattr(SimulatedDirectory, "_sync_data", lambda *_: None)


def no_recovery(patch: pytest.MonkeyPatch) -> None:
    """Journals of dead writers that nobody minds."""
    patch.setattr(engine, "recover", lambda _: False)


def no_fences(patch: pytest.MonkeyPatch) -> None:
    """Late writers that bring cleared facts back."""
    resolve = resolution.resolve

    def forgetful(*arguments: Any) -> Resolution:
        return replace(resolve(*arguments), fences=None)

    patch.setattr(transaction, "resolve", forgetful)


def no_preconditions(patch: pytest.MonkeyPatch) -> None:
    """Stale writes that go through."""
    patch.setattr(resolution, "check_precondition", lambda *_: None)


def a_cap_that_is_one_too_high(patch: pytest.MonkeyPatch) -> None:
    """One fact too many."""
    over = plans.facts_over_cap
    patch.setattr(plans, "facts_over_cap", lambda facts, cap: over(facts, cap + 1))


def a_cache_that_never_looks(patch: pytest.MonkeyPatch) -> None:
    """Old facts under a new revision."""
    peek = SnapshotCache.find
    patch.setattr(
        SnapshotCache,
        "hit",
        lambda self, scope, _: None if peek(self, scope) is None else peek(self, scope).snapshot(),  # type: ignore[union-attr]
    )


def a_look_that_does_not_compare(patch: pytest.MonkeyPatch) -> None:
    """A gateway that takes what it knows for what is there."""

    def look(self: engine.Engine, scope: Scope) -> Snapshot | None:
        entry = self.cache.find(scope)
        return None if entry is None else entry.snapshot()

    patch.setattr(engine.Engine, "look", look)


def a_revision_that_comes_back(patch: pytest.MonkeyPatch) -> None:
    """A commit that does not advance the revision when it only deletes."""
    resolve = resolution.resolve

    def stuck(changes: Any, before: Any, now: str) -> Resolution:
        outcome = resolve(changes, before, now)
        if outcome.deleted and not outcome.written and before.manifest.revision > 1:
            return replace(outcome, manifest=replace(outcome.manifest, revision=before.manifest.revision))
        return outcome

    patch.setattr(transaction, "resolve", stuck)


def a_conflict_out_of_nothing(patch: pytest.MonkeyPatch) -> None:
    """Calls that are refused though nothing is in their way."""
    resolve = resolution.resolve

    def anxious(changes: Any, before: Any, now: str) -> Resolution:
        if changes.expected_manifest_revision is not None and before.manifest.revision > 3:
            raise FactConflict("x", None, 1)
        return resolve(changes, before, now)

    patch.setattr(transaction, "resolve", anxious)


def a_manifest_before_the_facts(patch: pytest.MonkeyPatch) -> None:
    """Readers that see the new revision with the old facts."""
    apply = journal.apply

    def early(bucket: Bucket, recovery: Any, record: Any) -> None:
        recovery.create("early", record.manifest.text.encode())
        recovery.rename("early", bucket.directory, bucket.manifest_name)
        apply(bucket, recovery, record)

    patch.setattr(transaction, "apply", early)


PLANTED: Final[dict[str, Plant]] = {
    plant.__name__: plant
    for plant in (
        no_lock,
        no_look_for_a_journal,
        no_sync_of_directories,
        no_sync_of_data,
        no_recovery,
        no_fences,
        no_preconditions,
        a_cap_that_is_one_too_high,
        a_cache_that_never_looks,
        a_look_that_does_not_compare,
        a_revision_that_comes_back,
        a_conflict_out_of_nothing,
        a_manifest_before_the_facts,
    )
}


def first_failure() -> Run | None:
    """Returns the first schedule that shows a problem."""
    return next((run for run in map(simulate, range(SCHEDULES)) if run.problems), None)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_broken_engine_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[planted](monkeypatch)
    assert first_failure() is not None
