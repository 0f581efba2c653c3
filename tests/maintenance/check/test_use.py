"""A store in use has no findings that come from its use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deermem import ANYTHING, ChangeSet, MemoryRepository, Upsert
from deermem.maintenance.check import check_store, check_user
from deermem.maintenance.findings import Finding
from deermem.model.identity import DEFAULT_AGENT
from deermem.testing.disk_steps import Step
from deermem.testing.simulated_disk import SimulatedDisk
from tests.maintenance.check.writers import keep_changing
from tests.support.processes import Peer
from tests.support.stores import ALICE, CODER, draft
from tests.support.work import stop_inside

UNDER_WAY = {"journal-hot", "recovery-leftover"}


def test_a_store_that_two_processes_change_all_the_time_has_no_findings(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("first"))
    found: list[Finding] = []
    checks = 0
    with (
        Peer(keep_changing, tmp_path, "one", 3.0) as one,
        Peer(keep_changing, tmp_path, "two", 3.0) as two,
    ):
        for peer in (one, two):
            assert peer.hear() == "ready"
        for peer in (one, two):
            peer.tell()
        revision = store.get_manifest("alice").revision
        while store.get_manifest("alice").revision < revision + 40:
            report = check_store(store)
            found += report.findings
            checks += 1
        assert one.hear() > 1
        assert two.hear() > 1
    assert found == []
    assert checks > 1
    assert check_store(store).findings == ()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell who holds a lock")
@pytest.mark.parametrize("ending", ["journal.json", "held.md"])
def test_a_transaction_that_stands_still_under_its_lock_is_no_finding(tmp_path: Path, ending: str) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("first"))
    with Peer(stop_inside, tmp_path, "rename", ending) as writer:
        assert writer.hear() == "inside"
        assert check_user(store, "alice").findings == ()
        writer.tell()


def test_every_step_of_a_transaction_shows_nothing_but_that_it_is_under_way() -> None:
    disk = SimulatedDisk()
    upserts = (Upsert(DEFAULT_AGENT, draft("a")), Upsert(CODER.agent, draft("c")))
    looks: list[SimulatedDisk] = []

    def note(step: Step) -> None:
        if step.changing:
            looks.append(disk.fork(keep_locks=True))

    disk.after_step = note
    store = MemoryRepository(disk.process())
    store.apply_changes("alice", ChangeSet(upserts=upserts))
    store.apply_changes("alice", ChangeSet(upserts=(Upsert(DEFAULT_AGENT, draft("a", "new"), ANYTHING),)))
    store.clear(CODER)
    store.delete_fact(ALICE, "a")
    assert len(looks) > 50
    for look in looks:
        report = check_store(MemoryRepository(look.process()))
        assert {each.kind for each in report.findings} <= UNDER_WAY, report.findings
