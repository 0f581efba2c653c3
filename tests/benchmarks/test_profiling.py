"""A work is repeated as often as asked, and a profile tells what its functions took themselves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.profiling import WORKS, by_function, main
from deermem import MemoryRepository
from tests.support.stores import ALICE


def frame(function: str, time: float, *children: SimpleNamespace, synthetic: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        function=function, file_path_short="x.py", time=time, children=children, is_synthetic=synthetic
    )


def test_a_function_is_charged_with_its_own_time_alone_wherever_it_was_called() -> None:
    root = frame("main", 10.0, frame("sync", 6.0), frame("write", 3.0, frame("sync", 2.0)))
    found = by_function(SimpleNamespace(root_frame=lambda: root), 2)
    assert found == [(0.8, "sync (x.py)"), (0.1, "main (x.py)")]


def test_what_a_profiler_adds_to_show_own_time_is_no_function() -> None:
    root = frame("main", 10.0, frame("[self]", 4.0, synthetic=True), frame("sync", 6.0))
    found = by_function(SimpleNamespace(root_frame=lambda: root), 5)
    assert found == [(0.6, "sync (x.py)"), (0.4, "main (x.py)")]


@pytest.mark.parametrize("work", WORKS)
def test_a_work_runs_and_leaves_nothing_behind(work: str, tmp_path: Path) -> None:
    assert main([work, "2", "--dir", str(tmp_path)]) == 0
    assert list(tmp_path.iterdir()) == []


def test_each_repetition_of_an_update_is_a_commit(tmp_path: Path) -> None:
    step = WORKS["update"](tmp_path, 3)
    for _ in range(3):
        step()
    with MemoryRepository(tmp_path) as repository:
        assert repository.get_manifest(ALICE.user.raw).revision == 1 + 3


def test_a_profile_names_the_dearest_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyinstrument")
    assert main(["cold", "2", "--functions", "--dir", str(tmp_path)]) == 0
    assert "(deermem/format/fact_canonical.py)" in capsys.readouterr().out
