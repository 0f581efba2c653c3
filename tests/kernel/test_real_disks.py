"""Real file systems lose power while a store is written: what was acknowledged stays, and as a whole."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.disks import KINDS
from tests.kernel.private_mounts import run_with_own_mounts
from tests.kernel.requirements import need_devices, need_mounts, need_tools

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def need_disks(kind: str) -> None:
    need_tools(f"mkfs.{kind}", "cp", *(["btrfs"] if kind == "btrfs" else []))
    need_mounts(kind)
    need_devices("/dev/loop-control")


def logged(place: Path, kind: str, *settings: Any, timeout: float = 100) -> dict[str, Any]:
    need_disks(kind)
    need_mounts("fuse")
    need_devices("/dev/fuse")
    return figures("cut_by_block_log", place, kind, *settings, timeout=timeout)


def figures(cut: str, place: Path, kind: str, *settings: Any, timeout: float) -> dict[str, Any]:
    found: dict[str, Any] = run_with_own_mounts(
        "tests.kernel.cuts", cut, str(place), kind, *settings, timeout=timeout
    )
    sys.stdout.write(f"{kind}, {cut}: {found}\n")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_part_of_the_unflushed_writes_a_disk_loses_the_store_is_one_committed_state(
    tmp_path: Path, kind: str
) -> None:
    found = logged(tmp_path, kind, 25, 8, 1)
    assert found["problems"] == []
    assert found["rounds"] == 8
    assert found["acknowledged"] > 0


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_file_system_that_is_shut_down_in_mid_write_keeps_what_was_acknowledged(
    tmp_path: Path, kind: str
) -> None:
    need_disks(kind)
    found = figures("cut_by_shutdown", tmp_path, kind, 4, 1, timeout=100)
    assert found["problems"] == []
    assert found["rounds"] == 4


# Without a sync ext4 still writes much in time; most cuts find a missing sync of files on btrfs alone.
@pytest.mark.parametrize(
    ("plant", "kind"), [("no sync of a directory", "ext4"), ("no sync of a file", "btrfs")]
)
def test_a_sync_that_is_left_out_is_found_on_a_real_file_system(
    tmp_path: Path, plant: str, kind: str
) -> None:
    assert logged(tmp_path, kind, 25, 15, 1, plant)["problems"] != []


@pytest.mark.stress
@pytest.mark.parametrize("kind", KINDS)
def test_hundreds_of_losses_of_power_lose_nothing_that_was_acknowledged(tmp_path: Path, kind: str) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    found = logged(tmp_path, kind, 200, 400, seed, timeout=1_500)
    assert found["problems"] == [], f"seed {seed}"
    assert found["rounds"] == 400


@pytest.mark.stress
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_hundred_shut_downs_lose_nothing_that_was_acknowledged(tmp_path: Path, kind: str) -> None:
    need_disks(kind)
    seed = random.SystemRandom().randrange(1_000_000)
    found = figures("cut_by_shutdown", tmp_path, kind, 100, seed, timeout=1_500)
    assert found["problems"] == [], f"seed {seed}"
    assert found["rounds"] == 100
