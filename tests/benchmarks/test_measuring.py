"""How samples are taken and what is made of them."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from benchmarks.machine import file_system_of
from benchmarks.measuring import Side, Spread, interleave, ratios
from benchmarks.results import MISSED, OK, Result, load_ratios, save
from benchmarks.table import cells, figure, markdown, plain


def result(ratio: float, bar: float | None, *, at_least: bool = False) -> Result:
    spread = Spread(ratio - 0.1, ratio, ratio + 0.1)
    return Result("P0", "nothing", "even less", ratio, 1.0, spread, bar, at_least=at_least)


def test_the_side_that_begins_changes_with_every_sample() -> None:
    order: list[str] = []
    sides = [Side(name, lambda name=name: order.append(name)) for name in "abc"]  # type: ignore[misc]
    interleave(sides, rounds=1, samples=3)
    assert "".join(order) == "abc" + "abcbcacab"  # one unmeasured sample comes first


def test_each_round_gives_one_median_of_every_side() -> None:
    medians = interleave([Side("a", int), Side("b", int)], rounds=4, samples=3, calls=2)
    assert {name: len(rounds) for name, rounds in medians.items()} == {"a": 4, "b": 4}


def test_a_sample_is_prepared_once_and_run_as_often_as_asked() -> None:
    done: list[str] = []
    side = Side("a", lambda: done.append("run"), lambda: done.append("prepare"))
    interleave([side], rounds=1, samples=2, calls=3)
    assert done == ["prepare", "run", "run", "run"] * 3


def test_the_collector_is_on_while_sides_run_and_nothing_stays_frozen() -> None:
    seen: list[bool] = []
    interleave([Side("a", lambda: seen.append(gc.isenabled()))], rounds=1, samples=1)
    assert (seen, gc.get_freeze_count()) == ([True, True], 0)


def test_the_ratio_is_taken_within_each_round() -> None:
    slow_afternoon = [1.0, 10.0, 1.0]
    assert ratios([2.0, 20.0, 2.2], slow_afternoon).middle == pytest.approx(2.0)


def test_the_quartiles_of_one_figure_are_that_figure() -> None:
    assert Spread.of([3.0]) == Spread(3.0, 3.0, 3.0)


@pytest.mark.parametrize(
    ("ratio", "bar", "at_least", "verdict"),
    [(1.5, 1.5, False, OK), (1.6, 1.5, False, MISSED), (0.7, 0.7, True, OK), (0.6, 0.7, True, MISSED)],
)
def test_the_verdict_compares_the_ratio_with_the_bar(
    ratio: float, bar: float, at_least: bool, verdict: str
) -> None:
    assert result(ratio, bar, at_least=at_least).verdict == verdict


def test_a_figure_without_a_bar_has_no_verdict() -> None:
    assert result(9.0, None).verdict == ""


def test_a_saved_run_can_be_compared_with(tmp_path: Path) -> None:
    save(tmp_path / "run.json", {"cpus": 2}, [result(1.5, 2.0)], {})
    before = load_ratios(tmp_path / "run.json")
    assert before == {("P0", "nothing"): 1.5}
    assert cells(result(3.0, 2.0), before)[-2:] == ["1.50", "+100%"]


def test_what_is_no_saved_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps([1, 2]), encoding="utf-8")
    with pytest.raises(ValueError, match="is not the JSON of a run"):
        load_ratios(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.5, "s", "2.5 s"),
        (0.0025, "s", "2.5 ms"),
        (2.5e-7, "s", "0.25 µs"),
        (0.0009996, "s", "1,000 µs"),
        (12_345.0, "1/s", "12,340 1/s"),
        (9_590_000, "bytes", "9.59 MB"),
        (56.5, "1/s", "56.5 1/s"),
        (1.48, "", "1.48"),
    ],
)
def test_figures_have_units_and_three_digits(value: float, unit: str, text: str) -> None:
    assert figure(value, unit) == text


def test_the_plain_table_is_aligned() -> None:
    assert plain([["row", "work"], ["P12", "x"]]) == "row  work\nP12  x\n"


def test_the_table_for_the_documents_has_one_line_a_result() -> None:
    lines = markdown([result(1.5, 2.0), result(0.7, 0.5, at_least=True)]).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("| P0 | nothing |")
    assert lines[2].endswith("| 1.50 | 1.40 to 1.60 | ≤ 2 | ok |")


def test_the_deepest_mount_above_a_folder_tells_its_file_system(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 253:0 / / rw shared:1 - ext4 /dev/vda rw\n"
        f"30 22 0:25 / {tmp_path} rw shared:2 - xfs /dev/vdb rw\n"
        "31 22 0:26 / /elsewhere rw - tmpfs tmpfs rw\n",
        encoding="utf-8",
    )
    assert file_system_of(tmp_path / "below", mounts) == "xfs"
    assert file_system_of(tmp_path.parent, mounts) == "ext4"


def test_the_file_system_is_unknown_where_the_system_is_silent(tmp_path: Path) -> None:
    assert file_system_of(tmp_path, tmp_path / "absent") == "unknown"
