"""The reference has every name that third parties use, and none that is not there."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "testing.md"
CODE = {
    span
    for line in re.findall(r"^\|.*\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    for span in re.findall(r"`([^`]+)`", line)
}
TOLD = {re.split(r"\W", span)[0] for span in CODE}
MODULES = ("claims", "extraction_samples", "places", "retrieval_samples", "storage_samples")
CONTRACTS = {
    "extraction_contract": "ExtractionHookContract",
    "retrieval_contract": "RetrievalAdapterContract",
    "storage_contract": "StorageContract",
}
# Bases and types: subclasses and tests need only what the page names.
INTERNAL = {"StorageRules", "OpenStorage", "T"}


def module(name: str) -> ModuleType:
    return importlib.import_module(f"deermem.testing.{name}")


def own_names(name: str) -> set[str]:
    """Returns the public names that a module defines itself."""
    tree = module(name)
    text = inspect.getsource(tree)
    assigned = set(re.findall(r"^([A-Za-z]\w*)(?::[^=\n]+)? = ", text, re.MULTILINE))
    defined = set(re.findall(r"^(?:class|def) ([A-Za-z]\w*)", text, re.MULTILINE))
    return (assigned | defined) - INTERNAL


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert own_names(name) - TOLD == set()


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_contract_and_what_it_asks_for_is_in_the_reference(name: str) -> None:
    contract = getattr(module(name), CONTRACTS[name])
    assert {CONTRACTS[name], *contract.__abstractmethods__} <= TOLD


def test_the_reference_names_nothing_that_is_not_there() -> None:
    names = {name for each in (*MODULES, *CONTRACTS) for name in vars(module(each))}
    names |= {name for each, kind in CONTRACTS.items() for name in dir(getattr(module(each), kind))}
    names |= {"deermem", "memory", "known", "closed", "MemoryRepository", "FactDraft", "Fact", "DeerMem"}
    assert TOLD - names == set()


@pytest.mark.parametrize("name", [*MODULES, *CONTRACTS])
def test_nothing_of_the_kit_needs_pytest_or_our_tests(name: str) -> None:
    text = inspect.getsource(module(name))
    assert re.findall(r"^\s*(?:import|from) (?:pytest|tests)\b", text, re.MULTILINE) == []
