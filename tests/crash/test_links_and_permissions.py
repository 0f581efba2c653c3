"""Hard links and permissions: what other names of a file show, and what the store may not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from deermem import CommitInDoubt, DeerMemError, MemoryRepository
from deermem.storage.port import EntryKind
from deermem.testing.crash_explorer import Limits
from deermem.testing.crash_scenario import Laboratory, Scenario
from deermem.testing.disk_permissions import GROUP
from deermem.testing.disk_steps import Step
from deermem.testing.memory_model import MemoryModel, observe
from deermem.testing.simulated_directory import SimulatedDirectory
from deermem.testing.simulated_disk import SimulatedDisk
from tests.crash.migrations import MIGRATIONS
from tests.crash.planted_faults import PLANTED
from tests.crash.scenarios import SCENARIOS

BY_NAME: Final = {scenario.name: scenario for scenario in (*SCENARIOS, *MIGRATIONS)}
pytestmark = pytest.mark.crash


def test_a_linked_tree_has_the_same_files_under_other_names() -> None:
    disk = SimulatedDisk()
    disk.put("users/alice/a", b"text")
    disk.settle()
    disk.link_tree("users", "snapshots/first")
    assert disk.tree()["snapshots/first/alice/a"] == b"text"
    with disk.process().open_root() as root, root.child("users") as users, users.child("alice") as alice:
        inode = disk.state.directories[alice.inode].entries["a"]
    disk.state.write_file(inode, b"else", 0)
    assert disk.tree()["snapshots/first/alice/a"] == b"else"
    disk.remove("users/alice/a")
    assert [loss.disk.tree().get("snapshots/first/alice/a") for loss in disk.crash_states()] != [None]


def test_a_write_in_place_shows_through_the_other_name() -> None:
    fault = next(fault for fault in PLANTED if "in place" in fault.name)
    report = fault.explore(Limits(states=100, recovery_states=20, depth=1))
    assert report.counts["a file was written in place"], str(report)


def directories(disk: SimulatedDisk) -> list[str]:
    return [".", *(path for path, data in disk.tree().items() if data is None)]


def files(disk: SimulatedDisk) -> list[str]:
    return [path for path, data in disk.tree().items() if data is not None]


def read(scenario: Scenario, disk: SimulatedDisk) -> MemoryModel:
    _, repository = Laboratory(scenario).open(disk, "recovery")
    if scenario.first is not None:
        scenario.first.run(repository)
    return observe(repository, scenario.user_id, scenario.agents, scenario.fact_ids()).model()


def denials(disk: SimulatedDisk) -> Iterator[tuple[str, int]]:
    """Yields each file and directory with permissions that forbid something, and would not on their own."""
    for path in directories(disk):
        yield from ((path, mode) for mode in (0o500, 0o300, 0o600, 0o000))
    for path in files(disk):
        yield from ((path, mode) for mode in (0o400, 0o000))


DENIED: Final = (
    "create in a new shard",
    "update",
    "delete",
    "change several facts",
    "clear a scope",
    "delete an agent",
    "recover a hot journal",
    "migrate all files of a user",
    "roll a migration back",
    "roll back a transaction of the predecessor",
)


@pytest.mark.parametrize("name", DENIED)
def test_what_a_permission_forbids_is_refused_before_anything_is_promised(name: str) -> None:
    scenario = BY_NAME[name]
    start = Laboratory(scenario).initial_disk()
    refused = 0
    for path, mode in denials(start):
        disk = start.fork()
        disk.set_mode(path, mode)
        error = attempt(scenario, disk)
        if error is not None:
            refused += 1
            assert isinstance(error, PermissionError) or is_caused_by_a_permission(error), repr(error)
        if path in directories(disk) + files(disk):
            disk.set_mode(path, 0o700 if path in directories(disk) else 0o600)
        expected = scenario.before() if error is not None else scenario.after()
        assert read(scenario, disk) == expected, f"{path} had {mode:o}"
    assert refused > 10


def test_without_a_look_at_the_permissions_a_promise_is_made_that_cannot_be_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SimulatedDirectory, "check_changeable", lambda _: None)
    scenario = BY_NAME["update"]
    start = Laboratory(scenario).initial_disk()
    errors = []
    for path, mode in denials(start):
        disk = start.fork()
        disk.set_mode(path, mode)
        errors.append(attempt(scenario, disk))
    assert any(isinstance(error, CommitInDoubt) for error in errors)


def attempt(scenario: Scenario, disk: SimulatedDisk) -> Exception | None:
    """Runs the operation and returns what it raises."""
    process, repository = Laboratory(scenario).open(disk, "operation")
    error: Exception | None = None
    try:
        scenario.operation.run(repository)
    except Exception as raised:  # noqa: BLE001 - which ones are allowed is for the caller to say
        error = raised
    assert not process.handles
    return error


def is_caused_by_a_permission(error: Exception) -> bool:
    """Tells whether an error of ours was raised because of a permission."""
    return isinstance(error, DeerMemError) and isinstance(error.__cause__, PermissionError)


def shared_disk(scenario: Scenario) -> SimulatedDisk:
    """Returns a disk on which a group may read what the owner writes."""
    disk = SimulatedDisk(modes=(0o750, 0o640))
    for number, action in enumerate(scenario.setup):
        _, repository = Laboratory(scenario).open(disk, "setup", seconds=number)
        action.run(repository)
    disk.settle()
    return disk


def as_group(disk: SimulatedDisk) -> MemoryRepository:
    return MemoryRepository(disk.process("reader", GROUP), lock_timeout=0.1)


@pytest.mark.parametrize("name", ["update", "delete", "change several facts", "clear a scope"])
def test_a_reader_that_may_not_write_sees_one_committed_state_or_is_refused(name: str) -> None:
    scenario = BY_NAME[name]
    disk = shared_disk(scenario)
    shown: list[MemoryModel | None] = []

    def look(step: Step) -> None:
        if step.changing:
            shown.append(show(scenario, disk.fork(keep_locks=True)))

    disk.after_step = look
    _, writer = Laboratory(scenario).open(disk, "operation")
    scenario.operation.run(writer)
    disk.after_step = None
    before, after = scenario.before(), scenario.after()
    assert set(shown) == {before, None, after}
    assert shown == sorted(shown, key=[before, None, after].index)
    assert show(scenario, disk) == after


def show(scenario: Scenario, disk: SimulatedDisk) -> MemoryModel | None:
    """Reads with the permissions of the group; `None` if that is refused."""
    tree = disk.tree()
    try:
        seen = observe(as_group(disk), scenario.user_id, scenario.agents, scenario.fact_ids())
    except PermissionError:
        return None
    finally:
        assert disk.tree() == tree, "a reader that may not write changed something"
    return seen.model()


def test_what_has_too_many_permissions_is_told_and_tightened() -> None:
    disk = SimulatedDisk()
    disk.put("users/alice/a", b"")
    disk.set_mode("users/alice/a", 0o644)
    disk.set_mode("users/alice", 0o755)
    with disk.process().open_root() as root, root.child("users") as users, users.child("alice") as alice:
        assert users.statuses()["alice"].excess == 0o055
        assert alice.statuses()["a"][0] is EntryKind.FILE
        assert alice.statuses()["a"].excess == 0o044
        alice.tighten("a")
        users.tighten("alice")
        assert alice.statuses()["a"].excess == users.statuses()["alice"].excess == 0


@pytest.mark.parametrize(
    ("mode", "refused"),
    [
        (0o700, set()),
        (0o500, {"create", "rename", "unlink", "mkdir", "lock"}),
        (0o600, {"read", "stat", "create", "rename", "unlink", "mkdir", "lock", "statuses"}),
        (0o300, set()),
    ],
)
def test_the_mode_of_an_open_directory_says_what_is_refused(mode: int, refused: set[str]) -> None:
    disk = SimulatedDisk()
    disk.put("d/a", b"text")
    with disk.process().open_root() as root, root.child("d") as directory:
        disk.set_mode("d", mode)
        calls: dict[str, Callable[[], object]] = {
            "read": lambda: directory.read("a", 100),
            "stat": lambda: directory.identify("a"),
            "statuses": directory.statuses,
            "create": lambda: directory.create("b", b""),
            "mkdir": lambda: directory.make_child("c"),
            "lock": lambda: directory.lock_file("l").close(),
            "rename": lambda: directory.rename("a", directory, "a"),
            "unlink": lambda: directory.unlink("a"),
        }
        found = set()
        for name, call in calls.items():
            try:
                call()
            except PermissionError:
                found.add(name)
    assert found == refused


def test_a_mode_survives_a_loss_of_power_and_tells_disks_apart() -> None:
    disk = SimulatedDisk()
    disk.put("a", b"")
    digest = disk.digest()
    disk.set_mode("a", 0o400)
    assert disk.digest() != digest
    with next(disk.crash_states()).disk.process().open_root() as root, pytest.raises(PermissionError):
        root.lock_file("a")
