"""The historical shape, pinned: a change of these files is a change for every host and every front end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.scenario import play

HERE = Path(__file__).parent
PINNED = {path.stem: path for path in sorted(HERE.iterdir()) if path.suffix in (".json", ".txt")}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return play(tmp_path_factory.mktemp("store"))


@pytest.mark.parametrize("name", PINNED)
def test_an_answer_of_the_manager_is_the_pinned_one(told: dict[str, str], name: str) -> None:
    assert told[name] == PINNED[name].read_text("utf-8")


def test_every_answer_is_pinned(told: dict[str, str]) -> None:
    assert told.keys() == PINNED.keys()
