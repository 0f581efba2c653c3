"""A memory that holds more than its cap loses more than comes, which is told and can be taken back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import DeerMem, ExtractionRequest, FactDraft, MemoryRepository, Scope
from deermem.maintenance.taking_back import undo
from deermem.repository.evictions import IDS_IN_A_LINE
from tests.manager.managers import contents, manager_at

ALICE = Scope.of("alice")
CAP = 10
NEW = "new"


def filled(root: Path, number: int) -> set[str]:
    """Stores facts as a program without a cap does, and returns what they say."""
    with MemoryRepository(root) as store:
        for position in range(number):
            store.upsert_fact(ALICE, FactDraft(f"fact {position}", confidence=0.5))
    return {f"fact {position}" for position in range(number)}


def kept(root: Path) -> set[str]:
    return {fact.content for fact in MemoryRepository(root).snapshot(ALICE).facts}


def take_back(root: Path) -> bool:
    with MemoryRepository(root) as store:
        return undo(store, ALICE.user) is not None


def by_the_manager(root: Path) -> None:
    manager_at(root, max_facts=CAP).create_fact(NEW, confidence=0.9, user_id="alice")


def by_extraction(root: Path) -> None:
    def propose(_: ExtractionRequest) -> dict[str, object]:
        return {
            "newFacts": [{"content": NEW, "confidence": 0.9}],
            "user": {"topOfMind": "said with it"},
        }

    with manager_at(root, propose, max_facts=CAP) as manager:
        manager.add_nowait("thread", [{"role": "user", "content": "hello"}], user_id="alice")
        assert manager.shutdown_flush(30)


WAYS: list[Callable[[Path], None]] = [by_the_manager, by_extraction]


@pytest.mark.parametrize("add", WAYS)
def test_what_a_fact_too_many_drives_out_can_be_taken_back_and_the_new_one_stays(
    tmp_path: Path, add: Callable[[Path], None]
) -> None:
    before = filled(tmp_path, CAP + 5)
    add(tmp_path)
    assert len(kept(tmp_path)) == CAP
    assert NEW in kept(tmp_path)
    assert take_back(tmp_path)
    assert kept(tmp_path) == before | {NEW}
    assert not take_back(tmp_path)


def test_summaries_that_came_with_the_eviction_stay_when_it_is_taken_back(tmp_path: Path) -> None:
    filled(tmp_path, CAP + 5)
    by_extraction(tmp_path)
    assert take_back(tmp_path)
    document = manager_at(tmp_path).get_memory(user_id="alice")
    assert document["user"]["topOfMind"]["summary"] == "said with it"


@pytest.mark.parametrize("add", WAYS)
def test_at_the_cap_one_goes_for_one_that_comes_and_no_copy_is_made(
    tmp_path: Path, add: Callable[[Path], None]
) -> None:
    filled(tmp_path, CAP)
    add(tmp_path)
    assert len(kept(tmp_path)) == CAP
    assert not take_back(tmp_path)


def test_every_id_that_went_is_logged_and_that_they_can_come_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path, CAP + IDS_IN_A_LINE + 5)
    ids = {fact.id for fact in MemoryRepository(tmp_path).snapshot(ALICE).facts}
    with caplog.at_level(logging.INFO, "deermem.repository"):
        by_the_manager(tmp_path)
    gone = ids - {fact.id for fact in MemoryRepository(tmp_path).snapshot(ALICE).facts}
    assert len(gone) == IDS_IN_A_LINE + 6
    lines = [record.getMessage() for record in caplog.records if "the cap evicted" in record.getMessage()]
    assert len(lines) == 2
    assert gone == {word for line in lines for word in line.split(": ")[1].split(", ")}
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"{len(gone)} went" in warning
    assert "`deermem undo`" in warning
    assert "fact 1" not in caplog.text


def test_at_the_cap_nobody_is_warned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path, CAP)
    with caplog.at_level(logging.INFO, "deermem.repository"):
        by_the_manager(tmp_path)
    assert [record.levelno for record in caplog.records] == [logging.INFO]


def test_where_nothing_is_kept_nothing_is_promised(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path, CAP + 1)
    store = MemoryRepository(tmp_path, undo_days=0)
    with DeerMem({"max_facts": CAP}, repository=store) as manager:
        manager.create_fact(NEW, confidence=0.9, user_id="alice")
    assert "2 went" in caplog.text
    assert "undo" not in caplog.text
    assert NEW in contents(manager_at(tmp_path).get_memory(user_id="alice"))
    assert not take_back(tmp_path)
