"""The double says what DeerFlow says: compared where `DEERFLOW_SRC` names a checkout."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.deerflow import double, library
from tests.integrations.deerflow.library import real_only

MEMBERS = [
    pytest.param(place, member, id=member.__name__)
    for place, members in double.PLACES.items()
    for member in members
]
CLASSES = [param for param in MEMBERS if isinstance(param.values[1], type)]

pytestmark = real_only


def shape(function: Any) -> list[tuple[str, Any, Any]]:
    """Returns names, kinds and defaults of the arguments, which is what callers depend on."""
    return [
        (parameter.name, parameter.kind, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


def methods(found: type[Any]) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(found).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod))
    }


@pytest.mark.parametrize(("place", "ours"), MEMBERS)
def test_a_name_of_the_double_is_one_of_deerflows(place: str, ours: Any) -> None:
    theirs = getattr(library.module(place), ours.__name__)
    assert isinstance(theirs, type) is isinstance(ours, type)
    if not isinstance(ours, type):
        assert shape(theirs) == shape(ours)


@pytest.mark.parametrize(("place", "ours"), CLASSES)
def test_a_class_of_the_double_has_the_base_that_deerflows_has(place: str, ours: type[Any]) -> None:
    theirs = getattr(library.module(place), ours.__name__)
    known = {member.__name__ for members in double.PLACES.values() for member in members}
    for base in ours.__mro__[1:-1]:
        if base.__name__ in known or issubclass(base, Exception):
            assert base.__name__ in {each.__name__ for each in theirs.__mro__}


@pytest.mark.parametrize(("place", "ours"), CLASSES)
def test_a_method_of_the_double_takes_what_deerflows_takes(place: str, ours: type[Any]) -> None:
    theirs = getattr(library.module(place), ours.__name__)
    for name in methods(ours):
        found, expected = shape(getattr(theirs, name)), shape(getattr(ours, name))
        if name == "model_post_init":  # called by place
            found, expected = found[:1], expected[:1]
            assert len(found) == len(expected)
        else:
            assert found == expected, name


def test_the_base_of_storages_has_no_method_that_the_double_lacks() -> None:
    theirs = methods(library.storage_module.MemoryStorage)
    assert set(theirs) == set(methods(double.MemoryStorage))
    assert (
        library.storage_module.MemoryStorage.__abstractmethods__ == double.MemoryStorage.__abstractmethods__
    )


@pytest.mark.parametrize("name", ["MemoryStorage", "FileMemoryStorage"])
def test_a_storage_takes_what_deerflows_own_takes(name: str) -> None:
    """All public methods of the file storage are offered; arguments that are private there may miss."""
    found = library.front_door.DeerMemStorage
    for method, theirs in methods(getattr(library.storage_module, name)).items():
        if method == "apply_changes" and name == "MemoryStorage":
            continue  # the base takes any scope
        expected = [entry[:2] for entry in shape(theirs) if not entry[0].startswith("_")]
        assert [entry[:2] for entry in shape(getattr(found, method))] == expected, method


def test_the_settings_of_the_double_have_deerflows_defaults() -> None:
    theirs, ours = library.module(double.CONFIG).DeerMemConfig(), double.DeerMemConfig()
    assert vars(ours).items() <= dict(theirs).items()


def test_what_is_known_of_decisions_is_all_there_is() -> None:
    for ours in (double.EvictedFact, double.FactEvictionDecision):
        theirs = getattr(library.module(double.EVICTION), ours.__name__)
        assert list(inspect.signature(theirs).parameters) == list(inspect.signature(ours).parameters)


def test_everything_that_deerflow_asks_of_a_storage_is_offered() -> None:
    source = Path(library.SOURCE, "backend", "packages", "harness", *double.ROOT.split("."))
    asked: set[str] = set()
    for file in source.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            owner, name = getattr(node, "value", None), getattr(node, "attr", None)
            if (
                isinstance(node, ast.Attribute)
                and isinstance(owner, ast.Attribute)
                and owner.attr == "_storage"
            ):
                asked.add(str(name))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
                of, wanted = node.args[:2]
                if "_storage" in ast.unparse(of) and isinstance(wanted, ast.Constant):
                    asked.add(str(wanted.value))
    assert {"load", "apply_changes", "search_facts", "rebuild_index", "get_fact"} <= asked
    assert [name for name in asked if not hasattr(library.front_door.DeerMemStorage, name)] == []
