"""A disk is full, or read-only, for a while under several processes: nothing is lost and nothing wedged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.private_mounts import run_with_own_mounts
from tests.kernel.requirements import need_mounts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def fares(obstacle: str, place: Path, rounds: int) -> dict[str, Any]:
    need_mounts("tmpfs")
    found: dict[str, Any] = run_with_own_mounts("tests.kernel.full_disks", obstacle, str(place), rounds)
    sys.stdout.write(f"{obstacle}: {found}\n")
    return found


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.stress)])
def test_a_full_disk_loses_no_acknowledged_write_and_all_goes_on_when_there_is_room(
    tmp_path: Path, rounds: int
) -> None:
    found = fares("fill_up", tmp_path, rounds)
    assert found["problems"] == []
    assert found["refused"] >= 12 * rounds


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.stress)])
def test_a_disk_that_becomes_read_only_is_read_on_and_written_again_when_it_may_be(
    tmp_path: Path, rounds: int
) -> None:
    found = fares("forbid_writing", tmp_path, rounds)
    assert found["problems"] == []
    assert found["refused"] + found.get("in doubt", 0) >= 12 * rounds
