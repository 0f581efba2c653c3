"""What cannot be kept is not offered to be mended, and keeps nothing else from being mended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deermem import MemoryRepository
from deermem.maintenance.check import check_user
from deermem.maintenance.check_scan import MAX_SET_ASIDE
from deermem.maintenance.repair import repair_user
from tests.maintenance.check.faults import alice, fact, shard_of_a


def repair(root: Path) -> None:
    store = MemoryRepository(root)
    (report,) = check_user(store, "alice").users
    repaired = repair_user(store, report.user, [each for each in report.findings if each.action])
    assert repaired.failed == ()


def left(root: Path) -> dict[str, str]:
    """Returns what a check finds, with what a repair would do."""
    found = check_user(MemoryRepository(root), "alice").findings
    return {each.kind: each.repair for each in found}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_name_that_is_no_text_is_for_a_person_and_all_others_are_mended(root: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(shard_of_a(root)) + b"/\xff.md.tmp"))
    odd.write_bytes(b"x")
    then = odd.stat().st_mtime_ns - 3_600_000_000_000
    os.utime(odd, ns=(then, then))
    fact(root, "a").write_bytes(b"no fact")
    assert left(root) == {"temporary-file": "", "fact-corrupt": "set it aside in .quarantine"}
    repair(root)
    assert left(root) == {"temporary-file": "", "quarantine": ""}
    assert odd.read_bytes() == b"x"


@pytest.mark.parametrize(
    ("name", "kind"), [("memory.json", "manifest-corrupt"), (".memory.fences.json", "fences-corrupt")]
)
def test_what_is_too_large_to_be_kept_is_for_a_person(root: Path, name: str, kind: str) -> None:
    path = alice(root) / name
    os.truncate(path, MAX_SET_ASIDE + 1)
    shard_of_a(root).joinpath("a.md").chmod(0o644)
    assert left(root) == {kind: "", "permissions": "take the permissions of others away"}
    repair(root)
    assert left(root) == {kind: ""}
    os.truncate(path, MAX_SET_ASIDE)
    assert left(root)[kind] != ""
