"""Each row runs at a tiny size and says what it measured; whether a bar is met is not for tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import sections
from benchmarks.bench import Bench
from benchmarks.command import main
from benchmarks.results import MISSED, NO_BAR, OK, Result
from benchmarks.rows import ROWS
from benchmarks.scale import Scale

TINY = Scale(rounds=1, samples=1, seconds=0.05, limit=20, settles=False)


def measured(row: str, folder: Path) -> list[dict[str, Any]]:
    target = folder / "run.json"
    assert main(["--rows", row, "--dir", str(folder), "--json", str(target)], TINY) == 0
    document = json.loads(target.read_text(encoding="utf-8"))
    assert document["failures"] == {}
    results: list[dict[str, Any]] = document["results"]
    return results


@pytest.mark.parametrize("row", ROWS)
def test_each_row_measures_something_and_compares_it_with_a_floor(row: str, tmp_path: Path) -> None:
    results = measured(row, tmp_path)
    assert {result["row"] for result in results} == {row}
    assert len({result["work"] for result in results}) == len(results)
    assert all(result["ratio"]["middle"] > 0 and result["floor_work"] for result in results)
    assert {result["verdict"] for result in results} <= {OK, MISSED, NO_BAR}
    assert any(result["bar"] is not None for result in results)


@pytest.mark.parametrize("row", ["P4", "P13"])
def test_nothing_is_left_behind(row: str, tmp_path: Path) -> None:
    measured(row, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_every_bar_is_measured() -> None:
    assert sorted(ROWS) == sorted(f"P{number}" for number in range(1, 15))


def test_a_row_that_fails_is_reported_and_the_others_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(bench: Bench) -> Iterator[Result]:
        yield from ()
        raise RuntimeError(f"no disk at {bench.place.name}")

    monkeypatch.setitem(sections.ALL, "P1", broken)
    target = tmp_path / "run.json"
    assert main(["--rows", "P1,P4", "--dir", str(tmp_path), "--json", str(target)], TINY) == 1
    document = json.loads(target.read_text(encoding="utf-8"))
    assert list(document["failures"]) == ["P1"]
    assert {result["row"] for result in document["results"]} == {"P4"}
    assert "no disk at" in capsys.readouterr().err


def test_a_row_that_does_not_exist_is_refused_with_the_names_of_those_that_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--rows", "P3,P99"])
    assert "there is no row P99; choose from P1, P2" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system pins no processes")
def test_the_process_is_unpinned_after_a_run(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    measured("P4", tmp_path)
    assert os.sched_getaffinity(0) == before
