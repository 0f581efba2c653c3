"""What the tests of the contracts share: their rules by name, and which of them something breaks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def rules_of(contract: type[Any]) -> list[str]:
    """Returns the names of the tests of a contract, sorted."""
    return sorted(name for name in dir(contract) if name.startswith("test_"))


def broken_rules(contract: Any, rules: Iterable[str]) -> set[str]:
    """Runs these tests of a contract; returns those that fail, in whatever way."""
    failed = set()
    for rule in rules:
        try:
            getattr(contract, rule)()
        except Exception:  # noqa: BLE001 - what is broken fails in any way it likes
            failed.add(rule)
    return failed
