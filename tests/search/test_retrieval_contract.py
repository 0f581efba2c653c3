"""The published contract lets a good adapter pass and refuses each kind of bad one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from deermem.search.loading import check_adapter
from deermem.search.port import RetrievalAdapter
from deermem.testing.retrieval_contract import RetrievalAdapterContract
from tests.search.adapters import DictAdapter
from tests.search.broken_adapters import BROKEN

RULES = sorted(name for name in dir(RetrievalAdapterContract) if name.startswith("test_"))


class TestDictAdapter(RetrievalAdapterContract):
    def make_adapter(self) -> RetrievalAdapter:
        return DictAdapter()


def contract_for(adapter: type[DictAdapter]) -> RetrievalAdapterContract:
    class Contract(RetrievalAdapterContract):
        def make_adapter(self) -> RetrievalAdapter:
            return adapter()

    return Contract()


def broken_rules(contract: RetrievalAdapterContract) -> Iterator[str]:
    for rule in RULES:
        test: Any = getattr(contract, rule)
        try:
            test()
        except Exception:  # noqa: BLE001 - a broken adapter fails in any way it likes
            yield rule


@pytest.mark.parametrize("rule", BROKEN)
def test_an_adapter_that_breaks_a_rule_fails_the_test_of_that_rule(rule: str) -> None:
    assert rule in list(broken_rules(contract_for(BROKEN[rule])))


def test_every_rule_has_an_adapter_that_breaks_it() -> None:
    assert sorted(BROKEN) == RULES


@pytest.mark.parametrize("adapter", BROKEN.values(), ids=lambda adapter: adapter.__name__)
def test_the_broken_adapters_look_sound_when_they_are_loaded(adapter: type[DictAdapter]) -> None:
    assert isinstance(check_adapter(adapter(), adapter.__name__), adapter)


def test_a_contract_without_make_adapter_cannot_be_run() -> None:
    incomplete: Any = type("Incomplete", (RetrievalAdapterContract,), {})
    with pytest.raises(TypeError, match="make_adapter"):
        incomplete()
