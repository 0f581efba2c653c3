"""The simulated disk's own rules: what survives a loss of power, and what processes see."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterable
from datetime import timedelta

import pytest

from deermem.storage.port import Directory, FileSystem, FileTooLarge, LockFile, UnexpectedFileType
from deermem.testing.disk_state import remnants
from deermem.testing.disk_steps import Fault, SimulatedDeath, StepKind
from deermem.testing.power_loss import PowerLosses
from deermem.testing.simulated_directory import SimulatedDirectory
from deermem.testing.simulated_disk import SimulatedDisk, Survivor
from deermem.testing.simulated_filesystem import SimulatedFileSystem

Tree = dict[str, bytes | None]


def rooted(disk: SimulatedDisk, *directories: str) -> SimulatedDirectory:
    """Returns the root of a disk on which these directories are durable."""
    process = disk.process()
    process.make_root()
    root = process.open_root()
    for name in directories:
        root.make_child(name)
    disk.settle()
    return root


def survivors(disk: SimulatedDisk) -> list[Tree]:
    return [survivor.disk.tree() for survivor in disk.crash_states()]


def named(disks: Iterable[Survivor], path: str) -> list[bytes | None]:
    return [survivor.disk.tree().get(path, None) for survivor in disks]


def test_the_disk_speaks_the_port() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    assert isinstance(disk.process(), FileSystem)
    assert isinstance(root, Directory)
    assert isinstance(root.lock_file("lock"), LockFile)


def test_a_synced_name_with_synced_data_survives() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.create("a", b"text")
    root.sync()
    assert survivors(disk) == [{"a": b"text"}]


def test_a_new_name_survives_for_sure_only_after_a_sync_of_its_directory() -> None:
    disk = SimulatedDisk()
    rooted(disk).create("a", b"text")
    assert survivors(disk) == [{"a": b"text"}, {}]


def test_data_may_be_missing_zeroed_or_short_until_its_file_is_synced() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.owner.stop_after(2)
    with pytest.raises(SimulatedDeath):
        root.create("a", b"text")
    disk.state.sync_directory(root.inode)
    assert [tree["a"] for tree in survivors(disk)] == [b"text", b"", b"\0\0\0\0", b"te"]


def test_data_is_torn_between_sectors() -> None:
    data = bytes(range(1, 251)) * 6
    assert data[:1024] + bytes(476) in remnants(data)
    assert bytes(512) + data[512:] in remnants(data)
    assert data[:512] in remnants(data)
    assert data[:1024] in remnants(data)


def test_a_sync_of_the_directory_does_not_make_data_durable() -> None:
    disk = SimulatedDisk()
    process = disk.process()
    process.omits = lambda step, _: step.kind is StepKind.FSYNC
    process.make_root()
    root = process.open_root()
    root.create("a", b"text")
    root.sync()
    assert b"" in named(disk.crash_states(), "a")


def test_an_unlinked_name_may_come_back_until_its_directory_is_synced() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.create("a", b"text")
    root.sync()
    root.unlink("a")
    assert survivors(disk) == [{}, {"a": b"text"}]
    root.sync()
    assert survivors(disk) == [{}]


def test_changes_of_different_names_survive_independently() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    for name in "abc":
        root.create(name, b"")
    assert len(survivors(disk)) == 8


def test_changes_of_one_name_survive_in_order() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.create("a", b"1")
    root.unlink("a")
    root.create("a", b"2")
    assert survivors(disk) == [{"a": b"2"}, {}, {"a": b"1"}]


def test_a_rename_within_a_directory_is_one_change_that_replaces_its_target() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.create("old", b"1")
    root.create("new", b"2")
    root.sync()
    root.rename("new", root, "old")
    assert survivors(disk) == [{"old": b"2"}, {"old": b"1", "new": b"2"}]


def test_a_rename_across_directories_has_two_halves_that_survive_independently() -> None:
    disk = SimulatedDisk()
    root = rooted(disk, "from", "to")
    source, target = root.child("from"), root.child("to")
    source.create("a", b"1")
    source.sync()
    source.rename("a", target, "b")
    files = [{path: data for path, data in tree.items() if data is not None} for tree in survivors(disk)]
    expected: list[Tree] = [{"to/b": b"1"}, {}, {"from/a": b"1", "to/b": b"1"}, {"from/a": b"1"}]
    assert sorted(map(repr, files)) == sorted(map(repr, expected))


def test_a_sync_of_the_target_makes_only_the_new_name_durable() -> None:
    disk = SimulatedDisk()
    root = rooted(disk, "from", "to")
    source, target = root.child("from"), root.child("to")
    source.create("a", b"1")
    source.sync()
    source.rename("a", target, "b")
    target.sync()
    assert named(disk.crash_states(), "to/b") == [b"1", b"1"]
    assert named(disk.crash_states(), "from/a") == [None, b"1"]


def test_two_names_of_one_file_stay_when_one_is_renamed_to_the_other() -> None:
    disk = SimulatedDisk()
    root = rooted(disk, "from", "to")
    root.child("from").create("a", b"1")
    root.child("from").sync()
    root.child("from").rename("a", root.child("to"), "b")
    root.child("to").sync()
    both = next(loss.disk for loss in disk.crash_states() if "from/a" in loss.disk.tree())
    again = both.process().open_root()
    again.child("from").rename("a", again.child("to"), "b")
    assert both.tree() == {"from": None, "from/a": b"1", "to": None, "to/b": b"1"}


def test_a_directory_whose_own_name_was_not_synced_may_vanish_with_synced_things_in_it() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.make_child("d")
    child = root.child("d")
    child.create("a", b"1")
    child.sync()
    assert survivors(disk) == [{"d": None, "d/a": b"1"}, {}]


def test_the_storage_root_itself_may_vanish_until_it_is_synced() -> None:
    disk = SimulatedDisk()
    process = disk.process()
    process.stop_after(1)
    with pytest.raises(SimulatedDeath):
        process.make_root()
    roots = [loss.disk for loss in disk.crash_states()]
    assert len(roots) == 2
    with pytest.raises(FileNotFoundError):
        roots[1].process().open_root()


def test_a_sync_makes_all_changes_of_its_directory_durable_and_no_other() -> None:
    disk = SimulatedDisk()
    root = rooted(disk, "d")
    root.create("a", b"")
    root.child("d").create("b", b"")
    root.sync()
    assert named(disk.crash_states(), "a") == [b"", b""]
    assert named(disk.crash_states(), "d/b") == [b"", None]


def test_what_survived_is_what_the_next_process_sees_and_is_durable() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.create("a", b"1")
    lost = next(loss.disk for loss in disk.crash_states() if loss.lost)
    assert lost.process().open_root().names() == []
    assert survivors(lost) == [{}]


def test_a_kill_keeps_what_processes_saw_and_what_was_pending() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.create("a", b"1")
    killed = disk.fork()
    assert killed.process().open_root().read("a", 10)[0] == b"1"
    assert survivors(killed) == [{"a": b"1"}, {}]


def test_a_copy_of_a_disk_is_independent() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    copy = disk.fork()
    root.create("a", b"1")
    assert copy.tree() == {}
    copy.process().open_root().create("b", b"2")
    assert disk.tree() == {"a": b"1"}


def test_after_a_failed_sync_a_second_one_succeeds_without_the_data() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    inode = disk.new_file(root.inode, "a")
    disk.state.write_file(inode, b"text", 0)
    disk.state.forsake_file(inode)
    disk.state.sync_file(inode)
    root.sync()
    assert b"" in named(disk.crash_states(), "a")


def test_a_create_that_fails_leaves_no_file() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.owner.faults.append(Fault(lambda step: step.kind is StepKind.FSYNC, errno.EIO))
    with pytest.raises(OSError, match="a") as caught:
        root.create("a", b"text")
    assert caught.value.errno == errno.EIO
    assert disk.tree() == {}
    assert b"\0\0\0\0" in named(disk.crash_states(), "a")


def test_a_fault_hits_once_or_from_then_on() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    first = len(root.owner.steps)
    root.owner.faults.append(Fault.at(first, errno.EMFILE))
    with pytest.raises(OSError, match="Too many open files"):
        root.names()
    assert root.names() == []
    root.owner.faults.append(Fault.at(first + 2, errno.EROFS, lasting=True))
    for _ in range(3):
        with pytest.raises(OSError, match="Read-only"):
            root.names()


def test_a_fault_may_strike_after_the_effect() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    root.create("a", b"1")
    root.owner.faults.append(Fault(lambda step: step.kind is StepKind.SYNC, errno.EIO, after=True))
    with pytest.raises(OSError, match="Input/output"):
        root.sync()
    assert survivors(disk) == [{"a": b"1"}]


def test_an_error_is_of_the_class_that_python_raises() -> None:
    disk = SimulatedDisk()
    root = rooted(disk, "d")
    root.create("a", b"12345")
    with pytest.raises(FileNotFoundError):
        root.read("b", 1)
    with pytest.raises(FileExistsError):
        root.create("a", b"")
    with pytest.raises(FileTooLarge):
        root.read("a", 4)
    with pytest.raises(UnexpectedFileType):
        root.read("d", 4)
    with pytest.raises(UnexpectedFileType):
        root.child("a")
    with pytest.raises(UnexpectedFileType):
        root.rename("a", root, "d")
    with pytest.raises(UnexpectedFileType):
        root.unlink("d")
    with pytest.raises(OSError, match="File name too long"):
        root.create("x" * 256, b"")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\0"])
def test_what_is_no_single_component_is_refused(name: str) -> None:
    root = rooted(SimulatedDisk())
    with pytest.raises(ValueError, match="not the name of an entry"):
        root.create(name, b"")


def test_a_process_dies_right_after_the_chosen_change_and_nothing_of_it_can_change_the_disk() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)

    def work() -> None:
        try:
            root.create("a", b"1")
        except Exception:  # noqa: BLE001 - that it is not caught here is the point
            root.create("b", b"2")
        finally:
            root.unlink("a")

    root.owner.stop_after(3)
    with pytest.raises(SimulatedDeath):
        work()
    assert disk.tree() == {"a": b"1"}
    with pytest.raises(SimulatedDeath):
        root.names()


def test_the_lock_of_a_dead_process_is_free() -> None:
    disk = SimulatedDisk()
    first = rooted(disk).lock_file("lock")
    assert first.acquire(0)
    second = disk.process("second").open_root().lock_file("lock")
    assert not second.acquire(0.5)
    assert second.holder() == "process process"
    first.owner.kill()
    assert second.acquire(0.5)


def test_closing_a_lock_file_gives_the_lock_back() -> None:
    disk = SimulatedDisk()
    first = rooted(disk).lock_file("lock")
    second = disk.process("second").open_root().lock_file("lock")
    assert first.acquire(0)
    first.close()
    assert second.acquire(0)
    assert first.holder() == "process second"


def test_a_holder_may_stand_still_instead_of_dying() -> None:
    disk = SimulatedDisk()
    assert rooted(disk).lock_file("lock").acquire(0)
    assert not disk.fork(keep_locks=True).process().open_root().lock_file("lock").acquire(0)
    assert disk.fork().process().open_root().lock_file("lock").acquire(0)


def test_a_scheduler_sees_each_step_before_it_happens_and_may_let_a_waiter_try_again() -> None:
    disk = SimulatedDisk()
    root = rooted(disk)
    seen: list[str] = []
    disk.before_step = lambda step: seen.append(f"{step} in {sorted(disk.tree())}")
    root.create("a", b"1")
    assert seen == ["create a in []", "write a in ['a']", "fsync a in ['a']"]
    holder = root.lock_file("lock")
    assert holder.acquire(0)

    def release(*_: object) -> bool:
        holder.close()
        return True

    disk.when_blocked = release
    assert disk.process().open_root().lock_file("lock").acquire(1)


def test_a_waiter_that_gives_up_has_waited() -> None:
    disk = SimulatedDisk()
    assert rooted(disk).lock_file("lock").acquire(0)
    waiter = disk.process("second").open_root().lock_file("lock")
    before = disk.now()
    assert not waiter.acquire(2.5)
    assert disk.now() - before == timedelta(seconds=2.5)


def test_a_closed_handle_is_refused() -> None:
    root = rooted(SimulatedDisk())
    root.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        root.names()
    assert root not in root.owner.handles


def test_a_number_of_a_file_that_is_gone_is_given_to_the_next_one() -> None:
    root = rooted(SimulatedDisk())
    first = root.create("a", b"1")
    root.unlink("a")
    assert root.create("b", b"2").inode == first.inode
    other = rooted(SimulatedDisk(reuse_inodes=False))
    first = other.create("a", b"1")
    other.unlink("a")
    assert other.create("b", b"2").inode != first.inode


@pytest.mark.parametrize(("granularity", "same"), [(1, False), (10_000_000, True), (2_000_000_000, True)])
def test_a_coarse_clock_gives_two_versions_the_same_time(granularity: int, same: bool) -> None:
    disk = SimulatedDisk(granularity_ns=granularity)
    root = rooted(disk)
    first = root.create("a", b"1")
    root.unlink("a")
    second = root.create("a", b"2")
    assert (first == second) is same
    disk.advance(2)
    root.unlink("a")
    assert root.create("a", b"3") != second


def test_names_that_differ_in_case_may_be_the_same_name() -> None:
    root = rooted(SimulatedDisk(ignore_case=True))
    root.create("Name", b"1")
    assert root.read("nAME", 9)[0] == b"1"
    with pytest.raises(FileExistsError):
        root.create("name", b"2")
    root.create("other", b"3")
    root.rename("OTHER", root, "NAME")
    assert root.names() == ["Name"]
    assert root.read("name", 9)[0] == b"3"


def test_a_full_disk_takes_a_part_of_the_data_and_gives_the_room_back() -> None:
    disk = SimulatedDisk(capacity=10)
    root = rooted(disk)
    root.create("a", b"12345678")
    with pytest.raises(OSError, match="No space left"):
        root.create("b", b"12345678")
    assert disk.tree() == {"a": b"12345678"}
    root.create("c", b"12")


def test_a_file_may_be_put_and_removed_behind_the_processes_back() -> None:
    disk = SimulatedDisk()
    disk.put("d/e/f", b"1")
    assert survivors(disk) == [{"d": None, "d/e": None, "d/e/f": b"1"}]
    disk.put("d/e/f", b"2")
    disk.remove("d/e/f")
    assert survivors(disk) == [{"d": None, "d/e": None}]


def test_disks_with_the_same_future_have_the_same_digest() -> None:
    def built(*, sync: bool, twice: bool = False) -> SimulatedDisk:
        disk = SimulatedDisk()
        root = rooted(disk)
        if twice:
            root.create("x", b"0")
            root.unlink("x")
            root.sync()
        root.create("a", b"1")
        if sync:
            root.sync()
        return disk

    assert built(sync=True).digest() == built(sync=True, twice=True).digest()
    assert built(sync=True).digest() != built(sync=False).digest()


def test_two_names_of_one_file_are_not_two_files() -> None:
    disk = SimulatedDisk()
    root = rooted(disk, "d")
    root.create("a", b"1")
    root.sync()
    root.rename("a", root.child("d"), "a")
    root.child("d").sync()
    linked = next(loss.disk for loss in disk.crash_states() if "a" in loss.disk.tree())
    twins = SimulatedDisk()
    twins.put("a", b"1")
    twins.put("d/a", b"1")
    assert linked.tree() == twins.tree()
    assert linked.digest() != twins.digest()


def test_a_reproduction_names_what_was_lost() -> None:
    disk = SimulatedDisk()
    root = rooted(disk, "d")
    root.create("a", b"1")
    root.rename("a", root.child("d"), "b")
    root.owner.omits = lambda step, _: step.kind is StepKind.FSYNC
    root.create("c", b"text")
    root.sync()
    assert [loss.lost for loss in disk.crash_states()] == [
        (),
        ("data of c: empty",),
        ("data of c: 4 zero bytes",),
        ("data of c: cut short to 2 of 4 bytes",),
        ("appearance of d/b (rename from a)",),
        ("appearance of d/b (rename from a)", "data of c: empty"),
        ("appearance of d/b (rename from a)", "data of c: 4 zero bytes"),
        ("appearance of d/b (rename from a)", "data of c: cut short to 2 of 4 bytes"),
    ]


def crowded() -> SimulatedDisk:
    disk = SimulatedDisk()
    root = rooted(disk, "d")
    for number in range(6):
        root.create(f"{number}", b"1")
        root.rename(f"{number}", root.child("d"), f"{number}")
    return disk


def test_a_sample_holds_legal_states_and_those_that_differ_in_one_place() -> None:
    disk = crowded()
    every = {loss.disk.digest() for loss in disk.crash_states()}
    assert len(every) == PowerLosses(disk.state).bound == 2**12
    sample = list(disk.crash_states(limit=200, seed=1))
    assert {loss.disk.digest() for loss in sample} <= every
    assert len({loss.disk.digest() for loss in sample}) == len(sample) == 200
    assert sum(len(loss.lost) == 1 for loss in sample) >= 12


def test_the_same_seed_gives_the_same_sample() -> None:
    disk = crowded()
    first, again, other = (
        [loss.lost for loss in disk.crash_states(limit=100, seed=seed)] for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def brute_force(disk: SimulatedDisk) -> set[bytes]:
    """Applies every subset of the pending effects in program order: the model as it is written down."""
    found = set()
    effects = disk.state.effects
    for mask in range(2 ** len(effects)):
        copy = disk.fork()
        for number, inode in list(copy.state.directories.items()):
            names = dict(inode.durable)
            for position, effect in enumerate(effects):
                if effect.directory == number and mask >> position & 1:
                    for name, entry in effect.changes:
                        names.pop(name, None)
                        if entry is not None:
                            names[name] = entry
            copy.state.directories[number] = type(inode)(inode.path, names, names)
        copy.state.effects = ()
        found.add(copy.digest())
    return found


@pytest.mark.parametrize("seed", range(30))
def test_the_enumeration_finds_what_every_subset_of_the_effects_gives(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
    disk = SimulatedDisk()
    root = rooted(disk, "d", "e")
    directories = [root, root.child("d"), root.child("e")]
    while len(disk.state.effects) < 9:
        directory, name = rng.choice(directories), rng.choice("abc")
        present = [entry for entry in directory.names() if entry in "abc"]
        if name not in present:
            directory.create(name, rng.choice([b"1", b"2"]))
        elif rng.random() < 0.3:
            directory.unlink(name)
        elif rng.random() < 0.8:
            directory.rename(name, rng.choice(directories), rng.choice("abc"))
        else:
            directory.sync()
    assert {loss.disk.digest() for loss in disk.crash_states()} == brute_force(disk)


def test_every_process_has_steps_of_its_own() -> None:
    disk = SimulatedDisk()
    rooted(disk)
    second: SimulatedFileSystem = disk.process("second")
    second.open_root().names()
    assert [str(step) for step in second.steps] == ["open .", "scan ."]
