"""`check --repair` mends what it named, keeps what it takes away, and `--undo` puts that back."""

from __future__ import annotations

from pathlib import Path

import pytest

from deermem import MemoryRepository, Scope
from deermem.maintenance.check import check_store
from deermem.maintenance.findings import Action, Severity
from deermem.maintenance.repair import Repaired, repair_user, tighten_way
from deermem.maintenance.undo import Undone, undo_repair
from deermem.model.identity import UserId
from tests.maintenance.check.faults import MANIFEST, PLANTABLE, Fault
from tests.support.stores import ALICE, CODER, manifest, tree

USER = UserId.parse("alice")
MENDABLE = [fault for fault in PLANTABLE if fault.mends]
ALL = {"a", "b", "spare"}


def repair(root: Path) -> Repaired:
    """Repairs all that a check of a fresh process finds."""
    store = MemoryRepository(root)
    report = check_store(store)
    tighten_way(store, report.of_root)
    return repair_user(store, USER, report.users[0].findings)


def undo(root: Path) -> Undone:
    return undo_repair(MemoryRepository(root), USER)


def facts(root: Path, scope: Scope = ALICE) -> dict[str, str]:
    return {fact.id: fact.content for fact in MemoryRepository(root).snapshot(scope).facts}


def contents(root: Path) -> dict[str, object]:
    """Returns what lies in the store, without modes, time stamps and what repairs themselves make."""
    own = ("users/alice/.quarantine", "users/alice/.memory.lock", "users/alice/.recovery")
    return {path: each[1:2] if len(each) < 4 else each[3] for path, each in tree(root).items()
            if not path.startswith(own)}  # fmt: skip


@pytest.mark.parametrize("fault", MENDABLE, ids=lambda fault: fault.id)
def test_a_repair_leaves_nothing_worse_than_a_note_and_every_other_fact(root: Path, fault: Fault) -> None:
    fault.plant(root)
    done = repair(root)
    assert done.failed == ()
    left = check_store(MemoryRepository(root))
    assert left.worst == Severity.NOTE, left.findings
    assert [each for each in left.findings if each.action != Action.NONE] == []
    extra = {"new"} & facts(root).keys()
    assert facts(root) == {fact_id: f"text of {fact_id}" for fact_id in (ALL | extra) - set(fault.loses)}
    assert facts(root, CODER) == {"c": "text of c"}
    MemoryRepository(root).clear_all("alice")


@pytest.mark.parametrize("fault", MENDABLE, ids=lambda fault: fault.id)
def test_a_reader_that_saw_the_store_before_notices_what_a_repair_changes(root: Path, fault: Fault) -> None:
    reader = MemoryRepository(root)
    before = reader.snapshot(ALICE)
    fault.plant(root)
    repair(root)
    assert reader.snapshot(ALICE).by_id.keys() == facts(root).keys()
    if reader.snapshot(ALICE).by_id.keys() != before.by_id.keys():
        assert reader.snapshot(ALICE).revision > before.revision


@pytest.mark.parametrize("fault", MENDABLE, ids=lambda fault: fault.id)
def test_an_undo_puts_everything_back_byte_for_byte(root: Path, fault: Fault) -> None:
    fault.plant(root)
    before = contents(root)
    done = repair(root)
    if not done.set_aside:
        return
    undone = undo(root)
    assert (undone.refused, undone.left) == ((), ())
    after = contents(root)
    name = "users/alice/memory.json"
    if fault.where != MANIFEST:  # it has a new revision
        before.pop(name, None)
        after.pop(name, None)
    assert after == before


@pytest.mark.parametrize("fault", MENDABLE, ids=lambda fault: fault.id)
def test_a_repair_after_an_undo_mends_the_same_again(root: Path, fault: Fault) -> None:
    fault.plant(root)
    if not repair(root).set_aside:
        return
    revision = manifest(root)["revision"]
    undo(root)
    repair(root)
    assert check_store(MemoryRepository(root)).worst == Severity.NOTE
    assert manifest(root)["revision"] >= revision + fault.kind.startswith(("fact", "manifest", "fences"))
