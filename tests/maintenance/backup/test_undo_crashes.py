"""An undo that is interrupted took place as a whole or not at all, and its safety copy goes with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deermem import FactDraft, MemoryRepository, Scope
from deermem.format.safety_json import SafetyCopy
from deermem.maintenance import taking_back
from deermem.maintenance.taking_back import plan_undo, undo
from deermem.model.identity import AgentName
from deermem.model.manifest import NO_MANIFEST
from deermem.storage import safety
from deermem.storage.bucket import Bucket
from deermem.testing.simulated_disk import SimulatedDisk
from tests.maintenance.backup.crashes import interrupted, opened

ALICE = Scope.of("alice")
CODER = Scope.of("alice", "coder")

pytestmark = pytest.mark.crash

Memory = tuple[frozenset[tuple[AgentName, str, str]], str, bool]


def memory(disk: SimulatedDisk) -> Memory:
    """Returns the facts, a summary, and whether there is something to take back."""
    repository = opened(disk)
    facts = {
        (scope.agent, fact.id, fact.content)
        for scope in (ALICE, CODER)
        for fact in repository.snapshot(scope).facts
    }
    summary = repository.get_summaries("alice")["user", "topOfMind"].summary
    return frozenset(facts), summary, plan_undo(opened(disk), ALICE.user) is not None


def before_it(operation: Callable[[MemoryRepository], object]) -> SimulatedDisk:
    disk = SimulatedDisk()
    repository = opened(disk)
    for scope, name in ((ALICE, "a"), (ALICE, "b"), (CODER, "c")):
        repository.upsert_fact(scope, FactDraft(f"text of {name}", id=name))
    repository.update_summaries("alice", {"user": {"topOfMind": {"summary": "Much."}}})
    disk.settle()
    operation(opened(disk))
    disk.settle()
    return disk


OPERATIONS: dict[str, Callable[[MemoryRepository], object]] = {
    "clear": lambda repository: repository.clear(ALICE),
    "clear all": lambda repository: repository.clear_all("alice"),
    "import": lambda repository: repository.replace_all(
        ALICE, [FactDraft("imported", id="a"), FactDraft("new", id="n")], NO_MANIFEST.summaries
    ),
}


def check_every_interruption(operation: Callable[[MemoryRepository], object]) -> int:
    disk = before_it(operation)
    done = disk.fork()
    assert undo(opened(done), ALICE.user) is not None
    before, after = memory(disk.fork()), memory(done)
    assert (before[2], after[2]) == (True, False)
    assert len(after[0]) == 3
    states = 0
    for name, survivor in interrupted(disk, lambda repository: undo(repository, ALICE.user)):
        states += 1
        allowed = (after,) if name.startswith("done") else (before, after)
        assert memory(survivor.fork()) in allowed, name
        undo(opened(survivor), ALICE.user)
        assert memory(survivor) == after, f"again after {name}"
    return states


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_crash_at_any_step_leaves_the_whole_of_it_or_nothing(name: str) -> None:
    assert check_every_interruption(OPERATIONS[name]) > 60


def test_a_copy_that_goes_before_the_commit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_and_remove(bucket: Bucket, name: str) -> SafetyCopy:
        copy = safety.read_copy(bucket, name)
        with bucket.directory_at((".safety",)) as directory:
            directory.unlink(name)
            directory.sync()
        return copy

    def spoiled(repository: MemoryRepository) -> object:
        with monkeypatch.context() as patched:
            patched.setattr(taking_back, "read_copy", read_and_remove)
            return undo(repository, ALICE.user)

    disk = before_it(OPERATIONS["clear"])
    before = memory(disk.fork())
    found = {memory(survivor) for _, survivor in interrupted(disk, spoiled)}
    assert (before[0], before[1], False) in found
