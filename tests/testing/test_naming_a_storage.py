"""A class that the settings cannot build is refused in a sentence, before anything is opened."""

# ruff: noqa: ARG002 - what these storages are told, they ignore

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem, InvalidInputError, MemoryRepository


class NeedsAKey(MemoryRepository):
    def __init__(self, root: Path, key: str, **settings: Any) -> None:
        raise AssertionError("unreachable")


class TakesNoSettings(MemoryRepository):
    def __init__(self, root: Path) -> None:
        raise AssertionError("unreachable")


class BreaksInside(MemoryRepository):
    def __init__(self, root: Path, **settings: Any) -> None:
        raise TypeError("a fault of its own")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(NeedsAKey, "missing a required argument: 'key'"), (TakesNoSettings, "unexpected keyword argument")],
)
def test_a_class_that_does_not_take_the_settings_is_refused(
    tmp_path: Path, kind: type[MemoryRepository], reason: str
) -> None:
    name = f"{kind.__module__}:{kind.__qualname__}"
    with pytest.raises(InvalidInputError, match="does not take the settings") as caught:
        DeerMem({"storage_path": str(tmp_path), "storage_class": name})
    assert caught.value.field == "storage_class"
    assert reason in caught.value.reason


def test_a_fault_inside_a_storage_is_not_taken_for_that(tmp_path: Path) -> None:
    name = f"{__name__}:BreaksInside"
    with pytest.raises(TypeError, match="a fault of its own"):
        DeerMem({"storage_path": str(tmp_path), "storage_class": name})
