"""The published contract lets a good storage pass and refuses each kind of bad one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deermem import MemoryRepository
from deermem.testing.storage_contract import StorageContract
from tests.testing.broken_storages import BROKEN
from tests.testing.rules import broken_rules, rules_of

RULES = rules_of(StorageContract)


class TestMemoryRepository(StorageContract):
    def make_storage(self, root: Path, **settings: Any) -> MemoryRepository:
        return MemoryRepository(root, **settings)


def contract_for(storage: type[MemoryRepository]) -> StorageContract:
    class Contract(StorageContract):
        def make_storage(self, root: Path, **settings: Any) -> MemoryRepository:
            return storage(root, **settings)

    return Contract()


@pytest.mark.parametrize("rule", BROKEN)
def test_a_storage_that_breaks_a_rule_fails_the_test_of_that_rule(rule: str) -> None:
    assert broken_rules(contract_for(BROKEN[rule].thing), [rule]) == {rule}


@pytest.mark.stress
@pytest.mark.parametrize("rule", BROKEN)
def test_a_storage_that_breaks_a_rule_fails_no_other_test(rule: str) -> None:
    broken = BROKEN[rule]
    assert broken_rules(contract_for(broken.thing), RULES) == {rule, *(broken.also or ())}


def test_every_rule_has_a_storage_that_breaks_it() -> None:
    assert sorted(BROKEN) == RULES


def test_a_contract_without_make_storage_cannot_be_run() -> None:
    incomplete: Any = type("Incomplete", (StorageContract,), {})
    with pytest.raises(TypeError, match="make_storage"):
        incomplete()
