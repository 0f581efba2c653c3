"""A floor is as durable as it says: one that skipped a sync would make the store look slow."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.curves import LockedFloor
from benchmarks.floors import DurableFiles, DurableRemovals
from benchmarks.peers.one_file import OneFile
from benchmarks.peers.port import sample_fact, sample_facts
from benchmarks.rows.point_writes import replacements
from benchmarks.samples import build_scope
from benchmarks.samples_v1 import files_of
from tests.support.stores import ALICE, fact_path


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Returns, for each sync so far, whether it was that of a folder."""
    calls: list[bool] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        calls.append(os.path.isdir(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return calls


needs_proc = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="tells files from folders by /proc"
)


@needs_proc
def test_three_durable_replacements_sync_each_file_and_then_its_folder(
    tmp_path: Path, synced: list[bool]
) -> None:
    with closing(replacements(tmp_path / "floor")) as floor:
        floor()
    assert synced == [False, True] * 3


@needs_proc
def test_the_floor_of_writers_on_one_user_syncs_as_much(tmp_path: Path, synced: list[bool]) -> None:
    step: Callable[[], object] = LockedFloor(tmp_path).begin(0)
    step()
    assert synced == [False, True] * 3


@needs_proc
def test_the_floor_of_the_migration_syncs_each_file_and_each_folder_once(
    tmp_path: Path, synced: list[bool]
) -> None:
    files = files_of(1, 5)
    DurableFiles(tmp_path, [files])()
    assert synced.count(False) == len(files) == 6
    assert synced.count(True) == len({path.parent for path in files})


@needs_proc
def test_the_floor_of_a_clear_syncs_each_folder_once(tmp_path: Path, synced: list[bool]) -> None:
    ids = build_scope(tmp_path, ALICE, 12)
    facts = fact_path(tmp_path, ALICE, ids[0]).parents[1]
    shards = len(list(facts.iterdir()))
    DurableRemovals(facts)()
    assert synced == [True] * shards


@needs_proc
def test_a_change_of_the_one_file_syncs_it_and_its_folder(tmp_path: Path, synced: list[bool]) -> None:
    with closing(OneFile(tmp_path)) as peer:
        peer.fill(sample_facts(3))
        changes: list[Callable[[], object]] = [
            lambda: peer.create(sample_fact(9)),
            lambda: peer.update(sample_fact(0).id, "Tea."),
            lambda: peer.delete(sample_fact(9).id),
        ]
        for change in changes:
            synced.clear()
            change()
            assert synced == [False, True]
