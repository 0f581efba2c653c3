"""Writers, readers and erasures of one user at once: one holder, and nothing lost but what was erased."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from deermem import MemoryRepository
from tests.maintenance.erase.racing import keep_erasing, keep_reading, keep_writing
from tests.support.processes import Peer
from tests.support.stores import ALICE, bucket_path


def race(root: Path, writers: int, erasers: int, seconds: float, *, host: bool) -> None:
    store, marker = root / "store", root / "held"
    if host:
        bucket_path(store).mkdir(parents=True)
        bucket_path(store).joinpath("notes.txt").write_bytes(b"of the host")
    with ExitStack() as stack:
        reading = stack.enter_context(Peer(keep_reading, store, marker))
        writing = [
            stack.enter_context(Peer(keep_writing, store, marker, f"w{number}", seconds))
            for number in range(writers)
        ]
        erasing = [stack.enter_context(Peer(keep_erasing, store, marker, seconds)) for _ in range(erasers)]
        for peer in (reading, *writing, *erasing):
            assert peer.hear() == "ready"
        for peer in (*writing, *erasing):
            peer.tell()
        acknowledged: dict[str, int] = {}
        for peer in writing:
            own = peer.hear()
            assert own, "a writer starved"
            acknowledged |= own
        gone: set[str] = set()
        buckets = 0
        for peer in erasing:
            own_gone, own_buckets = peer.hear()
            gone |= own_gone
            buckets += own_buckets
        reading.tell()
        assert reading.hear() > 1
    left = {fact.id for fact in MemoryRepository(store).snapshot(ALICE).facts}
    assert left | gone == acknowledged.keys()
    assert not left & gone
    assert gone
    assert (buckets > 0) != host
    twice = [revision for revision, times in Counter(acknowledged.values()).items() if times > 1]
    assert twice == [], "a revision was used for two states"


@pytest.mark.parametrize("host", [False, True], ids=["the bucket goes", "the bucket stays"])
def test_an_erasure_beside_writers_loses_no_update_and_no_two_hold_the_lock(
    tmp_path: Path, host: bool
) -> None:
    race(tmp_path, writers=2, erasers=1, seconds=2, host=host)


@pytest.mark.stress
@pytest.mark.parametrize("host", [False, True], ids=["the bucket goes", "the bucket stays"])
def test_erasures_beside_many_writers_lose_no_update_for_half_a_minute(tmp_path: Path, host: bool) -> None:
    race(tmp_path, writers=4, erasers=2, seconds=30, host=host)
