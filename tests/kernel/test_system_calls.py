"""The kernel's truth: a real run makes the calls that the simulated disk recorded, in the same order."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from deermem.testing.crash_scenario import Laboratory, Scenario
from deermem.testing.disk_steps import Step
from deermem.testing.simulated_disk import SimulatedDisk
from tests.kernel.requirements import REPOSITORY, need_tools
from tests.kernel.system_calls import TRACED, Call, Steps, calls_in, in_one_order
from tests.kernel.traced import EVERY, PLANTS, open_repository, root_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="strace is a tool of Linux")

NAMES = {
    "create for a new user",
    "create in a shard that is there",
    "update",
    "delete",
    "change several facts",
    "clear a scope",
    "clear all",
    "import",
    "migrate all files of a user",
    "roll a migration back",
    "recover a hot journal",
    "delete an agent",
    "erase a user",
    "undo a clear",
    "repair",
}


def lay_out(disk: SimulatedDisk, root: Path) -> None:
    """Writes what is on a simulated disk to a real one; a root that is not there stays absent."""
    root.parent.mkdir()
    if has_root(disk):
        root.mkdir()
    for path, data in sorted(disk.tree().items()):
        if data is None:
            root.joinpath(path).mkdir()
        else:
            root.joinpath(path).write_bytes(data)


def has_root(disk: SimulatedDisk) -> bool:
    return any(path == "." for path, _ in disk.state.walk())


def tree_of(root: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


def simulated(scenario: Scenario, disk: SimulatedDisk) -> list[str]:
    """Runs an operation on its simulated disk and returns the steps that changed something."""
    steps: list[str] = []

    def note(step: Step) -> None:
        if step.changing:
            steps.append(str(step))

    disk.after_step = note
    scenario.operation.run(open_repository(disk.process("operation"), scenario))
    disk.after_step = None
    return steps


def trace(place: Path, names: Sequence[str], plant: str) -> list[Call]:
    """Runs operations in one process and returns its calls."""
    output = place / "trace"
    calls = "trace=" + ",".join(f"?{name}" for name in TRACED)  # "?": not every strace knows each of them
    traced = [sys.executable, "-m", "tests.kernel.traced", str(place), plant, *names]
    subprocess.run(
        ["strace", "-f", "-y", "-qq", "-s", "0", "-e", calls, "-o", str(output), *traced],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        timeout=100,
    )
    with output.open(encoding="utf-8") as lines:
        return list(calls_in(lines))


class Comparison:
    """Lays out scenarios on a real disk, and runs each there and on the simulated one."""

    def __init__(self, place: Path, names: Sequence[str], plant: str = "") -> None:
        disks = {name: Laboratory(EVERY[name]).initial_disk() for name in names}
        trees = {name: (disk.tree(), has_root(disk)) for name, disk in disks.items()}
        for name, disk in disks.items():
            lay_out(disk, root_of(place, name))
        calls = trace(place, names, plant)
        self.counts: dict[str, int] = {}
        self.differences: dict[str, list[str]] = {}
        for name, disk in disks.items():
            expected = in_one_order(simulated(EVERY[name], disk))
            tree, rooted = trees[name]
            found = Steps(root_of(place, name), tree, rooted=rooted).of(calls)
            self.counts[name] = len(found)
            if found != expected:
                self.differences[name] = list(first_difference(expected, found))
            elif tree_of(root_of(place, name)) != disk.tree():
                self.differences[name] = ["the same steps left other bytes"]


def first_difference(expected: list[str], found: list[str]) -> Iterator[str]:
    same = 0
    while same < min(len(expected), len(found)) and expected[same] == found[same]:
        same += 1
    yield f"step {same}"
    yield f"simulated: {expected[same] if same < len(expected) else 'the end'}"
    yield f"kernel: {found[same] if same < len(found) else 'the end'}"


def test_a_real_run_makes_the_steps_that_the_simulated_disk_recorded(tmp_path: Path) -> None:
    need_tools("strace")
    assert EVERY.keys() >= NAMES
    comparison = Comparison(tmp_path, list(EVERY))
    assert comparison.differences == {}
    assert min(comparison.counts.values()) > 3
    sys.stdout.write(f"{len(comparison.counts)} operations, {sum(comparison.counts.values())} steps alike\n")


@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant])
def test_a_fault_of_the_local_file_system_shows_as_a_difference(tmp_path: Path, plant: str) -> None:
    need_tools("strace")
    names = ("create for a new user", "delete", "recover a hot journal")
    assert Comparison(tmp_path, names, plant).differences.keys() == set(names)


def test_what_strace_tells_of_a_thread_that_was_interrupted_is_put_together() -> None:
    lines = [
        "7 fsync(3</r/users> <unfinished ...>",
        '8 unlinkat(4</r>, "a", 0) = -1 ENOENT (No such file or directory)',
        "7 <... fsync resumed>) = 0",
        '8 renameat(4</r>, "b", 3</r/users>, "c") = 0',
        "7 +++ exited with 0 +++",
    ]
    assert Steps(Path("/r"), {"users": None}, rooted=True).of(calls_in(lines)) == [
        "sync users",
        "rename b to users/c",
    ]


@pytest.mark.parametrize(
    "line",
    [
        '7 openat(3</r>, "a", O_WRONLY|O_CREAT|O_TRUNC, 0600) = 4</r/a>',
        "7 fdatasync(3</r/a>) = 0",
        '7 linkat(3</r>, "a", 3</r>, "b", 0) = 0',
        "7 ftruncate(4</r/a>, 0) = 0",
        "7 syncfs(4</r>) = 0",
    ],
)
def test_a_call_that_the_simulated_disk_does_not_know_is_shown_as_it_is(line: str) -> None:
    [step] = Steps(Path("/r"), {"a": b""}, rooted=True).of(calls_in([line]))
    assert step in line


def test_a_call_elsewhere_or_without_a_lasting_effect_is_no_step() -> None:
    lines = [
        '7 openat(3</other>, "a", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4</other/a>',
        "7 fsync(4</other/a>) = 0",
        "7 fchmod(4</r/a>, 0600) = 0",
        '7 openat(3</r>, "a", O_RDWR|O_CREAT, 0600) = 4</r/a>',
        "7 fadvise64(4</r/a>, 0, 0, POSIX_FADV_DONTNEED) = 0",
    ]
    assert Steps(Path("/r"), {"a": b""}, rooted=True).of(calls_in(lines)) == []
