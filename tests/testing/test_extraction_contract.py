"""The published contract lets a good extraction hook pass and refuses each kind of bad one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from deermem import ExtractionHook
from deermem.testing.extraction_contract import ExtractionHookContract
from tests.testing.broken_hooks import BROKEN, Hook
from tests.testing.rules import broken_rules, rules_of

RULES = rules_of(ExtractionHookContract)
SAID = ({"role": "user", "content": "note: goes to Oslo in May"}, {"role": "assistant", "content": "Noted."})


class TestHook(ExtractionHookContract):
    def make_hook(self) -> ExtractionHook:
        return Hook()

    def conversation(self) -> Sequence[Any]:
        return [dict(message) for message in SAID]


def contract_for(hook: type[Hook]) -> ExtractionHookContract:
    class Contract(TestHook):
        patience = hook.patience

        def make_hook(self) -> ExtractionHook:
            return hook()

    return Contract()


@pytest.mark.parametrize("rule", BROKEN)
def test_a_hook_that_breaks_a_rule_fails_the_test_of_that_rule(rule: str) -> None:
    assert broken_rules(contract_for(BROKEN[rule].thing), [rule]) == {rule}


@pytest.mark.parametrize("rule", [rule for rule, broken in BROKEN.items() if broken.also is not None])
def test_a_hook_that_breaks_a_rule_fails_no_other_test(rule: str) -> None:
    broken = BROKEN[rule]
    assert broken_rules(contract_for(broken.thing), RULES) == {rule, *(broken.also or ())}


def test_every_rule_has_a_hook_that_breaks_it() -> None:
    assert sorted(BROKEN) == RULES


@pytest.mark.parametrize("missing", ["make_hook", "conversation"])
def test_a_contract_without_its_two_methods_cannot_be_run(missing: str) -> None:
    methods = {"make_hook": Hook, "conversation": list}
    del methods[missing]
    incomplete: Any = type("Incomplete", (ExtractionHookContract,), methods)
    with pytest.raises(TypeError, match=missing):
        incomplete()
